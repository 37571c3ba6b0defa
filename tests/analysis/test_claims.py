"""The papers' claims: read with care, checked on what was measured, with a verdict by one rule."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
import yaml

from nblib import artefacts, results
from nblib.analysis import claims
from nblib.analysis.claims import NOT_MEASURED, NOT_SUPPORTED, NOT_TESTABLE, PARTLY, SUPPORTED, Claim, Outcome
from nblib.benchmarks import catalogue, scoring
from nblib.errors import StudyError
from nblib.results import published, scoreboard

ENTRY = {field.name: "toy" for field in fields(Claim)} | {"paper": "weller", "exhibit": "Table 2", "most": SUPPORTED}


@pytest.fixture
def given(tmp_path, monkeypatch):
    """Claims of one's own in place of the papers'."""

    def give(*entries):
        file = tmp_path / "claims.yaml"
        file.write_text(yaml.safe_dump([{**ENTRY, "checks": [], **entry} for entry in entries]), encoding="utf-8")
        monkeypatch.setattr(claims, "FILE", file)
        claims.load.cache_clear()

    yield give
    claims.load.cache_clear()


def score(system, low, high, value=None, **about):
    where = {"benchmark": "nevir", "corpus": "nevir", "split": "test", "metric": "right_rank", "n": 1383}
    value = np.mean([low, high]) if value is None else value
    return {"system": system, "value": value, "ci_low": low, "ci_high": high, **where, **about}


def table_of(run_dir, *rows):
    measured = results.record(rows, scale="toy")
    return claims.table(run_dir, measured, scoreboard.build(measured, run_dir, "toy"))


@pytest.fixture
def check(given, tmp_path):
    """The row of a claim with one check, on measurements of one's own."""

    def run(how, *rows):
        given({"checks": [how]})
        (row,) = table_of(tmp_path, *rows).itertuples()
        return row

    return run


def hold(check, how, holding, *rows):
    """Ask for each outcome in turn: only the one that holds is supported. Returns the last row."""
    for expect in ("higher", "lower", "same"):
        row = check({**how, "expect": expect}, *rows)
        assert row.verdict == (SUPPORTED if expect == holding else NOT_SUPPORTED)
    return row


def test_the_papers_claims_are_read_and_each_names_what_is_known_and_what_would_refute_it():
    found, board = claims.load(), scoreboard.expected()
    exhibits = set(published.exhibits()[["paper", "exhibit"]].itertuples(index=False, name=None))
    assert 15 <= len(found) <= 30 and len({claim.id for claim in found}) == len(found)
    assert {claim.paper for claim in found} == set(published.PAPERS)
    for claim in found:
        texts = (claim.section, claim.claim, claim.refuted_by, claim.because, claim.needs)
        assert all(text.strip() for text in texts) and (claim.paper, claim.exhibit) in exhibits, claim.id
        assert claim.checks or claim.most == NOT_TESTABLE, f"{claim.id}: nothing checks it"
        for one in claim.checks:
            assert one["kind"] in claims._CHECKS and set(one.get("of", {})) <= set(results.COLUMNS)
            assert "task" not in one or one["task"] in catalogue.every_form() or one["words"]
            if one["kind"] == "printed" and "second" not in one:
                rows = board[board.paper.isin(one["paper"]) & board.exhibit.isin(one["exhibit"])]
                assert set(one["system"]) <= set(rows.system) and set(one["metric"]) <= set(rows.metric)


@pytest.mark.parametrize("entry", [{"colour": "red"}, {"most": "proved"}, {"refuted_by": None}])
def test_a_claim_that_cannot_be_read_is_refused(given, entry):
    given(entry)
    with pytest.raises(StudyError, match=r"claims\.yaml"):
        claims.load()


@pytest.mark.parametrize(
    ("outcomes", "most", "verdict"),  # +: holds, -: contradicts, 0: decides nothing
    [
        ("++", SUPPORTED, SUPPORTED),
        ("+0", SUPPORTED, PARTLY),
        ("+-0", SUPPORTED, PARTLY),
        ("+--", SUPPORTED, NOT_SUPPORTED),
        ("0", SUPPORTED, NOT_SUPPORTED),
        ("", SUPPORTED, NOT_MEASURED),
        ("++", PARTLY, PARTLY),
        ("+", NOT_TESTABLE, NOT_TESTABLE),
    ],
)
def test_the_verdict_is_by_which_checks_hold_or_contradict_and_at_best_what_the_evidence_allows(
    outcomes, most, verdict
):
    claim = Claim(**{**ENTRY, "most": most, "checks": ()})
    assert claims.verdict(claim, [Outcome("so", sign == "+", sign == "-") for sign in outcomes]) == verdict


def test_verdicts_are_counted_in_words():
    table = pd.DataFrame({"verdict": [PARTLY, SUPPORTED, PARTLY, NOT_MEASURED]})
    assert claims.counts(table) == "Of 4 claims of the four papers: 1 supported, 2 partly, 1 not measured in this run."


OF = {"system": "a", "benchmark": "nevir", "metric": "right_rank", "split": "test"}
BELOW = {"kind": "bound", "of": OF, "expect": "below", "bound": 25}


@pytest.mark.parametrize(
    ("interval", "said", "holding", "against"),
    [
        ((6.0, 9.0), "below", {"below", "not above"}, {"above", "around"}),
        ((10.0, 27.0), "not told apart from", {"around"}, set()),
        ((30.0, 40.0), "above", {"above", "around"}, {"below", "not above"}),
        ((np.nan, np.nan), "not told apart from", set(), set()),
    ],
)
def test_a_bound_holds_where_the_whole_interval_lies_on_its_side(check, interval, said, holding, against):
    for expect in ("around", "below", "not above", "above"):
        row = check({**BELOW, "expect": expect, "within": 15 * (expect == "around")}, score("a", *interval, value=8.1))
        assert row.verdict == (SUPPORTED if expect in holding else NOT_SUPPORTED)
        assert row.holds == f"{int(expect in holding)} of 1" + ", 1 against" * (expect in against)
    assert "a 8.1" in row.measured and "n = 1,383" in row.measured and f", {said} 25" in row.measured


@pytest.mark.parametrize("other", [{"corpus": "nevir_mini"}, {"sample": "100"}, {"part": "x"}, {"variant": "both"}])
def test_what_was_not_measured_on_the_whole_official_items_is_no_evidence(check, other):
    row = check(BELOW, score("a", 6.0, 10.0) | other)
    assert (row.verdict, row.measured) == (NOT_MEASURED, "–")


def test_what_a_system_was_trained_on_is_said_beside_its_score_and_not_what_its_variants_were(check):
    trained, variant = {"trained_on": "nevir", "training_items": 40}, {"variant": "both", "trained_on": "both"}
    row = check(BELOW, score("a", 6.0, 10.0, **trained), score("a", 6.0, 10.0, **variant))
    assert row.measured.endswith("Trained on: a: 40 of NevIR's training pairs.")


@pytest.mark.parametrize(
    ("second", "holding"), [((29.8, 29.9), "higher"), ((1.0, 9.0), "lower"), ((25.1, 25.2), "same"), ((20, 40), "")]
)
def test_two_scores_of_different_items_are_compared_by_the_interval_of_their_difference(check, second, holding):
    half = 0.5 if holding == "same" else 4
    rows = score("a", 25 - half, 25 + half, part="x"), score("a", *second, part="y")
    apart = {"kind": "apart", "of": OF, "first": {"part": "x"}, "second": {"part": "y"}}
    assert "n = 1,383); " in hold(check, apart, holding, *rows).measured
    assert check({**apart, "expect": "same"}, rows[0]).verdict == NOT_MEASURED


@pytest.mark.parametrize(("changes", "holding"), [((3.0, 4, 5), "higher"), ((0.1, 0.2, 0), "same"), ((9, -9, 0), "")])
def test_a_difference_over_systems_is_judged_by_their_spread(check, changes, holding):
    over = {"kind": "over_systems", "of": {"benchmark": "nevir", "metric": "right_rank", "split": "test"}, "words": "k"}
    over |= {"first": {"variant": "k1"}, "second": {"variant": "k2"}, "systems": [*"abcd"]}
    pairs = [(("k1", 10.0), ("k2", 10.0 + change)) for change in changes]
    rows = [score(name, x, x, variant=k) for name, pair in zip("abc", pairs, strict=True) for k, x in pair]
    for expect in ("higher", "same"):
        assert check({**over, "expect": expect}, *rows).holds.startswith(f"{int(expect == holding)} of 1")
    assert check({**over, "expect": "same"}, *rows[:2]).verdict == NOT_MEASURED  # one system alone has no spread


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({"TF-IDF": 2.0, "all-mpnet-base-v2": 8.1}, SUPPORTED),
        ({"TF-IDF": 2.0, "all-mpnet-base-v2": 9.9}, NOT_SUPPORTED),
        ({"ColBERTv2": 13.0}, NOT_MEASURED),
    ],
)
def test_a_printed_number_agrees_by_the_rule_of_the_scoreboard(check, values, verdict):
    agrees = {"kind": "printed", "paper": ["weller"], "exhibit": ["Table 2"], "metric": ["pairwise_accuracy"]}
    agrees["system"] = ["TF-IDF", "all-mpnet-base-v2"]
    row = check(agrees, *[score(name, value, value) for name, value in values.items()])
    assert row.verdict == verdict
    assert ("8.1 printed, 9.90 measured" in row.measured) == (9.9 in values.values())


def test_two_printed_numbers_of_the_paper_are_compared_beside_what_was_measured(given, tmp_path):
    printed = {"kind": "printed", "paper": "truong", "exhibit": "Table 2", "benchmarks": ["NevIR", "ExcluIR", "Cannot"]}
    ahead = {**printed, "first": "Only negation", "second": "HedgeMPNet"}
    behind = {**printed, "first": "HedgeMPNet", "second": "Only negation"}
    given({"checks": [BELOW, ahead]}, {"checks": [BELOW, behind]}, {"checks": [ahead]})
    table = table_of(tmp_path, score("a", 6.0, 10.0))
    assert table.verdict.tolist() == [SUPPORTED, SUPPORTED, NOT_MEASURED]  # by what was measured alone
    assert table.measured.str.contains("Only negation 55.57").all()


def leave(run_dir, name, share, **about):
    """Leave predictions of a system that gets so many of 100 items right."""
    ids = [str(index) for index in range(100)]
    table = pd.DataFrame({"id": ids, "cluster": ids, "correct": [index < share for index in range(100)]})
    scoring.save_predictions(table, run_dir, name, "nevir_mini")
    artefacts.write_json(run_dir / "scores" / name / "system.json", {"name": name, **about})


CHANGE = {"kind": "change", "task": "nevir_mini", "before": "before", "after": "after"}


@pytest.mark.parametrize(("right", "holding"), [(90, "higher"), (10, "lower"), (50, "same")])
def test_a_change_is_paired_on_the_same_items(check, tmp_path, right, holding):
    leave(tmp_path, "before", 50)
    leave(tmp_path, "after", right)
    row = hold(check, CHANGE, holding)
    assert f"before 50.0, after {right}.0 ({right - 50:+.1f}" in row.measured and "n = 100" in row.measured
    assert check({**CHANGE, "after": "nobody", "expect": "higher"}).verdict == NOT_MEASURED


def test_an_interval_that_only_contains_0_is_not_the_same(check, tmp_path):
    leave(tmp_path, "before", 50)
    leave(tmp_path, "after", 52)  # 0 to 5 points
    assert check({**CHANGE, "expect": "same"}).verdict == NOT_SUPPORTED
    for wider in ({"expect": "kept"}, {"expect": "same", "within": 6}):
        assert check({**CHANGE, **wider}).verdict == SUPPORTED


def test_a_variant_is_the_mean_of_its_trainings(check, tmp_path):
    leave(tmp_path, "before", 50)
    leave(tmp_path, "x-s0", 80, variant="x")
    leave(tmp_path, "x-s1", 60, variant="x")
    how = {**CHANGE, "after": {"variant": "x"}, "expect": "higher"}
    row = check(how)
    assert row.verdict == SUPPORTED and "before 50.0, x (2 seeds) 70.0 (+20.0, " in row.measured
    assert check({**how, "after": {"variant": "y"}}).verdict == NOT_MEASURED


@pytest.mark.parametrize(("interval", "holding"), [((0.2, 1.8), "higher"), ((-1.8, -0.2), "lower"), ((-1, 1), "same")])
def test_general_ability_is_compared_by_the_average_asked_for(check, interval, holding, monkeypatch):
    numbers = {"before": 80.0, "after": 81.0, "difference": 1.0, "low": [interval[0], -5.0], "high": [interval[1], -4]}
    changes = pd.DataFrame({"average": ["STS", "Retrieval"], "tasks": [9, 1], **numbers})
    monkeypatch.setattr(claims, "_general_changes", lambda run_dir, *sides: changes)
    monkeypatch.setattr(claims.mteb, "systems", lambda run_dir: ["base", "tuned"])
    of_sts = {"kind": "change", "average": "STS", "before": "base", "after": "tuned"}
    row = hold(check, of_sts, holding)
    assert "STS, 9 of MTEB's tasks: base 80.0, tuned 81.0 (+1.0, " in row.measured
    for absent in ({"average": "Reranking"}, {"after": "absent"}):
        assert check({**of_sts, **absent, "expect": "same"}).verdict == NOT_MEASURED


def test_a_claim_with_a_check_not_measured_is_partly_supported_at_best(given, tmp_path):
    given({"checks": [BELOW, {**BELOW, "of": OF | {"system": "absent"}}]}, {"id": "two", "most": NOT_TESTABLE})
    table = table_of(tmp_path, score("a", 6.0, 10.0))
    assert table.columns.tolist() == claims.COLUMNS and table.verdict.tolist() == [PARTLY, NOT_TESTABLE]
    assert table.holds.tolist() == ["1 of 1, 1 not measured", ""]
    assert "absent" not in table.measured[0]
