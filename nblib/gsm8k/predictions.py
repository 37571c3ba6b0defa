"""What models answered to GSM8K, item by item: answers extracted as lm-eval does, two models' answers side by side, errors drawn.

Notebook 09 leaves `<run_dir>/scores/<model>/gsm8k_test.parquet` (or `gsm8k_mini_test.parquet`), a row per problem, with the
columns of `STORED`: gold is there the data set's worked solution, response what the model wrote, strict the answer that lm-eval's
strict filter extracted. Here the worked solution is the reference, and gold its final answer.
"""

from fractions import Fraction
from functools import cache
from importlib.resources import files
from pathlib import Path

import pandas as pd
import yaml

from nblib import paths
from nblib.gsm8k.tokens import normalise, numbers

STORED = {
    "id": "id", "question": "question", "gold": "reference", "response": "solution", "strict": "prediction",
    "correct": "correct",
}  # fmt: skip
COLUMNS = ["id", "question", "reference", "gold", "solution", "prediction", "correct"]
PROBLEMS = 1319  # in the official test set
SHARED = ["id", "question", "reference", "gold"]
STRICT, FLEXIBLE = "strict-match", "flexible-extract"
INVALID = "[invalid]"  # what lm-eval's filters give where they find no answer


class PredictionError(ValueError):
    """Predictions that are absent, malformed, or about other problems."""


def stock_task() -> Path:
    """The file in which lm-eval declares gsm8k."""
    return Path(str(files("lm_eval") / "tasks" / "gsm8k" / "gsm8k.yaml"))


@cache
def task() -> dict:
    """lm-eval's own declaration of gsm8k: its filters and what its metric ignores."""
    return yaml.safe_load(stock_task().read_text(encoding="utf-8"))


@cache
def _filters(rule: str) -> list:
    from lm_eval.filters import build_filter_ensemble

    declared = {entry["name"]: entry["filter"] for entry in task()["filter_list"]}
    if rule not in declared:
        raise PredictionError(f"lm-eval's gsm8k has no filter {rule!r}; it has {', '.join(declared)}.")
    steps = [(step["function"], {k: v for k, v in step.items() if k != "function"}) for step in declared[rule]]
    return build_filter_ensemble(rule, steps).filters


def extract(solution: str, rule: str = STRICT) -> str:
    """The answer in a solution, by one of lm-eval's filters for gsm8k: strict-match ("#### 18") or flexible-extract (the last
    number); "[invalid]" where there is none.

    Raises:
        PredictionError: lm-eval's task has no such filter.
    """
    answers = [[solution]]
    for make in _filters(rule):
        answers = make().apply(answers, [{}])
    return next(iter(answers))


def is_correct(prediction: str, reference: str) -> bool:
    """Whether an extracted answer is the reference's, by lm-eval's metric and what gsm8k has it ignore."""
    from lm_eval.api.metrics import exact_match_fn

    (metric,) = task()["metric_list"]
    options = {key: metric[key] for key in ("ignore_case", "ignore_punctuation", "regexes_to_ignore")}
    return bool(exact_match_fn(predictions=[prediction], references=[reference], **options)["exact_match"])


def gold_answer(reference: str) -> str:
    """The final answer of a worked solution of the data set: what follows "####".

    Raises:
        PredictionError: nothing does.
    """
    _, mark, answer = reference.rpartition("####")
    if not mark or not answer.strip():
        raise PredictionError(f"A reference solution without '#### answer': {reference[-80:]!r}")
    return answer.strip().replace(",", "")


def value(answer: str) -> Fraction | None:
    """An answer as a number; None where it holds none or several."""
    found = numbers(answer)
    if len(found) != 1:
        return None
    negative = normalise(answer).lstrip(" $€£").startswith("-")
    return -found[0] if negative else found[0]


def load(file: str | Path) -> pd.DataFrame:
    """A file of predictions, checked: `COLUMNS`.

    Raises:
        PredictionError: no file there (says what makes it), a column missing, an id twice, or no row at all.
    """
    named, file = Path(file), paths.resolve(file)
    if not file.is_file():
        run_dir = named.parents[2] if file.parent.parent.name == "scores" else "runs/lab"
        raise PredictionError(
            f"No GSM8K predictions at {file}. Notebook 09 makes them, once for the base model and once for the tuned one: "
            "python -m nblib.execution 09 out.ipynb -p base <model> -p adapter <folder made by notebook 05, or none> "
            f"-p suite {'mini' if 'mini' in file.stem else 'official'} -p run_dir {run_dir}"
        )
    try:
        table = pd.read_parquet(file)
    except (OSError, ValueError) as error:
        raise PredictionError(f"{file} is no parquet file ({error}). Make it again with notebook 09.") from error
    if missing := [column for column in STORED if column not in table]:
        raise PredictionError(f"{file}: no column {', '.join(missing)}; GSM8K predictions have {', '.join(STORED)}.")
    if table.empty or table.id.duplicated().any():
        fault = "no rows" if table.empty else f"the id {table.id[table.id.duplicated()].iloc[0]!r} twice"
        raise PredictionError(f"{file}: {fault}. Make it again with notebook 09.")
    table = table[list(STORED)].rename(columns=STORED)
    return table.assign(gold=table.reference.map(gold_answer), correct=table.correct.astype(bool))[COLUMNS]


def data_of(file: str | Path, problems: int) -> tuple[str, bool]:
    """What a file of predictions is about, from its name: the corpus and how much of it, and whether that is the official test
    set in full.

    Args:
        problems: how many there are.
    """
    corpus = Path(file).stem.removesuffix("_test")
    if "mini" in corpus:
        return corpus, False
    whole = problems == PROBLEMS
    return f"{corpus} test" + ("" if whole else f", {problems} of {PROBLEMS:,} problems"), whole


def join(base: pd.DataFrame, tuned: pd.DataFrame) -> pd.DataFrame:
    """Two models' predictions of the same problems: id, question, reference, gold, then solution, prediction, correct with
    the prefixes base_ and tuned_; problems that only one of them was asked are left out.

    Raises:
        PredictionError: no problem in common, or one id with two texts.
    """
    both = base.merge(tuned, on="id", suffixes=("_base", "_tuned"), validate="1:1")
    if both.empty:
        raise PredictionError("The two files of predictions have no problem in common: are they of the same split?")
    for column in SHARED[1:]:
        differ = both[f"{column}_base"] != both[f"{column}_tuned"]
        if differ.any():
            raise PredictionError(
                f"{differ.sum()} problems have another {column} in one file than in the other, first {both.id[differ].iloc[0]}: "
                "the models were asked different data (mini and official?)."
            )
    own = [column for column in COLUMNS if column not in SHARED]
    joined = both.rename(columns={f"{column}_base": column for column in SHARED[1:]})
    joined = joined.rename(columns={f"{c}_{model}": f"{model}_{c}" for c in own for model in ("base", "tuned")})
    return joined[[*SHARED, *(f"{model}_{c}" for model in ("base", "tuned") for c in own)]]


def draw_errors(joined: pd.DataFrame, size: int = 100, seed: int = 0) -> pd.DataFrame:
    """min(size, all) of the problems the tuned model gets wrong, at random, in the table's order (paper: 100).

    Args:
        joined: from `join`; its `base_correct` says whether the base model had it right.
    """
    errors = joined[~joined.tuned_correct]
    return errors.sample(min(size, len(errors)), random_state=seed).sort_index().reset_index(drop=True)
