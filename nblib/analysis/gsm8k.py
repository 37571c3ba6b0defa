"""GSM8K: what a fine-tuned model gets wrong there, and why (Truong, Appendix C and Table 5).

Two models' answers are read and joined, their calculations checked, and the errors counted by the paper's types.

**Calculations** are those of a calculator mark (`<<12*60=720>>`) and plain ones of numbers ("$4 x 3 = $12"). One that goes on in
words that belong to it ("3 hours * 2 + 4 = 10", "20% of 50 = 10") isn't read, so that what is called wrong is wrong.

**Labels** of the errors are files `data/gsm8k/labels/gsm8k_<annotator>_<pass>.csv`, with the columns id, solution (the
`fingerprint` of the labelled text), label and minute (UTC). Annotators are people, unless their name begins with `model-`.
"""

import ast
import hashlib
import operator
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from nblib import artefacts, paths, results, stats
from nblib.corpora import registry
from nblib.errors import StudyError
from nblib.results import published

# A file of notebook 11: its columns, and their names here
STORED = {
    "id": "id", "question": "question", "gold": "reference", "response": "solution", "strict": "prediction",
    "correct": "correct", "correct_flexible": "right_by_last_number",
}  # fmt: skip
SHARED = ["id", "question", "reference", "gold"]
PROBLEMS = 1319  # in the official test set
INVALID = "[invalid]"  # of lm-eval's filters: no answer
REPEATS = 3  # of a passage: a repetition
PASSAGE, SIDE = 4, 2  # of how many words, as a line or sentence of its own, and as a side of one chain of equations

CATEGORIES = {
    "wrong calculation": "Wrong calculation",
    "missing information": "Fail to include all information",
    "unit or parsing": "Wrong unit",
    "commonsense quantity": "Fail to reason with multiplication",
    "inverted operands": "Invert calculation",
    "hallucination": "Hallucination",
    "base or gold wrong": "Base model is wrong",
    "repetition": "Repetition",
}
UNDECIDED = "undecided"
LABELS = [*CATEGORIES, UNDECIDED]
SYSTEM = "Llama-3-8B-Hedge"  # whose errors the paper labelled
MINIMUM = 30  # errors, below which no share is given
RESAMPLES = 2000


class Gsm8kError(StudyError):
    """Answers or labels that can't be used."""


# --- answers ----------------------------------------------------------------------------------------------------------


def load(file: str | Path) -> pd.DataFrame:
    """A model's answers, as notebook 11 leaves them in `<run_dir>/scores/<model>/gsm8k_test.parquet`.

    Returns:
        id, question, reference (the data set's solution), gold (its answer), solution, prediction (by lm-eval's strict filter),
        correct, right_by_last_number.

    Raises:
        Gsm8kError: there is no such file.
        StudyError: it is damaged.
    """
    if not paths.resolve(file).is_file():
        raise Gsm8kError(f"No answers to GSM8K at {file}. Make them: nblib run 11 out.ipynb.")
    table = artefacts.read_table(file)[list(STORED)].rename(columns=STORED)
    return table.assign(gold=table.reference.str.rpartition("####")[2].str.strip().str.replace(",", ""))


def data_of(file: str | Path, problems: int) -> str:
    """What data a file of so many answers is of, in words."""
    corpus = Path(file).stem.removesuffix("_test")
    if "mini" in corpus:
        return corpus
    return f"{corpus} test" + (f", {problems} of {PROBLEMS:,} problems" if problems < PROBLEMS else "")


def join(base: pd.DataFrame, tuned: pd.DataFrame) -> pd.DataFrame:
    """Two models' answers to the problems both have: `SHARED`, then what is each model's own, with the prefixes base_ and tuned_.

    Raises:
        Gsm8kError: no problem in common.
    """
    answers = {"base": base, "tuned": tuned}
    ours = [
        table.rename(columns={column: f"{model}_{column}" for column in table if column not in SHARED})
        for model, table in answers.items()
    ]
    joined = ours[0].merge(ours[1], on=SHARED, validate="1:1")
    if joined.empty:
        raise Gsm8kError("The two models' answers have no problem in common: are they of the same split?")
    return joined


def sample_errors(joined: pd.DataFrame, size: int = 100, seed: int = 0) -> pd.DataFrame:
    """At most `size` random problems of `join` that the tuned model gets wrong, in the table's order (paper: 100)."""
    errors = joined[~joined.tuned_correct]
    return errors.sample(min(size, len(errors)), random_state=seed).sort_index().reset_index(drop=True)


def describe(joined: pd.DataFrame) -> pd.DataFrame:
    """Counts of the answers of both models of `join`.

    Returns:
        answers (the model), problems, right (by lm-eval's strict filter), unmarked (without "####"), right_by_last_number (by
        its flexible filter), repeating (see `repeated_passage`).
    """
    rows = []
    for model in ("base", "tuned"):
        own = joined.filter(like=f"{model}_").rename(columns=lambda name: name.split("_", 1)[1])
        counts = (
            own.correct,
            own.prediction == INVALID,
            own.right_by_last_number,
            own.solution.map(repeated_passage) != "",
        )
        rows.append((f"{model} model", len(own), *(int(count.sum()) for count in counts)))
    return pd.DataFrame(rows, columns=["answers", "problems", "right", "unmarked", "right_by_last_number", "repeating"])


def repeated_passage(solution: str) -> str:
    """A line or sentence, or a side of one chain of equations (a = b = a = b), that occurs `REPEATS` times or more; else ""."""
    text = MARK.sub("", without_answer(solution)).lower()
    lines = [line for line in re.split(r"\n|\.\s", text) if line.strip()]
    counts = Counter(passage for passage in map(_words, lines) if len(passage) >= PASSAGE)
    for sides in ([_words(side) for side in line.split("=")] for line in lines):
        for side in {side for side in sides if len(side) >= SIDE}:
            counts[side] = max(counts[side], sum(other[-len(side) :] == side for other in sides))
    passage, times = max(counts.items(), key=lambda found: found[1], default=((), 0))
    return " ".join(passage) if times >= REPEATS else ""


def without_answer(solution: str) -> str:
    """A solution up to its first marked answer."""
    return solution.partition("####")[0]


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text))


# --- calculations -----------------------------------------------------------------------------------------------------

MARK = re.compile(r"<<([^<>]*)>>")
_SIGNS = str.maketrans("×·÷−–", "**/--", "\\")  # LaTeX's \times is then "times", its \$ a dollar
_TIMES = re.compile(r"(?<=[0-9]) ?(?:x|times) ?(?=[$(0-9])", re.I)
_NUMBER = r"\$?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
_SIDE = rf"\({{0,3}}{_NUMBER}\)*(?: ?[-+*/] ?\({{0,3}}-?{_NUMBER}\)*)+"
_CALCULATION = re.compile(
    rf"(?<![\w.,:%$^*/+)-])(?P<left>{_SIDE}) ?= ?(?=(?P<right>-?{_NUMBER})(?![\w,.]*[0-9]|[A-Za-z]))"
)
_BELONGS = {
    "of", "times", "plus", "minus", "x", "by", "and", "percent", "cent", "cents", "dozen", "pair", "pairs", "couple", "gross",
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "twenty", "thirty", "fifty",
    "half", "quarter", "third", "twice", "thrice", "double", "hundred", "thousand", "million", "billion",
}  # fmt: skip
_OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


@dataclass(frozen=True)
class Calculation:
    """A calculation as written, and whether it holds: a result with decimals may be rounded or cut off there."""

    text: str
    holds: bool


def calculations(solution: str) -> list[Calculation]:
    """The calculations of a solution in order, up to its marked answer (what a model goes on to write behind that isn't part of
    it). A calculator mark and the calculation it stands in count once, and so does one that is repeated at once."""
    found, key = [], None
    for line in without_answer(solution).translate(_SIGNS).splitlines():
        seen, line = {key}, _TIMES.sub("*", line)
        marks = MARK.findall(line)
        for text in [*marks, MARK.sub("", line)]:
            for match in _CALCULATION.finditer(text):
                left, right = match["left"], match["right"]
                if not _stands_alone(text[: match.start()], text[match.end("right") :]):
                    continue
                try:
                    value, result = _value(left), _value(right)
                except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
                    continue
                if text not in marks and re.fullmatch("[0-9]+/[0-9]+", left) and value < 1 < result:
                    continue  # "1/4 = 15" says what a quarter of something is
                key = (*sorted(re.findall("[0-9.,]+", left)), result)
                if key not in seen:
                    seen.add(key)
                    found.append(Calculation(text[match.start() : match.end("right")], _holds(value, right)))
    return found


def _stands_alone(before: str, behind: str) -> bool:
    """Whether nothing directly before or behind a calculation may belong to it."""
    before = before.rstrip()
    if before and not before[-1].isalpha() and before[-1] not in "=:;.,!?\"'(":
        return False
    words = re.findall("[A-Za-z]+$", before) + re.findall("^ ?([A-Za-z]+)", behind)
    clause = re.match("[^=.;:,!?]*", behind)[0]
    return _BELONGS.isdisjoint(word.lower() for word in words) and not re.search(r"[+*/^%0-9]| - ", clause)


def _value(side: str) -> Fraction:
    plain = re.sub("[$,]", "", side)
    plain = re.sub("(?<=/ )[0-9]+/[0-9]+", r"(\g<0>)", plain)  # 6 / 1/2 divides by a half
    return _evaluate(ast.parse(plain, mode="eval").body)


def _evaluate(tree: ast.expr) -> Fraction:
    match tree:
        case ast.Constant():
            return Fraction(str(tree.value))
        case ast.UnaryOp():
            return -_evaluate(tree.operand)
        case ast.BinOp():
            return _OPERATIONS[type(tree.op)](_evaluate(tree.left), _evaluate(tree.right))
    raise ValueError(f"No arithmetic: {ast.unparse(tree)}")


def _holds(value: Fraction, printed: str) -> bool:
    decimals = len(printed.partition(".")[2])
    return abs(value - _value(printed)) < Fraction(1, 10**decimals) if decimals else value == _value(printed)


def check_solutions(solutions: Mapping[str, Iterable[str]]) -> pd.DataFrame:
    """How reliable the arithmetic in solutions is, by who wrote them.

    Args:
        solutions: name → texts.

    Returns:
        solutions (the name), texts, calculations, wrong, texts_with_wrong.
    """
    rows = []
    for name, texts in solutions.items():
        wrong = [[not calculation.holds for calculation in calculations(text)] for text in texts]
        rows.append((name, len(wrong), sum(map(len, wrong)), sum(map(sum, wrong)), sum(map(any, wrong))))
    return pd.DataFrame(rows, columns=["solutions", "texts", "calculations", "wrong", "texts_with_wrong"])


# --- labels -----------------------------------------------------------------------------------------------------------


def fingerprint(solution: str) -> str:
    """The hash of a labelled text, which no other model's solution has: 12 hexadecimal digits."""
    return hashlib.sha256(solution.encode()).hexdigest()[:12]


def load_labels(folder: str | Path, errors: pd.DataFrame) -> pd.DataFrame:
    """All labels of these errors, a column for each pass ("<annotator> <pass>"), rows as in `errors`; NaN where there is none.
    Labels of other solutions to the same problems don't count.

    Raises:
        Gsm8kError: an unknown label.
    """
    keys = list(zip(errors.id, errors.tuned_solution.map(fingerprint), strict=True))
    found = {}
    for file in sorted(paths.resolve(folder).glob("gsm8k_*_*.csv")):
        table = pd.read_csv(file, dtype=str, keep_default_na=False)
        if unknown := set(table.label) - set(LABELS):
            raise Gsm8kError(f"{file}: unknown labels {sorted(unknown)}. Known: {', '.join(LABELS)}.")
        labels = dict(zip(zip(table.id, table.solution, strict=True), table.label, strict=True))
        column = [labels.get(key) for key in keys]
        if any(column):
            found[file.stem.removeprefix("gsm8k_").replace("_", " ")] = column
    return pd.DataFrame(found, index=errors.index, dtype=object)


def agreement(labels: pd.DataFrame) -> pd.DataFrame:
    """Cohen's κ between every two columns of `load_labels`.

    Returns:
        first, second, items ("all": labelled by both; "decided": undecided by neither), n, agree (items with the same
        category), kappa, low, high (95 % bootstrap; NaN where κ isn't defined: no item, or only one category).
    """
    rows = []
    for first, second in combinations(labels, 2):
        both = labels[[first, second]].dropna()
        for items, part in (("all", both), ("decided", both[(both != UNDECIDED).all(axis=1)])):
            rows.append((first, second, items, *_kappa(part[first], part[second])))
    return pd.DataFrame(rows, columns=["first", "second", "items", "n", "agree", "kappa", "low", "high"])


def _kappa(first: pd.Series, second: pd.Series) -> tuple[int, int, float, float, float]:
    from sklearn.metrics import cohen_kappa_score, confusion_matrix  # a second to import

    agree = int((first == second).sum())
    if len(set(first) | set(second)) < 2:
        return len(first), agree, float("nan"), float("nan"), float("nan")
    table = confusion_matrix(first, second, labels=LABELS)
    # A resample of the items is a draw from the table's cells; scikit-learn's κ of each resample would take minutes
    draws = np.random.default_rng(0).multinomial(len(first), table.ravel() / len(first), size=RESAMPLES)
    tables = draws.reshape(-1, *table.shape) / len(first)
    observed = np.trace(tables, axis1=1, axis2=2)
    expected = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1)
    with np.errstate(invalid="ignore"):  # a resample of one category has no κ
        low, high = np.nanquantile((observed - expected) / (1 - expected), [0.025, 0.975])
    return len(first), agree, float(cohen_kappa_score(first, second)), float(low), float(high)


# --- the types of error -----------------------------------------------------------------------------------------------


def paper_types() -> pd.DataFrame:
    """The paper's types: category, type (its name), percent (of its 100 errors), description, example (a tuned model's
    solution)."""
    folder = paths.DATA / "published"
    pairs = registry.read_jsonl(folder / "truong_table5_examples.jsonl")
    examples = {pair["error_type"]: pair["tuned"] for pair in pairs}
    table = published.read("truong_table5.csv", "percent").rename(columns={"error_type": "type"})
    categories = {name: category for category, name in CATEGORIES.items()}
    table = table.assign(category=table.type.map(categories), example=table.type.map(examples))
    return table[["category", "type", "percent", "description", "example"]]


def metric(category: str) -> str:
    """The name of a category's share in the papers' numbers."""
    return "share_" + CATEGORIES[category].lower().replace(" ", "_")


def count_types(labels: pd.DataFrame, base_correct: pd.Series) -> pd.DataFrame:
    """How many errors are of each type, by label pass; undecided last.

    Args:
        labels: a row per error, a column per pass.
        base_correct: whether the base model was right, for each error.

    Returns:
        labelled_by, category, type (the paper's name), published (percent of its 100 errors), errors, base_right (how many of
        them the base model solved), share, low, high (percent, Wilson's 95 %; NaN below `MINIMUM` labelled errors). Without a
        pass, the paper's shares with no errors.
    """
    passes = {name: labels[name].dropna() for name in labels} or {"": pd.Series(dtype=object)}
    rows = []
    for name, given in passes.items():
        for category in LABELS:
            found, title, percent = given.index[given == category], "", float("nan")
            if category in CATEGORIES:
                title = CATEGORIES[category]
                percent = published.value("truong", "Table 5", SYSTEM, metric(category))
            counts = (len(found), int(base_correct[found].sum()))
            rows.append((name, category, title, percent, *counts, *_share(len(found), len(given))))
    columns = ["labelled_by", "category", "type", "published", "errors", "base_right", "share", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def _share(hits: int, n: int) -> tuple[float, float, float]:
    if n < MINIMUM:
        return (float("nan"),) * 3
    # Wilson's interval: for a type that never occurs a bootstrap has no width
    return 100 * hits / n, *stats.wilson(100 * hits / n, n)


def coverage(labels: pd.Series) -> str:
    """How many errors are decided, in words, with the share where there are enough."""
    decided, n = int((labels != UNDECIDED).sum()), len(labels)
    return f"{decided} of {n} errors decided" + (f" ({100 * decided / n:.0f} %)" if n >= MINIMUM else "")


def result_rows(labels: pd.Series, labelled_by: str, model: str, **about: object) -> list[dict]:
    """The shares as measurements; none where there are too few errors for shares.

    Args:
        labels: one per error.
        labelled_by: an annotator's pass.
        model: the tuned model.
        about: scale, data and trained_on of `results.row`.
    """
    if len(labels) < MINIMUM:
        return []
    system = f"{model}, errors labelled by {labelled_by}"
    rows = []
    for category in CATEGORIES:
        share, low, high = _share(int((labels == category).sum()), len(labels))
        where = {"n": len(labels), "interval": (low, high), **about}
        rows.append(results.row(system, "GSM8K errors", metric(category), share, **where))
    return rows
