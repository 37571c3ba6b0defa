"""Scores of any system: what is left, intervals, comparisons, measurements."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router
from support.encoders import tiny

from nblib import artefacts, results
from nblib.benchmarks import catalogue, scoring
from nblib.benchmarks.base import Benchmark
from nblib.models import encoders, rankers, systems
from nblib.models.systems import BiEncoder
from nblib.results import published


def similarities(similarity, score=(0.0, 1.0, 2.0, 3.0)):
    """Predictions of a correlation."""
    ids = [str(number) for number in range(len(score))]
    return pd.DataFrame({"id": ids, "cluster": ids, "part": "x", "score": score, "similarity": similarity})


def outcomes(correct, cluster=None):
    numbers = range(len(correct))
    return pd.DataFrame({"id": [str(k) for k in numbers], "cluster": cluster or numbers, "correct": correct})


def leave(folder, **systems):
    for name, correct in systems.items():
        scoring.save_predictions(outcomes(correct), folder, name, "nevir_mini")


def test_scoring_a_local_folder_leaves_everything_and_predicts_nothing_twice(tmp_path, monkeypatch):
    tiny(tmp_path)
    encoder = encoders.load(str(tmp_path / "model"))
    names = ["nevir_mini", "cannot_wmt_mini"]
    first = scoring.score(BiEncoder(encoder), names, tmp_path / "run")
    folder = scoring.folder_of(tmp_path / "run", "model")
    assert {file.name for file in folder.glob("*.parquet")} == {f"{name}_test.parquet" for name in names}
    about = scoring.about(tmp_path / "run", "model")
    assert (about["architecture"], about["fingerprint"]) == ("bi-encoder", encoder.fingerprint)
    assert about["parameters"] == sum(weights.numel() for weights in encoder.model.parameters()) / 1e6
    assert ((first.summary.ci_low <= first.summary.value) & (first.summary.value <= first.summary.ci_high)).all()
    assert first.summary.n.tolist() == [100, 200, 200], "a correlation both ways"
    monkeypatch.setattr(Benchmark, "predict", lambda *_: pytest.fail("predicted again"))
    again = scoring.score(BiEncoder(encoder), names, tmp_path / "run")
    pd.testing.assert_frame_equal(first.summary.drop(columns="seconds"), again.summary.drop(columns="seconds"))
    monkeypatch.setattr(scoring, "CODE_VERSION", scoring.CODE_VERSION + 1)
    with pytest.raises(pytest.fail.Exception, match="predicted again"):
        scoring.score(BiEncoder(encoder), names, tmp_path / "run")


def test_without_embeddings_a_system_only_chooses(tmp_path):
    assert scoring.scorable(rankers.Chance(), catalogue.names("official")) == ["semantoneg", "nevir", "excluir"]
    with pytest.raises(scoring.ScoreError, match=r"Random \(chance\) can't do cannot_wmt_mini"):
        scoring.score(rankers.Chance(), ["nevir_mini", "cannot_wmt_mini"], tmp_path)
    assert not (tmp_path / "scores").exists()


def test_two_towers_without_a_default_route_are_scored_on_search_alone(tiny_encoder_folder, tmp_path):
    towers = [list(SentenceTransformer(str(tiny_encoder_folder), device="cpu")) for _ in range(2)]
    router = Router.for_query_document(*towers, None, allow_empty_key=False)
    SentenceTransformer(modules=[router], device="cpu").save(str(tmp_path / "towers"))
    system = systems.load(str(tmp_path / "towers"), device="cpu")
    names = ["semantoneg_mini", "nevir_mini", "stsb_mini"]
    assert scoring.scorable(system, [*names, "negation_profile"]) == ["nevir_mini"]
    assert scoring.score(system, ["nevir_mini"], tmp_path).summary.n[0] == 100
    with pytest.raises(scoring.ScoreError, match=r"towers \(bi-encoder\) can't do semantoneg_mini: its two towers"):
        scoring.score(system, names[:1], tmp_path)


@pytest.mark.official
def test_tf_idf_gets_its_published_score_and_chance_a_quarter(tmp_path):
    values = {}
    for ranker in (rankers.TfIdf(), rankers.Chance()):
        values[ranker.name] = scoring.score(ranker, ["nevir"], tmp_path).summary.iloc[0]
    assert round(values["TF-IDF"].value, 1) == published.printed(
        "weller", "Table 2", system="TF-IDF", metric="pairwise_accuracy"
    )
    assert values["Random"].ci_low < 25 < values["Random"].ci_high


def test_late_interaction_also_leaves_its_alignment_with_both_passages(tmp_path, tiny_encoder):
    ranker = rankers.token_maxsim(tiny_encoder)
    scoring.describe(ranker, tmp_path)
    table = artefacts.read_table(scoring.folder_of(tmp_path, ranker.name) / "alignment.csv", keep_default_na=False)
    assert table.document.unique().tolist() == ["negated", "edited"]
    assert table[table.document == "negated"].groupby("query_place").greatest.sum().eq(1).all()


def test_items_need_ids_of_their_own(tmp_path):
    for ids in (["1", "1"], ["1", None]):
        table = pd.DataFrame({"id": ids, "cluster": [0, 1], "correct": [True, False]})
        with pytest.raises(scoring.ScoreError, match=r"nevir_mini \(test\): an item has no id"):
            scoring.save_predictions(table, tmp_path, "system", "nevir_mini")


def test_systems_scored_on_the_whole_benchmark_are_compared(tmp_path):
    leave(tmp_path, weak=[True] * 5 + [False] * 15, strong=[True] * 18 + [False] * 2)
    predictions = scoring.load_predictions_for(tmp_path, ["weak", "absent", "strong"], "nevir_mini")
    assert list(predictions) == ["weak", "strong"]
    table = scoring.accuracies(predictions).set_index("system")
    assert table.value.to_dict() == {"weak": 25.0, "strong": 90.0}
    assert ((table.low < table.value) & (table.value < table.high) & (table.n == 20)).all()
    for names, message in [(["absent"], "No predictions at .*absent"), ([], "No system is named")]:
        with pytest.raises(scoring.ScoreError, match=message):
            scoring.load_predictions_for(tmp_path, names, "nevir_mini")


def test_parts_of_a_benchmark_with_parts_and_splits():
    rng = np.random.default_rng(0)
    table = similarities(rng.normal(size=40), rng.normal(size=40)).assign(part=["CANNOT", "WMT"] * 20)
    parts = scoring.parts({"test": table, "eval": table.assign(id="e" + table.id)})
    sizes = {("test", ""): 40, ("eval", ""): 40, ("test+eval", ""): 80, ("test", "CANNOT"): 20, ("test", "WMT"): 20}
    assert {part: len(table) for part, table in parts.items()} == sizes
    assert parts["test+eval", ""].cluster.nunique() == 80
    perfect = parts["test", ""].assign(similarity=parts["test", ""].score ** 3)
    assert scoring.measure(perfect)["value"] == pytest.approx(100)


@pytest.mark.filterwarnings("error")
def test_one_number_for_every_pair_correlates_with_nothing_and_without_a_warning():
    truth = np.arange(9.0)
    table = similarities(1.0, truth)
    measured, change = scoring.measure(table), scoring.change(table, table.assign(similarity=truth))
    assert np.isnan([measured[key] for key in ("value", "ci_low", "ci_high")]).all() and measured["n"] == 9
    assert np.isnan([change[key] for key in ("before", "difference", "low", "high")]).all() and change["after"] == 100


def test_scores_become_measurements_by_keys(tmp_path):
    tables = {"nevir": outcomes([True, False]), "nevir_mini": outcomes([True]), "excluir": outcomes([True])}
    curved = tables["cannot_wmt"] = similarities([0.0, 0.1, 0.2, 9.0])  # in the right order, on no line
    scored = pd.DataFrame(
        row for name, table in tables.items() for row in scoring.summarise(catalogue.get(name), {"test": table})
    )
    table = results.record(scored, system="mine", scale="official")
    assert table[["benchmark", "corpus", "split", "sample", "metric", "n"]].to_numpy().tolist() == [
        ["nevir", "nevir", "test", "", "right_rank", 2],
        ["nevir", "nevir_mini", "test", "", "right_rank", 1],
        ["excluir", "excluir", "test", "", "right_rank", 1],
        ["cannot_wmt", "cannot_wmt", "test", "", "spearman", 4],
        ["cannot_wmt", "cannot_wmt", "test", "", "pearson", 4],
    ]
    assert table.value[3:].tolist() == pytest.approx(
        [100, 100 * np.corrcoef(curved.score, curved.similarity)[0, 1]], abs=1e-3
    )


def test_what_a_system_was_trained_on_is_said_by_its_sidecar_and_not_by_its_name(tmp_path):
    swept = {"base": "all-mpnet-base-v2", "variant": "both", "seed": 1}
    records = {
        "nevir-s1": {"training_data": "nevir", "training_items": 40, "variant": "", "seed": 1},
        "both-s1": {"training_data": "both", "training_items": 1600, **swept},
    }
    for name, record in records.items():
        artefacts.write_json(tmp_path / f"{name}.json", record)
    assert scoring.training(tmp_path / "nevir-s1") == {"trained_on": "nevir", "training_items": 40}
    assert scoring.training(tmp_path / "both-s1") == {"trained_on": "both", "training_items": 1600, **swept}
    assert scoring.training("data/adapters/hedge-mpnet")["trained_on"] == "both", "a shipped LoRA"
    for other in (tmp_path / "elsewhere" / "nevir-s1", "sentence-transformers/all-mpnet-base-v2@9a32"):
        assert scoring.training(other)["trained_on"] == ""


def test_two_models_of_one_name_are_kept_apart_and_new_weights_replace_old_ones(tmp_path, tiny_encoder):
    def system(folder, fingerprint):
        return BiEncoder(replace(tiny_encoder, name="final", source=folder, fingerprint=fingerprint))

    run, score = tmp_path / "run", scoring.score
    score(system("A/final", "1"), ["nevir_mini", "excluir_mini"], run)
    score(system("A/final", "1"), ["nevir_mini"], run)
    with pytest.raises(scoring.ScoreError, match=r"another final, from A/final; this one is from B/final"):
        score(system("B/final", "2"), ["nevir_mini"], run)
    assert scoring.load_predictions(run, "final", "excluir_mini").id.is_unique
    score(system("A/final", "3"), ["nevir_mini"], run)
    with pytest.raises(scoring.ScoreError, match="No predictions"):
        scoring.load_predictions(run, "final", "excluir_mini")


def test_comparing_two_systems():
    before, after = outcomes([True, False] * 50), outcomes([True, True] * 50)
    change = scoring.change(before, after.sample(frac=1, random_state=0))  # matched by id, not by position
    assert change["difference"] == 50 and 0 < change["low"] < 50 < change["high"]
    same = scoring.change(before, before)
    assert (same["difference"], same["low"], same["high"]) == (0, 0, 0)
    one = scoring.change(outcomes([True, False] * 50, [0] * 50 + [1] * 50), outcomes([True] * 100, [0] * 50 + [1] * 50))
    assert one["high"] - one["low"] < change["high"] - change["low"]  # the two clusters changed alike
    with pytest.raises(scoring.ScoreError, match="different items"):
        scoring.change(before, after.head(99))
    assert scoring.change_replicates(before, after).mean() == pytest.approx(0.5, abs=0.01)
    truth = np.arange(50.0)
    table = similarities(-truth, truth)
    change = scoring.change(table, table.assign(similarity=truth))
    assert change["before"] == pytest.approx(-100) and change["difference"] == pytest.approx(200)


def test_systems_are_compared_with_a_baseline(tmp_path):
    leave(tmp_path, base=[False] * 12, better=[True] * 12, same=[False] * 12)
    changes = scoring.compare(tmp_path, "base", ["better", "same"], ["nevir_mini", "excluir_mini"])
    assert changes.task.tolist() == 2 * ["nevir_mini"], "what none was scored on is left out"
    assert changes.set_index("encoder").difference.to_dict() == {"better": 100, "same": 0}
    for others, complete in [(["better"], True), (["absent"], False)]:
        with pytest.raises(scoring.ScoreError, match="No predictions at "):
            scoring.compare(tmp_path, "base", others, ["nevir_mini", "excluir_mini"], complete=complete)


def test_every_two_systems_are_compared_by_mcnemar():
    half, reordered = outcomes([True] * 10 + [False] * 10), outcomes([True] * 20).iloc[::-1]
    compared = scoring.mcnemar_tests({"a": half, "b": reordered, "c": outcomes([False] * 20)})
    assert list(zip(compared.baseline, compared.encoder, strict=True)) == [("a", "b"), ("a", "c"), ("b", "c")]
    changes = compared[["difference", "only_first", "only_second"]].to_numpy().tolist()
    assert changes == [[50, 0, 10], [-50, 10, 0], [-100, 20, 0]]
    assert compared.p.tolist() == pytest.approx([2 * 2 * 0.5**10, 2 * 2 * 0.5**10, 3 * 2 * 0.5**20])
