"""The types of error by rule: the paper's own pairs, planted errors of each type, and what stays undecided."""

import random
import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pandas as pd
import pytest

from nblib import corpora, paths
from nblib.gsm8k import categories, chains, errors
from nblib.gsm8k.categories import CATEGORIES, UNDECIDED
from nblib.gsm8k.errors import Case, decide
from nblib.gsm8k.predictions import gold_answer

EXAMPLES = corpora.read_jsonl(paths.DATA / "published" / "truong_table5_examples.jsonl")
PAPER_NAMES = {name: category for category, name in CATEGORIES.items()}
UNDECIDABLE = {
    "Hallucination"
}  # its numbers are all the problem's: what is wrong with it is what they are said to count


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["error_type"])
def test_the_papers_own_pairs(example):
    case = Case(
        example["question"], example["reference"], example["gold"], example["base"], True, example["tuned"]
    )  # the problem and its solution in our words: the paper prints the models' solutions only
    expected = UNDECIDED if example["error_type"] in UNDECIDABLE else PAPER_NAMES[example["error_type"]]
    assert decide(case).category == expected


@pytest.mark.official
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["error_type"])
def test_the_papers_own_pairs_with_the_official_problems(example):
    rows = corpora.read_jsonl(paths.official_data() / "gsm8k" / "gsm8k_test.jsonl.gz")
    row = rows[int(example["id"].removeprefix("test-"))]
    assert gold_answer(row["answer"]) == example["gold"]
    case = Case(row["question"], row["answer"], example["gold"], example["base"], True, example["tuned"])
    expected = UNDECIDED if example["error_type"] in UNDECIDABLE else PAPER_NAMES[example["error_type"]]
    assert decide(case).category == expected


def test_the_papers_eight_types_are_the_categories():
    printed = pd.read_csv(paths.DATA / "published" / "truong_table5.csv")
    assert set(printed.error_type) == set(CATEGORIES.values()) == {example["error_type"] for example in EXAMPLES}


CASE = Case(
    question="Ann has 3 boxes of 12 eggs. She sells 6 eggs and puts the rest into 5 bowls. How many are in a bowl?",
    reference="She has 3*12 = <<3*12=36>>36 eggs.\nShe keeps 36-6 = <<36-6=30>>30.\nA bowl has 30/5 = <<30/5=6>>6.\n#### 6",
    gold="6",
    base="3 x 12 = 36\n36 - 6 = 30\n30 / 5 = 6\n#### 6",
    base_correct=True,
    tuned="",
)


@pytest.mark.parametrize(
    "tuned, category, evidence",
    [
        ("3 x 12 = 36\n36 - 6 = 30\n30 / 5 = 7\n#### 7", "wrong calculation", "30 ÷ 5 = 6, not 7"),
        ("3 x 12 = 46\n46 - 6 = 40\n40 / 5 = 8\n#### 8", "wrong calculation", "3 × 12 = 36, not 46"),
        ("3 x 12 = 36\n36 - 6 = 30\n#### 30", "missing information", "it stops at 36 − 6"),
        ("3 x 12 = 36\n36 - 6 = 30\n30 / 5 = 6\n#### $6", "unit or parsing", "'[invalid]'"),
        ("3 x 12 = 36\n36 - 6 = 30\nThe answer is 30 / 5 = 6.", "unit or parsing", "read as"),
        ("3 x 12 = 36\n36 + 6 = 42\n42 / 5 = 8.4\n#### 8.4", "inverted operands", "36 + 6 where 36 − 6 = 30"),
        ("3 x 12 = 36\n36 - 6 = 30\n5 / 30 = 0.17\n#### 0.17", "inverted operands", "5 ÷ 30 where 30 ÷ 5 = 6"),
        ("She has eggs in boxes.\n" * 4 + "#### 9", "repetition", "4 times"),
        ("That costs 300/120 = 300/120 = 300/120 = 300/12", "repetition", "“300 120” 3 times"),
        ("17 * 23 = 391\n391 + 58 = 449\n#### 449", "hallucination", "(17, 23, 58)"),
        (
            "The train leaves London and travels north along the river all day.\n#### 77",
            "hallucination",
            "shares no number",
        ),
        ("3 x 12 = 36\n36 - 6 = 30\n30 / 5 = 6.02\n#### 6.02", "wrong calculation", "30 ÷ 5 = 6, not 6.02"),
    ],
)
def test_planted_errors_of_each_type(tuned, category, evidence):
    verdict = decide(replace(CASE, tuned=tuned))
    assert (verdict.category, evidence in verdict.reason) == (category, True), verdict


@pytest.mark.parametrize(
    "tuned",
    ["", "   ", "I don't know.", "3 x 12 = 40\n40 - 6 = 35\n#### 35", "12 - 3 = 9\n#### 9", "#### 7",
     "36 eggs in 3 boxes\n#### 12"],
)  # fmt: skip
def test_what_no_rule_decides_stays_undecided_with_a_reason(tuned):
    verdict = decide(replace(CASE, tuned=tuned))
    assert verdict.category == UNDECIDED
    assert verdict.reason


def test_a_cut_off_text_that_stops_at_the_right_number_by_chance_is_not_misread():
    tuned = (
        "That makes 14*2 = <<14*2=28>>28 eggs.\nSo far she has 28 - 22 = <<28-22=6>>6"  # in the manner of a 270M model
    )
    assert decide(replace(CASE, tuned=tuned)).category != "unit or parsing"
    assert decide(replace(CASE, tuned="3 x 12 = 36\n36 - 6 = 30\nA bowl has 30 / 5 = 6")).category == "unit or parsing"


def test_a_known_quantity_left_out_or_misremembered():
    case = Case(
        "Ann runs 3 miles a day. How many miles does she run in a week?", "A week has 7 days: 3*7 = <<3*7=21>>21.\n#### 21",
        "21", "3 * 7 = 21\n#### 21", True, "",
    )  # fmt: skip
    assert decide(replace(case, tuned="She runs 3 * 5 = 15 miles in a week.\n#### 15")).reason.startswith(
        "a week has 7 days, not 5"
    )
    assert (
        decide(replace(case, tuned="She runs 3 + 0 = 3 miles in the days of a week.\n#### 3")).category
        == "commonsense quantity"
    )
    stated = replace(
        case, question=case.question + " She runs on all 7 days.", tuned="She runs 3 * 5 = 15 miles in a week.\n#### 15"
    )
    assert decide(stated).category != "commonsense quantity"


def test_a_base_model_that_is_right_by_accident():
    base = "3 x 12 = 36\n36 - 2 = 34\n34 / 5 = 6\n#### 6"
    verdict = decide(replace(CASE, base=base, tuned="Ann has 7 eggs.\n#### 7"))
    assert verdict.category == "base or gold wrong"
    assert "6.8" in verdict.reason
    assert decide(replace(CASE, base=base, base_correct=False, tuned="Ann has 7 eggs.\n#### 7")).category == UNDECIDED


def test_an_answer_that_only_rounding_parts_from_gold():
    case = replace(CASE, gold="17", reference="50*0.333 = 16.65, so 17.\n#### 17", tuned="50 * 1/3 = 16.9\n#### 16.9")
    assert decide(case).category != "base or gold wrong"  # mended, 16.67 is further than a hundredth
    assert decide(replace(case, tuned="33.9 / 2 = 16.95\n#### 16.95")).category == "base or gold wrong"


def test_cents_for_dollars():
    case = replace(
        CASE, question="A pen costs 50 cents. What do 4 pens cost, in dollars?", gold="2", reference="4*.5 = 2\n#### 2"
    )
    assert decide(replace(case, tuned="4 * 50 = 200 cents\n#### 200")).category == "unit or parsing"


def test_a_gold_answer_that_is_no_number_decides_nothing():
    assert "no single number" in decide(replace(CASE, gold="blue", tuned="#### 3")).reason


def planted(row, rng):
    """A correct solution spoilt in one way each: type → solution."""
    reference = row["answer"]
    *lines, _ = reference.split("\n")
    steps, gold = chains.chain(reference), chains.conclusion(reference)
    *before, last = lines
    marks = re.findall(r"<<([^<>=]*)=([-\d.]+)>>", last)
    if len(lines) < 2 or not marks or not steps or steps[-1].result != gold or Fraction(marks[-1][1]) != gold:
        return
    sum_, result = marks[-1]
    yield "unit or parsing", "\n".join(lines) + f"\n#### ${result}"
    yield "repetition", "\n".join([lines[0]] * 4)
    slipped = gold + rng.choice([-10, -3, -1, 1, 2, 7])
    slipped = f"{float(slipped):.10g}"
    yield "wrong calculation", "\n".join([*before, f"So {sum_} = {slipped}."]) + f"\n#### {slipped}"
    if (stop := chains.chain("\n".join(before))) and stop[-1].result != gold:
        yield "missing information", "\n".join(before) + f"\n#### {float(stop[-1].result):.10g}"
    if (pair := re.fullmatch(r"(\d+)-(\d+)", sum_)) and pair[1] != pair[2]:
        turned = int(pair[2]) - int(pair[1])
        yield "inverted operands", "\n".join([*before, f"So {pair[2]} - {pair[1]} = {turned}."]) + f"\n#### {turned}"


def confusion(rows):
    rng, found = random.Random(0), []
    for row in rows:
        gold = gold_answer(row["answer"])
        for kind, solution in planted(row, rng):
            verdict = decide(Case(row["question"], row["answer"], gold, row["answer"], True, solution))
            found.append((kind, verdict.category))
    table = pd.DataFrame(found, columns=["planted", "found"])
    right = (table.planted == table.found).groupby(table.planted).mean()
    wrong = ((table.planted != table.found) & (table.found != UNDECIDED)).groupby(table.planted).mean()
    return right, wrong, table.planted.value_counts()


def test_errors_planted_into_the_mini_set_are_found():
    right, wrong, counts = confusion(corpora.read_jsonl(paths.DATA / "mini" / "gsm8k_mini.jsonl"))
    assert set(counts.index) == {
        "unit or parsing",
        "repetition",
        "wrong calculation",
        "missing information",
        "inverted operands",
    }
    assert (counts >= 10).all()
    assert (right >= 0.85).all(), right
    assert (wrong <= 0.05).all(), wrong


@pytest.mark.official
def test_errors_planted_into_official_solutions_are_found():
    rows = corpora.read_jsonl(paths.official_data() / "gsm8k" / "gsm8k_test.jsonl.gz")[::4]
    right, wrong, counts = confusion(rows)
    assert (counts >= 40).all(), counts
    assert (right >= 0.85).all(), right
    assert (wrong <= 0.05).all(), wrong


@pytest.mark.official
def test_the_official_solutions_repeat_nothing():
    rows = corpora.read_jsonl(paths.official_data() / "gsm8k" / "gsm8k_test.jsonl.gz")
    repeating = [
        row["answer"]
        for row in rows
        if decide(Case(row["question"], row["answer"], "-1", "", False, row["answer"])).category == "repetition"
    ]
    assert repeating == []


@pytest.mark.official
def test_another_problems_solution_is_a_hallucination_or_undecided():
    rows = corpora.read_jsonl(paths.official_data() / "gsm8k" / "gsm8k_test.jsonl.gz")[::8]
    verdicts = [
        decide(
            Case(row["question"], row["answer"], gold_answer(row["answer"]), row["answer"], True, other["answer"])
        ).category
        for row, other in pairwise(rows)
        if gold_answer(row["answer"]) != gold_answer(other["answer"])
    ]
    counts = pd.Series(verdicts).value_counts()
    assert counts["hallucination"] >= 0.25 * len(verdicts)
    assert counts["hallucination"] + counts[UNDECIDED] >= 0.97 * len(verdicts)


def test_classify_keeps_the_rows_and_says_why():
    errors_table = pd.DataFrame(
        {"id": ["a"], "question": [CASE.question], "reference": [CASE.reference], "gold": ["6"], "base_solution": [CASE.base],
         "base_correct": [True], "tuned_solution": ["3 x 12 = 36\n36 - 6 = 30\n#### 30"]}
    )  # fmt: skip
    found = errors.classify(errors_table)
    assert found.category.tolist() == ["missing information"]
    assert found.id.tolist() == ["a"] and found.reason[0]


def test_no_share_below_thirty_errors():
    few = categories.breakdown(pd.Series(["hallucination"] * 20 + [UNDECIDED] * 9))
    assert few[["share", "low", "high"]].isna().all(axis=None)
    assert few.set_index("category").errors["hallucination"] == 20
    assert categories.coverage(pd.Series(["hallucination"] * 20 + [UNDECIDED] * 9)) == "20 of 29 errors decided"
    many = categories.breakdown(pd.Series(["hallucination"] * 15 + [UNDECIDED] * 15)).set_index("category")
    assert many.share["hallucination"] == 50
    assert many.low["hallucination"] < 50 < many.high["hallucination"]
    assert many.errors.sum() == 30
    assert many.share["repetition"] == 0 < many.high["repetition"]
    assert categories.coverage(pd.Series(["hallucination"] * 15 + [UNDECIDED] * 15)) == "15 of 30 errors decided (50 %)"


def test_published_shares_stand_beside():
    table = categories.breakdown(pd.Series([], dtype=object)).set_index("category")
    assert table.published["wrong calculation"] == 20
    assert table.published.drop(UNDECIDED).sum() == 100


def test_results_have_shares_only_from_thirty_errors_on():
    about = {"scale": "lab", "data": "gsm8k_mini", "official": False, "stand_in": True}
    assert categories.result_rows(pd.Series([UNDECIDED] * 29), "rules", "toy", **about) == []
    rows = categories.result_rows(pd.Series(["repetition"] * 10 + [UNDECIDED] * 30), "rules", "toy", **about)
    assert len(rows) == 8
    row = next(row for row in rows if row["metric"] == "share_repetition")
    assert (row["ours"], row["published"], row["n"], row["status"]) == (25, 4, 40, "partial")
    assert row["model"] == "toy, judged by rules, 10 of 40 errors decided (25 %)"


def test_arithmetic_is_counted_by_writer():
    table = chains.arithmetic(
        {"one": ["1 + 1 = <<1+1=2>>2\n2 + 2 = 5", "3 = 3", "#### 4\n1 + 1 = 3"], "none": []}
    ).set_index("solutions")
    assert table.loc["one"].tolist() == [3, 2, 1, 1]
    assert table.loc["none"].tolist() == [0, 0, 0, 0]


def test_the_papers_pairs_as_a_table():
    table = errors.paper_pairs().set_index("error_type")
    assert (table.category != UNDECIDED).sum() == 7
    assert all(CATEGORIES[row.category] == row.Index for row in table.itertuples() if row.category != UNDECIDED)
