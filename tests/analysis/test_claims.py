"""The papers' claims: read with care, checked on what was measured, judged by one rule."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
import yaml

from nblib import results
from nblib.analysis import claims
from nblib.analysis.claims import (
    NOT_MEASURED,
    NOT_SUPPORTED,
    NOT_TESTABLE,
    PARTLY,
    SUPPORTED,
    VERDICTS,
    Claim,
    ClaimError,
    Outcome,
)  # fmt: skip
from nblib.benchmarks import scoring
from nblib.results import measurements, published

ENTRY = {field.name: "toy" for field in fields(Claim)} | {
    "paper": "weller", "exhibit": "Table 2", "most": SUPPORTED, "checks": [],
}  # fmt: skip


@pytest.fixture
def given(tmp_path, monkeypatch):
    """Claims of one's own in place of the papers'."""

    def give(*entries):
        file = tmp_path / "claims.yaml"
        file.write_text(yaml.safe_dump([{**ENTRY, **entry} for entry in entries]), encoding="utf-8")
        monkeypatch.setattr(claims, "FILE", file)
        claims.load.cache_clear()

    yield give
    claims.load.cache_clear()


def score(system, value, low, high, data="nevir test", **about):
    about = {"interval": (low, high), "data": data, "n": 1383, "scale": "toy"} | about
    return results.row(system, "NevIR", "right_rank", value, **about)


@pytest.fixture
def check(given, tmp_path):
    """The row of a claim with one check, on measurements of one's own."""

    def run(how, *rows, **entry):
        measured = measurements.validate(pd.DataFrame(list(rows), columns=results.COLUMNS), "here")
        given({"checks": [how], **entry})
        (row,) = claims.table(tmp_path, measured, results.scoreboard(measured, tmp_path, "toy")).itertuples()
        return row

    return run


# --- the file ---------------------------------------------------------------------------------------------------------


def test_the_papers_claims_are_read_and_each_says_what_would_refute_it():
    found = claims.load()
    assert 15 <= len(found) <= 25
    assert len({claim.id for claim in found}) == len(found)
    assert {claim.paper for claim in found} == set(published.PAPERS)
    for claim in found:
        texts = (claim.section, claim.claim, claim.refuted_by, claim.because, claim.needs)
        assert all(text.strip() for text in texts), claim.id
        assert claim.checks or claim.most == NOT_TESTABLE, f"{claim.id}: nothing checks it"


def test_a_check_of_the_file_names_benchmarks_and_printed_numbers_that_are_known():
    board = results.expected()
    for claim in claims.load():
        for one in claim.checks:
            if one["kind"] == "agrees":
                chosen = board[(board.paper == one["paper"]) & (board.exhibit == one["exhibit"])]
                for column in ("system", "metric"):
                    wanted = one.get(column, [])
                    assert set([wanted] if isinstance(wanted, str) else wanted) <= set(chosen[column]), claim.id
            if "task" in one:
                assert claims.catalogue.get(one["task"]), claim.id


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"colour": "red"}, "the claim toy can't be read .*colour"),
        ({"exhibit": "Table 99"}, "toy names an exhibit that exhibits.csv lacks: weller, Table 99"),
        ({"most": "proved"}, "toy has the verdict 'proved'; known: supported, partly, not supported"),
        ({"checks": [{"kind": "guess"}]}, "toy has an unknown check .*guess.*; known: change, "),
        ({"checks": [{"bound": 25}]}, "toy has an unknown check .*; known: change, "),
    ],
)
def test_a_claim_that_cannot_be_read_is_refused_by_its_id(given, entry, message):
    given({}, entry)
    with pytest.raises(ClaimError, match=rf"claims\.yaml: {message}") as refused:
        claims.load()
    assert "\n" not in str(refused.value)


def test_a_claim_without_what_refutes_it_is_refused(given, tmp_path):
    given({})
    entry = {key: value for key, value in ENTRY.items() if key != "refuted_by"}
    (tmp_path / "claims.yaml").write_text(yaml.safe_dump([entry]), encoding="utf-8")
    with pytest.raises(ClaimError, match=r"the claim toy can't be read .*refuted_by"):
        claims.load()


# --- the verdict ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("holding", "most", "verdict"),
    [
        ([True, True], SUPPORTED, SUPPORTED),
        ([True, False], SUPPORTED, PARTLY),
        ([False, False], SUPPORTED, NOT_SUPPORTED),
        ([], SUPPORTED, NOT_MEASURED),
        ([True, True], PARTLY, PARTLY),
        ([True, False], PARTLY, PARTLY),
        ([False], PARTLY, NOT_SUPPORTED),
        ([], PARTLY, NOT_MEASURED),
        ([True], NOT_SUPPORTED, NOT_SUPPORTED),
        ([True], NOT_TESTABLE, NOT_TESTABLE),
        ([], NOT_TESTABLE, NOT_TESTABLE),
    ],
)
def test_the_verdict_is_by_how_many_checks_hold_and_at_best_what_the_evidence_allows(holding, most, verdict):
    claim = Claim(**{**ENTRY, "most": most, "checks": ()})
    assert claims.verdict(claim, [Outcome("so", holds) for holds in holding]) == verdict


def test_verdicts_are_counted_in_words():
    table = pd.DataFrame({"verdict": [PARTLY, SUPPORTED, PARTLY, NOT_MEASURED]})
    assert claims.counts(table) == (
        "Of 4 claims of the four papers: 1 supported, 2 partly, 1 not measured in this run."
    )


# --- the checks -------------------------------------------------------------------------------------------------------

BELOW = {"kind": "bound", "system": "a", "benchmark": "NevIR", "metric": "right_rank", "data": "nevir test", "expect": "below",
         "bound": 25}  # fmt: skip


@pytest.mark.parametrize(
    ("expect", "interval", "verdict"),
    [
        ("below", (6.0, 10.0), SUPPORTED), ("below", (6.0, 25.0), NOT_SUPPORTED), ("below", (30.0, 40.0), NOT_SUPPORTED),
        ("above", (30.0, 40.0), SUPPORTED), ("above", (25.0, 40.0), NOT_SUPPORTED), ("above", (6.0, 10.0), NOT_SUPPORTED),
    ],
)  # fmt: skip
def test_a_bound_holds_where_the_whole_interval_lies_on_its_side(check, expect, interval, verdict):
    row = check({**BELOW, "expect": expect}, score("a", 8.1, *interval))
    assert row.verdict == verdict
    assert "a 8.1" in row.measured and "n = 1,383" in row.measured
    said = "below" if interval[1] < 25 else "above" if interval[0] > 25 else "not told apart from"
    assert f", {said} 25" in row.measured


@pytest.mark.parametrize(("interval", "verdict"), [((20.0, 30.0), SUPPORTED), ((26.0, 30.0), NOT_SUPPORTED)])
def test_a_score_is_not_above_a_bound_that_its_interval_reaches(check, interval, verdict):
    assert check({**BELOW, "expect": "not above"}, score("a", 28.0, *interval)).verdict == verdict


def test_a_score_without_an_interval_settles_nothing(check):
    assert check(BELOW, score("a", 8.1, np.nan, np.nan)).verdict == NOT_SUPPORTED


@pytest.mark.parametrize("other", [{"data": "nevir_mini"}, {"system": "b"}])
def test_what_was_not_measured_is_said_and_not_judged(check, other):
    row = check(BELOW, score(**{"system": "a", "value": 8.1, "low": 6.0, "high": 10.0} | other))
    assert (row.verdict, row.measured) == (NOT_MEASURED, "–")


def test_what_a_system_was_trained_on_is_said_beside_its_score(check):
    row = check({**BELOW, "system": "a"}, score("a", 8.1, 6.0, 10.0, trained_on="40 pairs of NevIR"))
    assert "40 pairs of NevIR" in row.measured


APART = {"kind": "apart", "benchmark": "NevIR", "metric": "right_rank", "data": "nevir test", "first": {"system": "a"},
         "second": {"system": "b"}}  # fmt: skip


@pytest.mark.parametrize(
    ("second", "holding"),
    [((40.0, 50.0), "higher"), ((1.0, 9.0), "lower"), ((20.0, 40.0), "overlap"), ((30.0, 40.0), "overlap")],
)
def test_two_scores_are_apart_only_where_their_intervals_are(check, second, holding):
    rows = score("a", 25.0, 20.0, 30.0), score("b", np.mean(second), *second)
    for expect in ("higher", "lower", "overlap"):
        row = check({**APART, "expect": expect}, *rows)
        assert row.verdict == (SUPPORTED if expect == holding else NOT_SUPPORTED)
        assert ("overlap" in row.measured) == (holding == "overlap")
    assert check({**APART, "expect": "overlap"}, rows[0]).verdict == NOT_MEASURED


def test_two_parts_of_the_data_of_one_system_can_be_apart(check):
    how = {
        **APART,
        "system": "a",
        "first": {"data": "nevir test, x"},
        "second": {"data": "nevir test, y"},
        "expect": "lower",
    }
    rows = score("a", 53.0, 49.5, 56.7, data="nevir test, x"), score("a", 38.2, 34.4, 41.7, data="nevir test, y")
    assert check(how, *rows).verdict == SUPPORTED


AGREES = {"kind": "agrees", "paper": "weller", "exhibit": "Table 2", "system": ["TF-IDF", "all-mpnet-base-v2"],
          "metric": "pairwise_accuracy"}  # fmt: skip


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({"TF-IDF": 2.0, "all-mpnet-base-v2": 8.1}, SUPPORTED), ({"TF-IDF": 2.0}, SUPPORTED),
        ({"TF-IDF": 2.0, "all-mpnet-base-v2": 9.9}, NOT_SUPPORTED), ({"ColBERTv2": 13.0}, NOT_MEASURED),
    ],
)  # fmt: skip
def test_a_printed_number_agrees_by_the_rule_of_the_scoreboard(check, values, verdict):
    row = check(AGREES, *[score(name, value, value, value) for name, value in values.items()])
    assert row.verdict == verdict
    assert ("8.1 printed, 9.90 measured" in row.measured) == (9.9 in values.values())


def test_a_stand_in_answers_no_claim_about_a_printed_number(check):
    how = {**AGREES, "paper": "truong", "exhibit": "Table 1", "system": "HedgeMPNet", "metric": "right_rank"}
    assert check(how, score("hedge-mpnet", 40.56, 38.0, 43.0)).verdict == NOT_MEASURED


def test_two_printed_numbers_of_the_paper_are_compared_beside_what_was_measured(given, tmp_path):
    printed = {"kind": "printed", "paper": "truong", "exhibit": "Table 2", "benchmarks": ["NevIR", "ExcluIR", "Cannot"]}
    ahead = {**printed, "first": "Only negation", "second": "HedgeMPNet"}
    behind = {**printed, "first": "HedgeMPNet", "second": "Only negation"}
    given({"checks": [BELOW, ahead]}, {"checks": [BELOW, behind]}, {"checks": [ahead]})
    measured = measurements.validate(pd.DataFrame([score("a", 8.1, 6.0, 10.0)]), "here")
    table = claims.table(tmp_path, measured, results.scoreboard(measured, tmp_path, "toy"))
    assert table.verdict.tolist() == [SUPPORTED, PARTLY, NOT_MEASURED]
    assert table.measured.str.contains("Only negation 55.57").all()


@pytest.mark.parametrize(("within", "verdict"), [(2, SUPPORTED), (1, NOT_SUPPORTED)])
def test_a_score_lies_near_a_printed_number(check, within, verdict):
    how = {
        "kind": "near",
        "system": "a",
        "benchmark": "NevIR",
        "metric": "right_rank",
        "data": "nevir test",
        "words": "By our rule",
    }
    row = check({**how, "printed": 10.0, "within": within}, score("a", 8.1, 6.0, 10.0))
    assert row.verdict == verdict and "By our rule: 8.10 (n = 1,383; printed: 10)" in row.measured


@pytest.mark.parametrize(("right", "holding"), [(90, "higher"), (10, "lower"), (50, "same")])
def test_a_change_is_paired_on_the_same_items(check, tmp_path, right, holding):
    ids = [str(place) for place in range(100)]
    for name, share in {"before": 50, "after": right}.items():
        correct = [place < share for place in range(100)]
        scoring.save_predictions(
            pd.DataFrame({"id": ids, "cluster": ids, "correct": correct}), tmp_path, name, "nevir_mini"
        )
    for expect in ("higher", "lower", "same"):
        row = check({"kind": "change", "task": "nevir_mini", "before": "before", "after": "after", "expect": expect})
        assert row.verdict == (SUPPORTED if expect == holding else NOT_SUPPORTED)
    assert f"before 50.0, after {right}.0 ({right - 50:+.1f}" in row.measured and "n = 100" in row.measured
    absent = {"kind": "change", "task": "nevir_mini", "before": "before", "after": "nobody", "expect": "higher"}
    assert check(absent).verdict == NOT_MEASURED


@pytest.mark.parametrize(("interval", "holding"), [((0.2, 1.8), "higher"), ((-1.8, -0.2), "lower"), ((-1, 1), "same")])
def test_general_ability_is_judged_by_the_category_asked_for(check, interval, holding, monkeypatch):
    changes = pd.DataFrame({
        "average": ["STS", "Retrieval"], "tasks": [9, 1], "before": 80.0, "after": 81.0, "difference": 1.0,
        "low": [interval[0], -5.0], "high": [interval[1], -4.0],
    })  # fmt: skip
    asked = []
    monkeypatch.setattr(claims, "_general_changes", lambda run_dir, *sides: asked.append(sides) or changes)
    of_sts = {"kind": "general", "average": "STS", "before": "base", "after": "tuned"}
    for expect in ("higher", "lower", "same"):
        row = check({**of_sts, "expect": expect})
        assert row.verdict == (SUPPORTED if expect == holding else NOT_SUPPORTED)
    assert "STS, 9 of MTEB's tasks: base 80.0, tuned 81.0 (+1.0, " in row.measured
    assert set(asked) == {("base", "tuned")}
    assert check({**of_sts, "average": "Reranking", "expect": "same"}).verdict == NOT_MEASURED


def test_general_ability_that_was_not_measured_is_said(check):
    asked = {"kind": "general", "average": "STS", "before": "base", "after": "tuned", "expect": "same"}
    assert check(asked).verdict == NOT_MEASURED


def test_one_check_not_measured_leaves_the_verdict_to_the_others(check, given, tmp_path):
    measured = measurements.validate(pd.DataFrame([score("a", 8.1, 6.0, 10.0)]), "here")
    given({"checks": [BELOW, {**BELOW, "system": "absent"}]})
    (row,) = claims.table(tmp_path, measured, results.scoreboard(measured, tmp_path, "toy")).itertuples()
    assert row.verdict == SUPPORTED and "absent" not in row.measured


def test_the_table_has_every_claim_with_what_limits_it(given, tmp_path):
    given({"id": "one"}, {"id": "two", "most": NOT_TESTABLE})
    measured = measurements.validate(pd.DataFrame(columns=results.COLUMNS), "here")
    table = claims.table(tmp_path, measured, results.scoreboard(measured, tmp_path, "toy"))
    assert table.columns.tolist() == claims.COLUMNS
    assert table.id.tolist() == ["one", "two"] and table.verdict.tolist() == [NOT_MEASURED, NOT_TESTABLE]
    assert set(table.verdict) <= {*VERDICTS, NOT_MEASURED}
    assert table[["because", "needs", "refuted_by"]].eq("toy").all(axis=None)
