"""The trainings of a sweep beside their base."""

import pandas as pd
import pytest

from nblib import artefacts
from nblib.analysis import training_comparison
from nblib.benchmarks import catalogue, scoring
from nblib.results import measurements


@pytest.fixture
def run(tmp_path):
    """A run with two encoders: the base knows nothing, a tuned one (two seeds) all but a part."""

    def leave(name, right):
        for task in catalogue.names("mini"):
            rows = pd.DataFrame({"id": [str(k) for k in range(4)], "cluster": range(4)})
            if catalogue.get(task).metric == "spearman":
                rows = rows.assign(score=[0.0, 1.0, 2.0, 3.0], similarity=[0.0, 1.0, 2.0, 3.0][:: 1 if right else -1])
            else:
                rows = rows.assign(correct=[True] * right + [False] * (4 - right))
            scoring.save_predictions(rows, tmp_path, name, task)

    leave("base", 0)
    for seed, right in [(0, 2), (1, 4)]:
        leave(f"both-s{seed}", right)
        about = {"base": "base", "training_data": "both", "seed": seed, "alpha": 1.0}
        artefacts.write_json(tmp_path / "encoders" / f"both-s{seed}.json", about)
    leave("both-s0+adapter", 3)
    artefacts.write_json(scoring.folder_of(tmp_path, "both-s0+adapter") / "system.json", {"base": "both-s0"})
    return tmp_path


def test_seeds_of_a_variant_are_averaged_with_their_extremes(run):
    collected = training_comparison.collect(run, ["base", "both-s0", "both-s1"], "mini")
    both = training_comparison.over_seeds(collected).query("variant == 'both' and benchmark == 'NevIR'").iloc[0]
    assert (both.value, both.low, both.high, both.seeds) == (75, 50, 100, 2)
    assert collected[collected.encoder == "both-s1"].training_data.unique() == ["both"]


def test_an_adapter_was_put_on_what_its_scores_say(run):
    collected = training_comparison.collect(run, ["base", "both-s0", "both-s0+adapter"], "mini")
    assert collected.groupby("encoder").base.first().to_dict() == {
        "base": "base", "both-s0": "base", "both-s0+adapter": "both-s0",
    }  # fmt: skip


def test_the_negation_average_is_that_of_three_benchmarks(run):
    collected = training_comparison.collect(run, ["both-s0"], "mini").set_index("benchmark").value
    assert collected["negation average"] == pytest.approx((50 + 50 + 100) / 3)


def test_only_the_named_benchmarks_are_collected_and_compared(run):
    named = ["nevir", "excluir", "cannot_wmt", "stsb"]
    collected = training_comparison.collect(run, ["base", "both-s0"], "mini", named)
    assert set(collected.benchmark) == {"NevIR", "ExcluIR", "CANNOT-WMT", "STSB", "negation average"}
    scoring.predictions_file(run, "both-s0", "m3_mini").unlink()
    changes = training_comparison.changes(run, "base", run, ["both-s0"], "mini", named)
    assert set(changes.task) == {"nevir_mini", "excluir_mini", "cannot_wmt_mini", "stsb_mini"}
    with pytest.raises(scoring.ScoreError):
        training_comparison.changes(run, "base", run, ["both-s0"], "mini")


def test_without_a_benchmark_of_the_average_it_says_which(run):
    with pytest.raises(scoring.ScoreError, match="The negation average also needs CANNOT-WMT, ExcluIR"):
        training_comparison.collect(run, ["both-s0"], "mini", ["nevir", "stsb"])


def test_relative_differences_are_percent_of_the_base():
    averaged = pd.DataFrame({"variant": ["base", "x"], "benchmark": ["NevIR"] * 2, "value": [10.0, 15.0]})
    (row,) = training_comparison.relative(averaged, "base").itertuples()
    assert (row.variant, row.relative, row.difference) == ("x", 50, 5)


def test_a_scores_metric_is_the_one_that_stands_beside_the_printed_numbers(run):
    metrics = training_comparison.collect(run, ["both-s0"], "mini").set_index("benchmark").metric
    assert metrics[["NevIR", "CANNOT-WMT", "STSB"]].tolist() == ["right_rank", "pearson", "spearman"]


def test_trainings_are_measured_over_their_seeds_and_the_base_is_not_measured_again(run):
    names = ["base", "both-s0", "both-s1"]
    averaged = training_comparison.over_seeds(training_comparison.collect(run, names, "mini"))
    rows = training_comparison.result_rows(averaged, "base", "mini", "quick")
    table = measurements.validate(pd.DataFrame(rows).fillna({"n": 0}), "here").set_index(["benchmark", "metric"])
    assert set(table.system) == {"base + both"} and len(table) == averaged.benchmark.nunique()
    nevir = table.loc[("NevIR (mini)", "right_rank")]
    assert (nevir.value, nevir.n) == (75, 4) and pd.isna(nevir.ci_low), "the seeds' range is no interval"
    assert nevir.data == "mini test, mean of 2 seeds (50.0 to 100.0)" and "both" in nevir.trained_on
    assert ("negation average (mini)", "mean") in table.index


def test_one_seed_has_its_own_interval_and_says_so(run):
    averaged = training_comparison.over_seeds(training_comparison.collect(run, ["both-s0"], "mini"))
    rows = training_comparison.result_rows(averaged, "base", "official", "toy")
    (row,) = [row for row in rows if row["benchmark"] == "NevIR"]
    assert row["data"] == "official test, one seed"
    assert row["ci_low"] < row["value"] == 50 < row["ci_high"]


def test_an_encoder_that_was_not_scored_is_named(tmp_path):
    with pytest.raises(scoring.ScoreError, match="nobody"):
        training_comparison.collect(tmp_path, ["nobody"], "mini")


def test_findings_speak_of_the_extremes():
    values = {"base": (10, 80), "both": (50, 70), "symmetric-supcon": (30, 79)}
    averaged = pd.DataFrame([
        {"variant": variant, "benchmark": benchmark, "value": value, "n": 10}
        for variant, pair in values.items()
        for benchmark, value in zip(["negation average", "STSB"], pair, strict=True)
    ])  # fmt: skip
    (sentence, *_) = training_comparison.findings(averaged, "base")
    assert "both 50.0 / 70.0; symmetric-supcon 30.0 / 79.0" in sentence


def test_seeds_are_averaged_before_two_trainings_are_compared(run):
    tables = [scoring.load_predictions(run, name, "nevir_mini") for name in ("both-s0", "both-s1")]
    found = training_comparison.change_over_seeds(tables[:1], tables)
    assert (found["before"], found["after"], found["difference"]) == (50, 75, 25)
    assert found["low"] <= 25 <= found["high"] and found["n"] == len(tables[0])


def test_the_frontier_has_a_point_per_variant_and_a_path_from_the_base_to_a_training():
    collected = pd.DataFrame([
        {"variant": variant, "alpha": alpha, "benchmark": benchmark, "value": value}
        for variant, alpha, value in [("base", None, 1.0), ("both", 1.0, 3.0), ("both", 1.0, 5.0), ("both-a050", 0.5, 2.0),
                                      ("size-25", 1.0, 2.5), ("lora", 1.0, 2.5)]
        for benchmark in ("negation average", "STSB", "NevIR")
    ])  # fmt: skip
    plane = training_comparison.frontier(collected, "base")
    assert plane.set_index("variant").STSB["both"] == 4, "the mean of two seeds"
    assert plane.set_index("variant").question.to_dict() == {
        "base": "the base", "both": "which part?", "both-a050": "which part?", "size-25": "how much?",
        "lora": "which loss, which method?",
    }  # fmt: skip
    path = training_comparison.interpolation_path(plane, "base")
    assert path.variant.tolist() == ["base", "both-a050", "both"]


def test_the_main_training_was_measured_on_most_items_and_so_was_its_base(tmp_path):
    for name, base in [("small", "base"), ("large", "base"), ("orphan", "unmeasured")]:
        artefacts.write_json(tmp_path / "encoders" / f"{name}.json", {"base": base, "seed": 0})
    rows = [("base", "", 900), ("small", "authored negations", 100), ("large", "authored negations", 200),
            ("orphan", "authored hedges", 999), ("nevir", "NevIR's training pairs", 999)]  # fmt: skip
    scores = pd.DataFrame(rows, columns=["system", "trained_on", "n"])
    assert training_comparison.main_training(tmp_path, scores) == ("base", "large")
    assert training_comparison.main_training(tmp_path, scores[scores.system != "base"]) is None
    assert training_comparison.main_training(tmp_path, scores[scores.trained_on == ""]) is None


def test_the_price_of_a_training_is_held_against_its_own_base():
    plane = pd.DataFrame(
        {"encoder": ["base", "a", "b"], "negation average": [25.0, 50.0, 40.0], "STSB": [82.0, 71.0, 79.0]}
    )
    assert (
        training_comparison.price(plane, "base") == "Highest on negation is a: negation average 25 → 50 %, STSB 82 → 71"
    )
    from_b = plane.assign(base=["base", "b", "base"])
    assert "40 → 50 %, STSB 79 → 71" in training_comparison.price(from_b, "base")


def test_the_extremes_are_named_for_negation_and_for_similarity():
    rows = [
        ("verbal", "negation average", 39),
        ("mixed", "negation average", 48),
        ("verbal", "STSB", 79),
        ("mixed", "STSB", 74),
    ]
    averaged = pd.DataFrame(rows, columns=["variant", "benchmark", "value"])
    assert training_comparison.extremes(averaged).endswith("mixed on negation average (48) and verbal on STSB (79)")
    assert training_comparison.extremes(averaged.iloc[:0]) == "No training of this size in this run"


def test_a_merged_encoder_has_no_seed(run):
    artefacts.write_json(run / "encoders" / "merged.json", {"base": "base", "method": "merged", "alpha": 1.0})
    about = training_comparison.settings(run, "merged")
    assert about["variant"] == "merged" and about["seed"] is None
