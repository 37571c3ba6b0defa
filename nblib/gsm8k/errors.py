"""Why a solution is wrong: the eight types of Truong's Table 5 by rule, or undecided.

The authors read 100 errors; these rules decide only what arithmetic and the text show, in this order, and name their evidence.
The *replay* of a solution is its answer had its calculations been right and one named thing been otherwise (`chains.replay`).
*Sources* are the data set's worked solution and, where its answer is right, the base model's.

1. **repetition**: a line or sentence, or a side of one chain of equations (a = b = a = b), stands three times or more.
2. **unit or parsing**: the number arrived at is the gold answer, but the evaluation read another or none (an answer not marked
   as one counts where a source has the last calculation, or where the text calls it the answer); or it is the gold answer in
   cents for dollars, or as a fraction for a percentage.
3. **base or gold wrong** (first half): the answer, within 1 %, rounds to the gold answer.
4. **wrong calculation**: a calculation is wrong, and replayed without the slip the solution gives the gold answer.
5. **inverted operands**: with the operands of one subtraction or division exchanged, or − for + (+ for −), it does; and a source
   has that very calculation, or the answer is the gold one with the other sign.
6. **commonsense quantity**: a source calculates with a number everybody knows (`data/quantities.csv`: a week has 7 days) that the
   problem names the unit of but doesn't state; the solution never uses it; and with it the replay gives the gold answer.
7. **missing information**: every calculation is a source's; and either the solution stops at a source's intermediate result or
   its last calculation is a source's with operands left out.
8. **base or gold wrong** (second half): the base model's answer is right, but its own calculations, done correctly, give another.
9. **hallucination**: at least half of the numbers calculated with, and two or more, come from nowhere; or the solution shares
   neither a number nor a word of content with the problem.

What fits none is *undecided*: so are slips that, mended, still give a wrong answer. A share is given from 30 errors on.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import pandas as pd

from nblib import paths
from nblib.gsm8k import quantities
from nblib.gsm8k.categories import UNDECIDED
from nblib.gsm8k.chains import Step, chain, conclusion, given, replay, worked
from nblib.gsm8k.expressions import Expression, rounded
from nblib.gsm8k.predictions import FLEXIBLE, extract, is_correct, value
from nblib.gsm8k.tokens import ANNOTATION

REPEATS = 3  # how often a passage makes a repetition
PASSAGE, SIDE = 4, 2  # of how many tokens, as a line or sentence of its own, and as a side of one chain of equations
_COMMON = {Fraction(1), Fraction(2), Fraction(10), Fraction(100)}
_STOPWORDS = {
    "the", "and", "that", "this", "there", "then", "than", "with", "from", "have", "has", "had", "was", "were",
    "will", "would", "for", "are", "not", "but", "how", "many", "much", "what", "each", "every", "all", "total",
    "number", "cost", "get", "gets", "her", "his", "she", "him", "they", "their", "them", "its", "into", "more",
    "less", "answer", "question", "one", "two",
}  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """A category (of `categories.LABELS`) and its evidence in words."""

    category: str
    reason: str


@dataclass(frozen=True)
class Case:
    """A problem and what two models made of it; the tuned model's answer is wrong."""

    question: str
    reference: str
    gold: str
    base: str
    base_correct: bool
    tuned: str

    @cached_property
    def steps(self) -> list[Step]:
        """The tuned model's calculations."""
        return chain(self.tuned)

    @cached_property
    def answer(self) -> Fraction | None:
        """What it arrives at."""
        return conclusion(self.tuned)

    @cached_property
    def gold_value(self) -> Fraction | None:
        """The right answer."""
        return value(self.gold)

    @cached_property
    def sources(self) -> list[list[Step]]:
        """The calculations of the solutions that are right."""
        return [chain(text) for text in (self.reference, *([self.base] if self.base_correct else []))]

    @cached_property
    def stated(self) -> set[Fraction]:
        """The numbers that the problem states."""
        return given(self.question)

    def known(self, step: Step) -> bool:
        """Whether a source has this calculation."""
        return any(step.same_as(other) for source in self.sources for other in source)

    def gives_gold(self, changed: dict[int, Fraction]) -> bool:
        """Whether the solution comes to the gold answer with other results at some steps."""
        return self.answer is not None and replay(self.steps, self.answer, changed) == self.gold_value


def decide(case: Case) -> Verdict:
    """The first rule that decides."""
    if not case.tuned.strip():
        return Verdict(UNDECIDED, "the model wrote nothing")
    if case.gold_value is None:
        return Verdict(UNDECIDED, f"the gold answer {case.gold!r} is no single number")
    for category, rule in RULES:
        if reason := rule(case):
            return Verdict(category, reason)
    slips = [step for step in case.steps if not step.holds]
    if slips:
        return Verdict(
            UNDECIDED, f"wrong calculations: {len(slips)}; without them it would not come to {case.gold} either"
        )
    return Verdict(UNDECIDED, "no rule decides" if case.steps else "no calculation to judge by")


def classify(errors: pd.DataFrame) -> pd.DataFrame:
    """A verdict for each error.

    Args:
        errors: from `predictions.draw_errors`.

    Returns:
        the same rows with the columns category and reason.
    """
    verdicts = [
        decide(
            Case(row.question, row.reference, row.gold, row.base_solution, bool(row.base_correct), row.tuned_solution)
        )
        for row in errors.itertuples()
    ]
    return errors.assign(category=[v.category for v in verdicts], reason=[v.reason for v in verdicts])


def paper_pairs() -> pd.DataFrame:
    """The rules on the eight pairs of solutions that Truong's Table 5 prints: error_type (the paper's), category, reason."""
    file = paths.DATA / "published" / "truong_table5_examples.jsonl"
    pairs = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    verdicts = [
        decide(Case(pair["question"], pair["reference"], pair["gold"], pair["base"], True, pair["tuned"]))
        for pair in pairs
    ]
    rows = [
        (pair["error_type"], verdict.category, verdict.reason) for pair, verdict in zip(pairs, verdicts, strict=True)
    ]
    return pd.DataFrame(rows, columns=["error_type", "category", "reason"])


# --- the rules: each gives its evidence in words, or "" ---------------------------------------------------------------


def _repetition(case: Case) -> str:
    text = ANNOTATION.sub("", worked(case.tuned)).lower()
    lines = [line for line in re.split(r"\n|\.\s", text) if line.strip()]
    counts = Counter(passage for passage in map(_tokens, lines) if len(passage) >= PASSAGE)
    for sides in ([_tokens(side) for side in line.split("=")] for line in lines):
        for side in {side for side in sides if len(side) >= SIDE}:
            counts[side] = max(counts[side], sum(other[-len(side) :] == side for other in sides))  # a = b = a = b
    if not counts:
        return ""
    passage, times = counts.most_common(1)[0]
    return f"“{' '.join(passage)[:80]}” {times} times" if times >= REPEATS else ""


def _tokens(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text))


def _unit_or_parsing(case: Case) -> str:
    read = extract(case.tuned)
    last = value(extract(case.tuned, FLEXIBLE))
    ended = bool(case.steps) and case.known(case.steps[-1])  # a cut-off text can stop at the right number by chance
    said = bool(re.search(rf"\banswer\b[^.\n]*{re.escape(extract(case.tuned, FLEXIBLE))}", worked(case.tuned), re.I))
    if not is_correct(read, case.reference) and case.answer == case.gold_value:
        if "####" in case.tuned or ((ended or said) and last == case.gold_value):
            return f"it arrives at {case.gold}, which the evaluation read as {read!r}"
        return ""
    if case.answer is None or not case.gold_value:
        return ""
    ratio, words = case.answer / case.gold_value, quantities.words(f"{case.question} {case.tuned}")
    money = {"cent", "dollar"} <= words or ("cent" in words and "$" in case.question + case.tuned)
    percent = "%" in case.question or "percent" in words or "percentage" in words
    if (money or percent) and ratio in (100, Fraction(1, 100)) and all(step.holds for step in case.steps):
        return f"{_shown(case.answer)} is {case.gold} in another unit ({'cents and dollars' if money else 'percent'})"
    return ""


def _rounds_to_gold(case: Case) -> str:
    mended = replay(case.steps, case.answer, {})
    if case.answer is None or mended is None or not case.steps:
        return ""
    decimals = len(case.gold.partition(".")[2])
    near = all(
        rounded(number, decimals) == case.gold_value and abs(number - case.gold_value) * 100 <= abs(number)
        for number in (case.answer, mended)
    )
    differs = case.gold_value not in (case.answer, mended) and case.answer.denominator > 1
    return f"its {_shown(case.answer)} rounds to the gold answer {case.gold}" if near and differs else ""


def _wrong_calculation(case: Case) -> str:
    slips = [step for step in case.steps if not step.holds]
    if not slips or not case.gives_gold({}):
        return ""
    shown = ", ".join(f"{_written(step)} = {_shown(step.exact)}, not {_shown(step.result)}" for step in slips)
    return f"{shown}; without the slip the answer is {case.gold}"


def _inverted(case: Case) -> str:
    for place, step in enumerate(case.steps):
        for other in _exchanges(step):
            result = other.value(percent=step.reading)
            if result is None or not case.gives_gold({place: result}):
                continue
            exchanged = Step(other, result, True, step.reading)
            found = any(_same_calculation(exchanged, known) for source in case.sources for known in source)
            if found or (case.answer == -case.gold_value and "-" in step.calculation.operators):
                return f"{_written(step)} where {_written(exchanged)} = {_shown(result)} gives {case.gold}"
    return ""


def _exchanges(step: Step) -> Iterator[Expression]:
    """One subtraction or division with its operands exchanged; − for + and + for −."""
    tree = step.calculation.tree
    if len(step.operands) != 2 or tree[0] not in ("+", "-", "/"):
        return
    sign, first, second = tree
    if sign in "-/":
        yield step.calculation.replaced((sign, second, first))
    if sign in "+-":
        yield step.calculation.replaced(("-" if sign == "+" else "+", first, second))
    if sign == "+":
        yield step.calculation.replaced(("-", second, first))


def _same_calculation(step: Step, other: Step) -> bool:
    """Whether a source's step does the same with the same numbers (percentages aside, in the same order)."""
    return step.result == other.result and _written(step) == _written(other)


def _commonsense(case: Case) -> str:
    used = {number for step in case.steps for number in step.operands}
    theirs = {number for source in case.sources for step in source for number in step.operands}
    for fact in quantities.applicable(f"{case.question} {case.tuned}"):
        number = fact.number
        if number in case.stated or number in used or number not in theirs or case.answer is None:
            continue
        if case.gold_value in (case.answer * number, case.answer / number):
            return f"{fact}: with it, {_shown(case.answer)} becomes {case.gold}"
        for place, step in enumerate(case.steps):
            if any(case.gives_gold({place: result}) for result in (step.result * number, step.result / number)):
                return f"{fact}: with it, {_written(step)} leads to {case.gold}"
            derived = {earlier.result for earlier in case.steps[:place]}
            for index, operand in enumerate(step.operands):
                if operand in case.stated | derived or not number / 2 < operand < 2 * number:
                    continue  # only a number that can stand for the right one
                result = step.with_operands((*step.operands[:index], number, *step.operands[index + 1 :]))
                if result is not None and case.gives_gold({place: result}):
                    return f"{fact}, not {_shown(operand)}: with it the answer is {case.gold}"
    return ""


def _missing(case: Case) -> str:
    if not case.steps or case.answer != case.steps[-1].result or not all(step.holds for step in case.steps):
        return ""
    *before, last = case.steps
    if not all(case.known(step) for step in before):
        return ""
    if case.known(last):
        return f"it stops at {_written(last)} = {_shown(last.result)}, a step on the way to {case.gold}"
    for source in case.sources:
        for step in source:
            left_out = Counter(step.operands) - Counter(last.operands)
            fewer = not Counter(last.operands) - Counter(step.operands) and left_out
            if fewer and set(last.calculation.operators) == set(step.calculation.operators):
                return f"{_written(last)} where {_written(step)} is needed"
    return ""


def _base_right_by_accident(case: Case) -> str:
    steps = chain(case.base)
    if not case.base_correct or all(step.holds for step in steps):
        return ""
    mended = replay(steps, conclusion(case.base), {})
    if mended is None or mended == case.gold_value:
        return ""
    return f"the base model's {case.gold} rests on a wrong calculation: done right, it has {_shown(mended)}"


def _hallucination(case: Case) -> str:
    known = case.stated | _COMMON | {fact.number for fact in quantities.facts()}
    known |= {number for source in case.sources for step in source for number in (*step.operands, step.result)}
    used, strange = 0, []
    for step in case.steps:
        used += len(step.operands)
        strange += [number for number in step.operands if number not in known]
        known = known | {step.result}
    if len(strange) >= 2 and 2 * len(strange) >= used:
        shown = ", ".join(dict.fromkeys(map(_shown, strange)))
        return f"{len(strange)} of the {used} numbers it calculates with come from nowhere ({shown[:80]})"
    text, asked = worked(case.tuned), _content(case.question)
    if len(_content(text)) >= 5 and len(asked) >= 5 and not _content(text) & asked and not given(text) & case.stated:
        return "it shares no number and no word of content with the problem"
    return ""


RULES: list[tuple[str, Callable[[Case], str]]] = [
    ("repetition", _repetition),
    ("unit or parsing", _unit_or_parsing),
    ("base or gold wrong", _rounds_to_gold),
    ("wrong calculation", _wrong_calculation),
    ("inverted operands", _inverted),
    ("commonsense quantity", _commonsense),
    ("missing information", _missing),
    ("base or gold wrong", _base_right_by_accident),
    ("hallucination", _hallucination),
]


def _content(text: str) -> set[str]:
    return {word for word in quantities.words(text) if len(word) > 2} - _STOPWORDS


def _shown(number: Fraction | None) -> str:
    """A number as people write it."""
    if number is None:
        return "nothing"
    exact = number.denominator == 1 or not number.denominator % 10 or 10**6 % number.denominator == 0
    return f"{float(number):,.10g}" if exact else f"{float(number):,.4g}"


def _written(step: Step) -> str:
    """A calculation on one line."""
    return _write(step.calculation.tree, step)


def _write(tree: tuple, step: Step) -> str:
    if tree[0] == "num":
        return _shown(step.operands[tree[1]]) + ("%" if step.calculation.operands[tree[1]].percent else "")
    parts = [f"({_write(b, step)})" if b[0] not in ("num", tree[0]) else _write(b, step) for b in tree[1:]]
    sign = {"*": "×", "/": "÷", "-": "−", "neg": "−"}.get(tree[0], tree[0])
    return f"−{parts[0]}" if tree[0] == "neg" else f" {sign} ".join(parts)
