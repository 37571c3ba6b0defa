"""Scores of any system: what is left, intervals, comparisons, results."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from support.benchmarks import Written, question, run
from support.close import assert_close
from support.encoders import fitted_adapter, tiny

from nblib import artefacts, corpora
from nblib.benchmarks import base, catalogue, efficiency, general, nevir, scoring
from nblib.errors import StudyError
from nblib.models import embeddings, encoders, rankers
from nblib.models.negation_adapter import adapt
from nblib.models.registry import ModelError
from nblib.models.systems import BiEncoder
from nblib.results import measurements, published

PAIRS = catalogue.get("nevir_mini")


def test_dev_splits_are_left_out_where_they_are_not_wanted(tmp_path, tiny_encoder):
    scored = scoring.score(BiEncoder(tiny_encoder), ["stsb_mini"], tmp_path, dev_splits=False)
    assert set(scored.predictions) == {("stsb_mini", "test")}


@pytest.mark.official
def test_a_samples_predictions_are_found_in_the_whole_tasks(tmp_path):
    ids = catalogue.get("nevir").rows("test").id.unique()
    scoring.save_predictions(pd.DataFrame({"id": ids, "cluster": ids, "correct": True}), tmp_path, "base", "nevir")
    assert len(scoring.load_predictions(tmp_path, "base", "nevir_sample")) == 100


def similarities(similarity, score=(0.0, 1.0, 2.0, 3.0)):
    """Predictions of a correlation."""
    ids = [str(place) for place in range(len(score))]
    return pd.DataFrame({"id": ids, "cluster": ids, "part": "x", "score": score, "similarity": similarity})


def outcomes(correct, cluster=None):
    places = range(len(correct))
    return pd.DataFrame({"id": [str(k) for k in places], "cluster": cluster or places, "correct": correct})


def evaluated(name, predictions):
    """A task as after an evaluation."""
    task = catalogue.get(name)
    task.predictions = {"test": predictions}
    return task


def test_rows_that_share_a_text_are_one_cluster():
    assert base.shared_text_clusters(["a", "b", "c", "x"], ["b", "d", "e", "y"]) == [0, 0, 1, 2]


def test_scoring_a_local_folder_leaves_everything_and_repeats_from_the_cache(tmp_path, monkeypatch):
    tiny(tmp_path)
    encoder = encoders.load(str(tmp_path / "model"))
    names = ["nevir_mini", "cannot_wmt_mini"]
    first = scoring.score(BiEncoder(encoder), names, tmp_path / "run")
    folder = scoring.folder_of(tmp_path / "run", "model")
    assert {file.name for file in folder.glob("*.parquet")} == {f"{name}_test.parquet" for name in names}
    assert len(list(folder.glob(f"mteb/results/*/{encoder.fingerprint}/nevir_mini.json"))) == 1
    assert json.loads((folder / "system.json").read_text())["fingerprint"] == encoder.fingerprint
    assert ((first.summary.ci_low <= first.summary.value) & (first.summary.value <= first.summary.ci_high)).all()
    assert first.summary.n.tolist() == [100, 200, 200], "a correlation both ways"

    def fail(*_, **__):
        raise AssertionError("encoded again")

    monkeypatch.setattr(encoder.model, "encode", fail)
    again = scoring.score(BiEncoder(encoder), names, tmp_path / "run")
    pd.testing.assert_frame_equal(first.summary.drop(columns="seconds"), again.summary.drop(columns="seconds"))


@pytest.fixture
def without_weights(tmp_path):
    """An encoder of a run, scored, with its weights removed: its summary, and its folder."""
    tiny(tmp_path / "run" / "encoders")
    folder = tmp_path / "run" / "encoders" / "model"
    system = scoring.find_system(str(folder), tmp_path / "run")
    summary = scoring.score(system, ["nevir_mini", "stsb_mini"], tmp_path / "run").summary
    shutil.rmtree(folder)
    return summary, folder


def test_without_its_weights_an_encoders_predictions_are_shown(without_weights, tmp_path):
    summary, folder = without_weights
    system = scoring.find_system(str(folder), tmp_path / "run")
    stored = scoring.score(system, ["nevir_mini", "stsb_mini"], tmp_path / "run")
    pd.testing.assert_frame_equal(stored.summary.drop(columns="seconds"), summary.drop(columns="seconds"))
    assert (system.name, system.kind, efficiency.parameters(system)) == (
        "model",
        "bi-encoder",
        pytest.approx(0.02, abs=1),
    )
    with pytest.raises(ModelError, match="The weights of model aren't here"):
        system.score(["a"], ["b"])
    with pytest.raises(ModelError, match="No encoder called"):
        scoring.find_system(str(folder.with_name("unscored")), tmp_path / "run")


@pytest.mark.parametrize("what", ["damage", "items", "fingerprint"])
def test_stored_predictions_that_are_not_whole_are_named(what, without_weights, tmp_path):
    folder = scoring.folder_of(tmp_path / "run", "model")
    file = folder / "nevir_mini_test.parquet"
    if what == "damage":
        file.write_bytes(b"PAR1")
    elif what == "items":
        artefacts.write_table(artefacts.read_table(file).head(3), file)
    else:
        artefacts.write_json(folder / "system.json", {"name": "model", "kind": "bi-encoder", "fingerprint": None})
    said = {
        "damage": "nevir_mini_test.parquet can't be read, it is damaged",
        "items": "on other items",
        "fingerprint": "neither the weights",
    }
    with pytest.raises(StudyError, match=said[what]):
        scoring.score(scoring.find_system(str(without_weights[1]), tmp_path / "run"), ["nevir_mini"], tmp_path / "run")


def test_views_of_a_benchmark_with_parts_and_splits():
    rng = np.random.default_rng(0)

    def split(name):
        return pd.DataFrame({"id": [f"{name}{k}" for k in range(40)], "cluster": range(40), "part": ["CANNOT", "WMT"] * 20,
                             "score": rng.normal(size=40), "similarity": rng.normal(size=40)})  # fmt: skip

    views = scoring.views({"test": split("t"), "eval": split("e")})
    assert {name: len(table) for name, table in views.items()} == {
        "test": 40, "eval": 40, "test + eval": 80, "CANNOT part of test": 20, "WMT part of test": 20}  # fmt: skip
    assert views["test + eval"].cluster.nunique() == 80
    perfect = views["test"].assign(similarity=views["test"].score ** 3)
    assert scoring.measure(perfect)["value"] == pytest.approx(100)


def test_comparing_two_encoders():
    before, after = outcomes([True, False] * 50), outcomes([True, True] * 50)
    change = scoring.change(before, after.sample(frac=1, random_state=0))  # matched by id, not by place
    assert change["difference"] == 50 and 0 < change["low"] < 50 < change["high"]
    same = scoring.change(before, before)
    assert (same["difference"], same["low"], same["high"]) == (0, 0, 0)
    one = scoring.change(outcomes([True, False] * 50, [0] * 50 + [1] * 50), outcomes([True] * 100, [0] * 50 + [1] * 50))
    assert one["high"] - one["low"] < change["high"] - change["low"]  # the two clusters changed alike
    with pytest.raises(scoring.ScoreError, match="different items"):
        scoring.change(before, after.head(99))


def leave(folder, **systems):
    for name, correct in systems.items():
        scoring.save_predictions(outcomes(correct), folder, name, "nevir_mini")


def test_systems_are_compared_with_a_baseline(tmp_path):
    leave(tmp_path, base=[False] * 12, better=[True] * 12, same=[False] * 12)
    changes = scoring.compare(tmp_path, "base", ["better", "same"], ["nevir_mini", "excluir_mini"])
    assert list(changes.columns) == scoring.CHANGES, "what none was scored on is left out"
    assert changes.set_index("encoder").difference.to_dict() == {"better": 100, "same": 0}
    tested = scoring.compare(tmp_path, "base", ["better", "same"], ["nevir_mini"], test="mcnemar", correction="holm")
    assert tested.p.tolist() == pytest.approx([2 * 2 * 0.5**12, 1]), "two-sided binomial, times two tests"
    assert tested[["only_first", "only_second"]].to_numpy().tolist() == [[0, 12], [0, 0]]
    leave(tmp_path / "sweep", other=[True] * 12)
    options = {"others_dir": tmp_path / "sweep"}
    assert scoring.compare(tmp_path, "base", ["other"], ["nevir_mini"], **options).after.tolist() == [100]
    with pytest.raises(scoring.ScoreError, match=r"No predictions at .*excluir_mini"):
        scoring.compare(tmp_path, "base", ["better"], ["nevir_mini", "excluir_mini"], complete=True)
    with pytest.raises(scoring.ScoreError, match=r"No predictions at .*absent"):
        scoring.compare(tmp_path, "base", ["absent"], ["nevir_mini"])
    with pytest.raises(scoring.ScoreError, match="no p values"):
        scoring.compare(tmp_path, "base", ["better"], ["nevir_mini"], correction="holm")


def test_every_two_systems_are_compared_where_there_is_no_baseline(tmp_path):
    half = [True] * 10 + [False] * 10
    leave(tmp_path, a=half, b=half, c=half[::-1])
    how = {"test": "mcnemar", "correction": "holm"}
    compared = scoring.compare(tmp_path, None, ["a", "b", "c"], ["nevir_mini"], **how)
    assert list(zip(compared.baseline, compared.encoder, strict=True)) == [("a", "b"), ("a", "c"), ("b", "c")]
    counts = compared[["difference", "only_first", "only_second", "p"]].to_numpy().tolist()
    assert counts == [[0, 0, 0, 1], [0, 10, 10, 1], [0, 10, 10, 1]]
    leave(tmp_path, b=[True] * 20, c=[False] * 20)
    corrected = scoring.compare(tmp_path, None, ["a", "b", "c"], ["nevir_mini"], **how)
    assert corrected.p.tolist() == pytest.approx([2 * 2 * 0.5**10, 2 * 2 * 0.5**10, 3 * 2 * 0.5**20])


def test_items_are_matched_by_id_not_by_place(tmp_path):
    leave(tmp_path, a=[True, False])
    scoring.save_predictions(outcomes([True, False]).iloc[::-1], tmp_path, "b", "nevir_mini")
    table = scoring.compare(tmp_path, None, ["a", "b"], ["nevir_mini"], test="mcnemar")
    assert table.loc[0, ["only_first", "only_second"]].tolist() == [0, 0]
    leave(tmp_path, b=[True])
    with pytest.raises(scoring.ScoreError, match="different items"):
        scoring.compare(tmp_path, None, ["a", "b"], ["nevir_mini"], test="mcnemar")


def test_comparing_correlations():
    truth = np.arange(50.0)
    table = pd.DataFrame({"id": truth.astype(str), "cluster": range(50), "score": truth, "similarity": -truth})
    change = scoring.change(table, table.assign(similarity=truth))
    assert change["before"] == pytest.approx(-100) and change["difference"] == pytest.approx(200)


@pytest.mark.filterwarnings("error")
def test_one_number_for_every_pair_correlates_with_nothing_and_without_a_warning():
    truth = np.arange(9.0)
    table = pd.DataFrame({"id": truth.astype(str), "cluster": range(9), "score": truth, "similarity": 1.0})
    measured, change = scoring.measure(table), scoring.change(table, table.assign(similarity=truth))
    assert np.isnan([measured[key] for key in ("value", "ci_low", "ci_high")]).all() and measured["n"] == 9
    assert np.isnan([change[key] for key in ("before", "difference", "low", "high")]).all() and change["after"] == 100


def test_missing_predictions_name_the_command(tmp_path):
    with pytest.raises(scoring.ScoreError, match=r"Make them: nblib score nobody --data official"):
        scoring.load_predictions(tmp_path, "nobody", "nevir")


def test_the_worst_errors_come_first(tmp_path):
    _, predictions = run(catalogue.get("nevir_mini"), tiny(tmp_path))
    worst = scoring.errors("nevir_mini", predictions["test"], 3)
    assert worst.margin.tolist() == sorted(predictions["test"].margin)[:3]
    table = corpora.load("nevir_mini").set_index("id").loc[worst.id]
    assert all(q in {a, b} for q, a, b in zip(worst["query"], table.q1, table.q2, strict=True))


def test_a_correlation_is_measured_both_ways_and_a_choice_one():
    curved = similarities([0.0, 0.1, 0.2, 9.0])  # in the right order, on no line
    rows = {row["metric"]: row for row in scoring.summarise(evaluated("cannot_wmt", curved))}
    assert list(rows) == list(scoring.CORRELATIONS)
    assert rows["spearman"]["value"] == pytest.approx(100)
    assert rows["pearson"]["value"] == pytest.approx(100 * np.corrcoef(curved.score, curved.similarity)[0, 1])
    (row,) = scoring.summarise(evaluated("nevir", outcomes([True, False, False, False])))
    assert (row["metric"], row["value"], row["n"]) == ("right_rank", 25, 4)
    assert scoring.metrics_of(catalogue.get("semantoneg")) == ("accuracy",)


def test_the_interval_is_that_of_the_metric():
    rng = np.random.default_rng(0)
    noisy = similarities(np.exp(3 * rng.normal(size=200)), rng.normal(size=200))
    noisy["similarity"] *= np.exp(noisy.score)
    for metric in scoring.CORRELATIONS:
        found = scoring.measure(noisy, metric)
        assert found["ci_low"] < found["value"] < found["ci_high"]
    rho, r = (scoring.measure(noisy, metric) for metric in scoring.CORRELATIONS)
    assert (rho["ci_low"], rho["ci_high"]) != (r["ci_low"], r["ci_high"])


def test_the_scores_are_measurements_of_the_system_by_its_own_name():
    scored = pd.concat([
        pd.DataFrame(scoring.summarise(evaluated(name, table)))
        for name, table in [("nevir", outcomes([True, False])), ("nevir_mini", outcomes([True])),
                            ("excluir_sample", outcomes([True])),
                            ("cannot_wmt", similarities([3.0, 1.0, 2.0, 0.0]))]
    ])  # fmt: skip
    rows = scoring.result_rows(scored, "mine", "official", trained_on="40 pairs", fingerprint="abc")
    table = measurements.validate(pd.DataFrame(rows), "here")
    assert set(table.system) == {"mine"} and set(table.trained_on) == {"40 pairs"} and set(table.fingerprint) == {"abc"}
    assert table[["benchmark", "metric", "data", "n"]].to_numpy().tolist() == [
        ["NevIR", "right_rank", "nevir test", 2], ["NevIR (mini)", "right_rank", "nevir_mini", 1],
        ["ExcluIR", "right_rank", "excluir test, a sample of 100 pairs", 1], ["CANNOT-WMT", "spearman", "cannot_wmt test", 4],
        ["CANNOT-WMT", "pearson", "cannot_wmt test", 4],
    ]  # fmt: skip


def test_one_answer_to_every_pair_is_no_measurement():
    scored = pd.DataFrame(scoring.summarise(evaluated("cannot_wmt", similarities([1.0] * 4))))
    assert len(scored) == 2 and scored.value.isna().all()
    assert scoring.result_rows(scored, "mine", "official") == []


def test_what_a_system_was_trained_on_stands_in_the_sidecars_of_its_run(tmp_path):
    for name, about in {
        "hedge": {"base": "all-mpnet-base-v2", "training_data": "both", "anchors_used": 1600},
        "nevir": {"base": "all-mpnet-base-v2", "training_data": "NevIR", "pairs": 40},
        "again": {"base": "runs/official/encoders/hedge", "training_data": "NevIR", "pairs": 40},
    }.items():
        artefacts.write_json(tmp_path / "encoders" / f"{name}.json", about)
    hedge, pairs, again = (scoring.trained_on(tmp_path, name) for name in ("hedge", "nevir", "again"))
    assert "authored negations and hedges" in hedge and "1,600" in hedge
    assert "NevIR's training pairs" in pairs and "40" in pairs
    assert again == f"{hedge}, then {pairs}"
    for name, loras in {"soup": ["hedge-lora", "nevir-lora"], "alike": ["hedge-lora", "hedge-lora"]}.items():
        artefacts.write_json(tmp_path / "encoders" / f"{name}.json", {"base": "all-mpnet-base-v2", "merged": loras})
    assert scoring.trained_on(tmp_path, "soup") == f"{hedge} and {pairs}"
    assert scoring.trained_on(tmp_path, "alike") == hedge
    assert scoring.trained_on(tmp_path, "hedge+adapter").startswith(f"{hedge}, then an adapter")
    assert scoring.trained_on(tmp_path, "all-mpnet-base-v2+adapter").startswith("an adapter")
    assert scoring.trained_on(tmp_path, "all-mpnet-base-v2") == ""
    artefacts.write_json(tmp_path / "trainings" / "lora" / "training.json", {"training_data": "both", "pairs": 1600})
    assert scoring.trained_on(tmp_path, "lora") == "authored negations and hedges (1,600 pairs)", (
        "by its training record"
    )


def test_hub_results_are_kept_by_model_and_not_run_again(tmp_path, monkeypatch):
    monkeypatch.setattr(general, "hub_tasks", lambda benchmark: [catalogue.get("nevir_mini")])
    encoder = tiny(tmp_path)
    first = scoring.score_hub(BiEncoder(encoder), "MTEB-lite", tmp_path / "run")
    assert first[["task", "type"]].values.tolist() == [["nevir_mini", "Reranking"]] and 0 <= first.value.item() <= 100
    monkeypatch.setattr(nevir.NevIR, "load_data", None)
    pd.testing.assert_frame_equal(scoring.score_hub(BiEncoder(encoder), "MTEB-lite", tmp_path / "run"), first)


# --- systems without embeddings ---------------------------------------------------------------------------------------


def test_of_several_negatives_the_nearest_counts_and_is_named():
    asked = pd.DataFrame([question(item, "input", query, "x", ["y", "z"]) for item, query in [("1", "a"), ("2", "b")]])
    given = {("a", "x"): 1.0, ("a", "z"): 2.0, ("b", "x"): 5.0, ("b", "y"): 4.0}
    predicted = scoring.predict(Written(given), PAIRS, asked)
    assert predicted.nearest_negative.tolist() == [1, 0]
    assert predicted.margin.tolist() == [-1, 1] and predicted.correct.tolist() == [False, True]


def test_what_is_left_is_what_the_scores_say(tmp_path):
    names = ["semantoneg_mini", "nevir_mini", "excluir_mini"]
    done = scoring.score(rankers.TfIdf(), names, tmp_path)
    for name in names:
        kept = scoring.load_predictions(tmp_path, "TF-IDF", name)
        pd.testing.assert_frame_equal(kept, done.predictions[name, "test"])
        row = done.summary[done.summary.task == name].iloc[0]
        assert row.value == pytest.approx(100 * kept.correct.mean()) and row.ci_low <= row.value <= row.ci_high
    table = corpora.load("nevir_mini")
    assert done.summary.set_index("task").pairs["nevir_mini"] == 4 * len(table)
    about = artefacts.read_json(tmp_path / "scores" / "TF-IDF" / "system.json")
    fingerprint = about.pop("fingerprint")
    assert len(fingerprint) == 64 and fingerprint == rankers.TfIdf().fingerprint != rankers.Chance().fingerprint
    expected = {
        "name": "TF-IDF",
        "kind": "tf-idf",
        "source": "scikit-learn",
        "base": None,
        "parameters": None,
        "trained_on": "",
    }
    assert about == expected == {key: scoring.about(tmp_path, "TF-IDF")[key] for key in expected}


def test_a_ranker_and_an_encoder_are_compared_item_by_item(tmp_path, tiny_encoder):
    scoring.score(rankers.Chance(), ["nevir_mini"], tmp_path)
    scoring.score(BiEncoder(tiny_encoder), ["nevir_mini"], tmp_path)
    before, after = (scoring.load_predictions(tmp_path, name, "nevir_mini") for name in ("Random", tiny_encoder.name))
    assert list(before.columns) == list(after.columns)
    assert scoring.change(before, after)["n"] == len(before)


def test_only_pairwise_tasks_are_ranked(tmp_path):
    assert scoring.scorable(rankers.Chance(), catalogue.names("official")) == ["semantoneg", "nevir", "excluir"]
    with pytest.raises(scoring.ScoreError, match=r"Random \(chance\) can't do cannot_wmt_mini"):
        scoring.score(rankers.Chance(), ["nevir_mini", "cannot_wmt_mini"], tmp_path)
    assert not (tmp_path / "scores").exists()


@pytest.mark.parametrize("nonsense", [[1.0], [1.0, np.nan], [[1.0], [2.0]]])
def test_scores_no_ranking_can_be_made_of_are_refused(nonsense):
    class Broken(Written):
        def score(self, queries, documents):
            return np.array(nonsense)

    with pytest.raises(scoring.ScoreError, match="written gave"):
        scoring.predict(Broken(), PAIRS, pd.DataFrame([question()]))


@pytest.mark.official
def test_tf_idf_gets_its_published_score_and_chance_a_quarter(tmp_path):
    values = {}
    for ranker in (rankers.TfIdf(), rankers.Chance()):
        values[ranker.name] = scoring.score(ranker, ["nevir"], tmp_path).summary.iloc[0]
    assert round(values["TF-IDF"].value, 1) == published.value("weller", "Table 2", "TF-IDF", "pairwise_accuracy")
    assert values["Random"].ci_low < 25 < values["Random"].ci_high


def test_alignments_are_of_both_passages(tiny_encoder):
    table = scoring.align(rankers.token_maxsim(tiny_encoder))
    assert table.document.unique().tolist() == ["negated", "edited"]
    assert table[table.document == "negated"].groupby("query_place").greatest.sum().eq(1).all()


# --- an encoder with an adapter ---------------------------------------------------------------------------------------


def test_an_adapted_encoder_reads_its_bases_cache(tmp_path, monkeypatch):
    encoder, texts = tiny(tmp_path), ["the boat is red", "the boat is not red"]
    adapted = adapt(encoder, fitted_adapter())
    inside = adapted.model.encode(texts)
    embeddings.encode(encoder, texts)
    monkeypatch.setattr(encoder.model, "encode", None)
    assert_close(embeddings.encode(adapted, texts), inside)
    assert adapted.fingerprint != encoder.fingerprint
    assert (adapted.name, adapted.spec.similarity) == ("tiny+adapter", "dot")
