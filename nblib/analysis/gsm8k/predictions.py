"""Models' answers to GSM8K: extracted as lm-eval does, described, joined for two models, errors sampled.

Notebook 11 writes `<run_dir>/scores/<model>/gsm8k_test.parquet` (or `gsm8k_mini_test.parquet`), a row per problem, with the
columns of `STORED`: there gold is the data set's worked solution, response the model's text, strict the answer that lm-eval's
strict filter extracts. Here the worked solution is the reference, and gold its final answer.
"""

import re
from collections import Counter
from functools import cache
from importlib.resources import files
from pathlib import Path

import pandas as pd
import yaml

from nblib import artefacts, paths
from nblib.analysis.gsm8k.arithmetic import MARK, without_answer
from nblib.errors import StudyError

STORED = {
    "id": "id", "question": "question", "gold": "reference", "response": "solution", "strict": "prediction",
    "correct": "correct",
}  # fmt: skip
COLUMNS = ["id", "question", "reference", "gold", "solution", "prediction", "correct"]
PROBLEMS = 1319  # in the official test set
REPEATS = 3  # of a passage: a repetition
PASSAGE, SIDE = 4, 2  # of how many words, as a line or sentence of its own, and as a side of one chain of equations
SHARED = ["id", "question", "reference", "gold"]
STRICT, FLEXIBLE = "strict-match", "flexible-extract"
INVALID = "[invalid]"  # of lm-eval's filters: no answer


class PredictionError(StudyError):
    """Predictions that are absent, malformed, or about other problems."""


@cache
def task() -> dict:
    """lm-eval's declaration of gsm8k: its filters and its metric's options."""
    return yaml.safe_load((files("lm_eval") / "tasks" / "gsm8k" / "gsm8k.yaml").read_text(encoding="utf-8"))


@cache
def _filters(rule: str) -> list:
    from lm_eval.filters import build_filter_ensemble

    declared = {entry["name"]: entry["filter"] for entry in task()["filter_list"]}
    if rule not in declared:
        raise PredictionError(f"lm-eval's gsm8k has no filter {rule!r}; it has {', '.join(declared)}.")
    steps = [(step["function"], {k: v for k, v in step.items() if k != "function"}) for step in declared[rule]]
    return build_filter_ensemble(rule, steps).filters


def extract(solution: str, rule: str = STRICT) -> str:
    """The answer in a solution by one of lm-eval's filters: strict-match ("#### 18") or flexible-extract (the last number);
    "[invalid]" where there is none.

    Raises:
        PredictionError: lm-eval's task has no such filter.
    """
    answers = [[solution]]
    for filter_class in _filters(rule):
        answers = filter_class().apply(answers, [{}])
    return next(iter(answers))


def is_correct(prediction: str, reference: str) -> bool:
    """Whether an extracted answer equals the reference's by lm-eval's metric for gsm8k."""
    from lm_eval.api.metrics import exact_match_fn

    (metric,) = task()["metric_list"]
    options = {key: metric[key] for key in ("ignore_case", "ignore_punctuation", "regexes_to_ignore")}
    return bool(exact_match_fn(predictions=[prediction], references=[reference], **options)["exact_match"])


def gold_answer(reference: str) -> str:
    """The final answer of a worked solution: the text after "####".

    Raises:
        PredictionError: there is none.
    """
    _, mark, answer = reference.rpartition("####")
    if not mark or not answer.strip():
        raise PredictionError(f"A reference solution has no '#### answer' at its end: {reference[-80:]!r}")
    return answer.strip().replace(",", "")


def load(file: str | Path) -> pd.DataFrame:
    """A file of predictions, checked: `COLUMNS`.

    Raises:
        PredictionError: there is no file, a column is missing, an id is repeated, or there are no rows.
        DamageError: it is not as it was written.
    """
    named, file = Path(file), paths.resolve(file)
    if not file.is_file():
        run_dir = named.parents[2] if file.parent.parent.name == "scores" else "runs/lab"
        raise PredictionError(
            f"No GSM8K predictions at {file}. Run notebook 11, once for the base model and once for the tuned one: "
            "nblib run 11 out.ipynb -p base <model> -p adapter <folder made by notebook 05, or none> "
            f"-p data {'mini' if 'mini' in file.stem else 'official'} -p run_dir {run_dir}"
        )
    table = artefacts.read_table(file)
    if missing := [column for column in STORED if column not in table]:
        raise PredictionError(f"{file}: no column {', '.join(missing)}; GSM8K predictions have {', '.join(STORED)}.")
    if table.empty or table.id.duplicated().any():
        fault = "no rows" if table.empty else f"the id {table.id[table.id.duplicated()].iloc[0]!r} twice"
        raise PredictionError(f"{file}: {fault}. Make it again with notebook 11.")
    table = table[list(STORED)].rename(columns=STORED)
    return table.assign(gold=table.reference.map(gold_answer), correct=table.correct.astype(bool))[COLUMNS]


def data_of(file: str | Path, problems: int) -> tuple[str, bool]:
    """The data behind a file of so many predictions: a description, and whether it is the whole official test set."""
    corpus = Path(file).stem.removesuffix("_test")
    if "mini" in corpus:
        return corpus, False
    if problems == PROBLEMS:
        return f"{corpus} test", True
    return f"{corpus} test, {problems} of {PROBLEMS:,} problems", False


def join(base: pd.DataFrame, tuned: pd.DataFrame) -> pd.DataFrame:
    """Two models' predictions of the problems both have: `SHARED`, then solution, prediction, correct with the prefixes base_
    and tuned_.

    Raises:
        PredictionError: no problem in common, or one id with two texts.
    """
    both = base.merge(tuned, on="id", suffixes=("_base", "_tuned"), validate="1:1")
    if both.empty:
        raise PredictionError("The two files of predictions have no problem in common: are they of the same split?")
    for column in SHARED[1:]:
        differ = both[f"{column}_base"] != both[f"{column}_tuned"]
        if differ.any():
            first = both.id[differ].iloc[0]
            raise PredictionError(
                f"{differ.sum()} problems have another {column} in the second file; the first is {first}."
            )
    own = [column for column in COLUMNS if column not in SHARED]
    joined = both.rename(columns={f"{column}_base": column for column in SHARED[1:]})
    joined = joined.rename(columns={f"{c}_{model}": f"{model}_{c}" for c in own for model in ("base", "tuned")})
    return joined[[*SHARED, *(f"{model}_{c}" for model in ("base", "tuned") for c in own)]]


def sample_errors(joined: pd.DataFrame, size: int = 100, seed: int = 0) -> pd.DataFrame:
    """At most `size` random problems of `join` that the tuned model gets wrong, in the table's order (paper: 100)."""
    errors = joined[~joined.tuned_correct]
    return errors.sample(min(size, len(errors)), random_state=seed).sort_index().reset_index(drop=True)


# --- what answers look like -------------------------------------------------------------------------------------------


def describe(joined: pd.DataFrame) -> pd.DataFrame:
    """Counts of the answers of both models of `join`.

    Returns:
        answers (the model), problems, right (by lm-eval's strict filter), unmarked (without "####"), right_by_last_number (by
        its flexible filter), repeating (see `repeated_passage`).
    """
    rows = []
    for model in ("base", "tuned"):
        texts = joined[f"{model}_solution"]
        flexible = [is_correct(extract(text, FLEXIBLE), ref) for text, ref in zip(texts, joined.reference, strict=True)]
        unmarked = sum(extract(text) == INVALID for text in texts)
        repeating = sum(bool(repeated_passage(text)) for text in texts)
        right = int(joined[f"{model}_correct"].sum())
        rows.append((f"{model} model", len(joined), right, unmarked, sum(flexible), repeating))
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


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text))
