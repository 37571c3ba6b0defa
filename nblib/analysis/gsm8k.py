"""GSM8K: what a fine-tuned model gets wrong there, and why (Truong, Appendix C and Table 5).

Labels of errors are files `data/gsm8k/labels/gsm8k_<annotator>_<pass>.csv`: id, solution (`fingerprint`), label, minute (UTC).
Annotators are people, unless their name begins with `model-`.
"""

import ast
import hashlib
import operator
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from nblib import artefacts, corpora, paths, stats
from nblib.corpora import files
from nblib.errors import StudyError, one_of, readable
from nblib.results import published

ANSWER = ["response", "strict", "correct", "correct_flexible"]
REPEATS = 3  # of a passage: a repetition
PASSAGE, SIDE = 4, 2  # of how many words, as a line or sentence of its own, and as a side of one chain of equations
# The types of error as labels, with the paper's names
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
MINIMUM = 30  # errors, below which no share is given


def load(base: str | Path, tuned: str | Path) -> pd.DataFrame:
    """Two models' answers, in notebook 11's `<run_dir>/scores/<model>/gsm8k_test.parquet`, to the problems that both have: id,
    question, gold (the solution), and with the prefixes base_ and tuned_: response, strict (the extracted answer), correct,
    correct_flexible (by the last number). A StudyError: there is no such file, no problem in common, or as `with_problems`."""
    tables = []
    for prefix, file in (("base_", base), ("tuned_", tuned)):
        if not paths.resolve(file).is_file():
            raise StudyError(
                f"No answers to GSM8K at {file}. Make them: nblib run 11 out.ipynb -p base NAME, or -p lora FOLDER."
            )
        with readable(file, "It must be notebook 11's answers to GSM8K."):
            table = artefacts.read_table(file)[["id", *ANSWER]]
        tables.append(table.rename(columns={column: prefix + column for column in ANSWER}))
    joined = pd.merge(*tables, on="id", validate="1:1")
    if joined.empty:
        raise StudyError(f"{base} and {tuned} have no problem in common: are they of the same split?")
    return with_problems(joined, Path(tuned).stem.removesuffix("_test"))


def with_problems(answers: pd.DataFrame, corpus: str) -> pd.DataFrame:
    """Answers with the question and the solution (gold) of the problem that each `id`, a place in the test split, is about; for
    errors see `corpora.load`."""
    problems = corpora.load(corpus, "test")[["question", "answer"]].rename(columns={"answer": "gold"})
    return answers.merge(problems.assign(id=problems.index.astype(str)), on="id", validate="1:1")


def repeats(solution: str) -> bool:
    """Whether a line or sentence, or a side of one chain of equations (a = b = a = b), occurs `REPEATS` times or more."""
    text = MARK.sub("", solution.partition("####")[0]).lower()
    lines = [line for line in re.split(r"\n|\.\s", text) if line.strip()]
    counts = Counter(passage for passage in map(_words, lines) if len(passage) >= PASSAGE)
    for sides in ([_words(side) for side in line.split("=")] for line in lines):
        for side in {side for side in sides if len(side) >= SIDE}:
            counts[side] = max(counts[side], sum(other[-len(side) :] == side for other in sides))
    return max(counts.values(), default=0) >= REPEATS


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text))


MARK = re.compile(r"<<([^<>]*)>>")
_SIGNS = str.maketrans("×·÷−–", "**/--", "\\")  # LaTeX's \times is then "times", its \$ a dollar
_TIMES = re.compile(r"(?<=[0-9]) ?(?:x|times) ?(?=[$(0-9])", re.I)
_NUMBER = r"\$?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
_SIDE = rf"\({{0,3}}{_NUMBER}\)*(?: ?[-+*/] ?\({{0,3}}-?{_NUMBER}\)*)+"
_CALCULATION = re.compile(
    rf"(?<![\w.,:%$^*/+)-])(?P<left>{_SIDE}) ?= ?(?=(?P<right>-?{_NUMBER})(?![\w,.]*[0-9]|[A-Za-z]))"
)
_BELONGS = re.compile(
    "of|times|plus|minus|x|by|and|percent|cents?|dozen|pairs?|couple|gross|two|three|four|five|six|seven|eight|nine|ten|eleven|"
    "twelve|twenty|thirty|fifty|half|quarter|third|twice|thrice|double|hundred|thousand|million|billion",
    re.IGNORECASE,
)
_OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


class Calculation(NamedTuple):
    """A calculation as written, and whether it holds: a result with decimals may be rounded or cut off there."""

    text: str
    holds: bool


def calculations(solution: str) -> list[Calculation]:
    """The calculations of a solution up to its marked answer, each once: calculator marks (`<<12*60=720>>`) and plain ones ("$4
    x 3 = $12"), unless they go on in words ("20% of 50 = 10"): what is called wrong is wrong."""
    found, key = [], None
    for line in solution.partition("####")[0].translate(_SIGNS).splitlines():
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
                    decimals = len(right.partition(".")[2])
                    holds = value == result or bool(decimals and abs(value - result) < Fraction(1, 10**decimals))
                    found.append(Calculation(text[match.start() : match.end("right")], holds))
    return found


def _stands_alone(before: str, behind: str) -> bool:
    """Whether nothing directly before or behind a calculation may belong to it."""
    before = before.rstrip()
    if before and not before[-1].isalpha() and before[-1] not in "=:;.,!?\"'(":
        return False
    words = re.findall("[A-Za-z]+$", before) + re.findall("^ ?([A-Za-z]+)", behind)
    clause = re.match("[^=.;:,!?]*", behind)[0]
    return not any(map(_BELONGS.fullmatch, words)) and not re.search(r"[+*/^%0-9]| - ", clause)


def _value(side: str) -> Fraction:
    plain = re.sub("[$,]", "", side)
    plain = re.sub("(?<=/ )[0-9]+/[0-9]+", r"(\g<0>)", plain)  # 6 / 1/2 divides by a half
    return _evaluate(ast.parse(plain, mode="eval").body)


def _evaluate(tree: ast.expr) -> Fraction:
    if isinstance(tree, ast.BinOp):
        return _OPERATIONS[type(tree.op)](_evaluate(tree.left), _evaluate(tree.right))
    return -_evaluate(tree.operand) if isinstance(tree, ast.UnaryOp) else Fraction(str(ast.literal_eval(tree)))


def check_solutions(solutions: Mapping[str, Iterable[str]]) -> pd.DataFrame:
    """Counts by name of the solutions: solutions, texts, calculations, wrong, texts_with_wrong."""
    rows = []
    for name, texts in solutions.items():
        wrong = [[not calculation.holds for calculation in calculations(text)] for text in texts]
        rows.append((name, len(wrong), sum(map(len, wrong)), sum(map(sum, wrong)), sum(map(any, wrong))))
    return pd.DataFrame(rows, columns=["solutions", "texts", "calculations", "wrong", "texts_with_wrong"])


def fingerprint(solution: str) -> str:
    """The hash of a labelled text, 12 hexadecimal digits."""
    return hashlib.sha256(solution.encode()).hexdigest()[:12]


def load_labels(folder: str | Path, errors: pd.DataFrame) -> pd.DataFrame:
    """The labels of these solutions, a column for each pass ("<annotator> <pass>"), rows as in `errors`; NaN: not labelled. A
    StudyError: no such folder, a table of another name, an unknown label, or as `files.table`."""
    if not paths.resolve(folder).is_dir():
        raise StudyError(f"label_folder: there is no folder {paths.resolve(folder)}.")
    keys = pd.MultiIndex.from_arrays([errors.id, errors.tuned_response.map(fingerprint)])
    passes = {}
    for file in sorted(paths.resolve(folder).glob("*.csv")):
        if not re.fullmatch("gsm8k_.+_.+", file.stem):
            raise StudyError(f"{file} must be called gsm8k_<annotator>_<pass>.csv. Rename it, or move it elsewhere.")
        table = files.table(file, ("id", "solution", "label"), key=("id", "solution"))
        for place, label in table.label.items():
            one_of(label, LABELS, f"label ({file}, {place})")
        labels = table.set_index(["id", "solution"]).label
        passes[file.stem.removeprefix("gsm8k_").replace("_", " ")] = labels.reindex(keys).to_numpy()
    return pd.DataFrame(passes, index=errors.index, dtype=object).dropna(axis=1, how="all")


def agreement(labels: pd.DataFrame) -> pd.DataFrame:
    """Cohen's κ between every two columns of `load_labels`: first, second, items ("all": labelled by both; "decided": undecided
    by neither), n, agree (a count), kappa, low, high (95 % bootstrap; NaN without items of two categories)."""
    rows = []
    for first, second in combinations(labels, 2):
        both = labels[[first, second]].dropna()
        for items, part in (("all", both), ("decided", both[(both != UNDECIDED).all(axis=1)])):
            agree = int((part[first] == part[second]).sum())
            rows.append((first, second, items, len(part), agree, *_kappa(part[first], part[second])))
    return pd.DataFrame(rows, columns=["first", "second", "items", "n", "agree", "kappa", "low", "high"])


def _kappa(first: pd.Series, second: pd.Series) -> tuple[float, float, float]:
    from sklearn.metrics import cohen_kappa_score  # a second to import

    if len(set(first) | set(second)) < 2:
        return (np.nan,) * 3
    codes = [labels.map(LABELS.index) for labels in (first, second)]
    kappas = stats.cluster_replicates(
        lambda *drawn: cohen_kappa_score(*drawn) if len(np.unique(drawn)) > 1 else np.nan, *codes
    )
    return cohen_kappa_score(*codes), *stats.percentile_interval(kappas)


def paper_types() -> pd.DataFrame:
    """Table 5's types of error: category, type, percent (of 100 errors), description, example (a solution, as plain text)."""
    pairs = files.read(paths.DATA / "published" / "truong_table5_examples.jsonl").values()
    table = published.read("truong_table5.csv", "percent").rename(columns={"error_type": "type"})
    table["category"] = table.type.map({title: category for category, title in CATEGORIES.items()})
    table["example"] = table.type.map({pair["error_type"]: _plain(pair["tuned"]) for pair in pairs})
    return table[["category", "type", "percent", "description", "example"]]


def _plain(latex: str) -> str:
    """The paper's LaTeX as text, dollars as they are meant: its 15 with a backslash alone is 15 dollars."""
    unmarked = re.sub(r"(?<!\\)\$|\\mathbf|[{}]", "", latex.replace(r"\times", "×"))
    return re.sub(r"\\+\$?(?=\d)", "$", unmarked)


def count_types(labels: pd.DataFrame) -> pd.DataFrame:
    """How many errors are of each type, by pass (a column of `labels`), undecided last: labelled_by, category, type (the
    paper's name), metric (the key of its share), published (percent), errors, n (errors of this pass), share, low, high
    (percent, Wilson's 95 %; NaN below `MINIMUM`)."""
    passes = {name: labels[name].dropna() for name in labels} or {"": pd.Series(dtype=object)}
    rows = []
    for name, given in passes.items():
        for category in LABELS:
            errors, n = int((given == category).sum()), len(given)
            interval = stats.wilson(100 * errors / n, n) if n >= MINIMUM else (np.nan, np.nan)
            rows.append((name, category, errors, n, *interval))
    table = pd.DataFrame(rows, columns=["labelled_by", "category", "errors", "n", "low", "high"])
    table["type"] = table.category.map(CATEGORIES).fillna("")
    table["metric"] = ("share_" + table.type.str.lower().str.replace(" ", "_")).where(table.type != "", "")
    table["published"] = table.category.map(paper_types().set_index("category").percent)
    table["share"] = (100 * table.errors / table.n).where(table.n >= MINIMUM)
    return table[["labelled_by", "category", "type", "metric", "published", "errors", "n", "share", "low", "high"]]
