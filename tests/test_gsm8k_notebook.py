"""Notebook 10 on made-up predictions for the mini problems: many errors, few, and none at all."""

import random
import re

import pandas as pd
import pytest
from test_gsm8k_errors import planted

from nblib import corpora, execution, paths, results
from nblib.gsm8k.predictions import FLEXIBLE, extract, is_correct

PROBLEMS = [row for row in corpora.read_jsonl(paths.DATA / "mini" / "gsm8k_mini.jsonl") if row["split"] == "test"]


def leave(run, model, problems, solutions):
    """Predictions as notebook 09 leaves them."""
    rows = [
        {"id": str(k), "question": row["question"], "gold": row["answer"], "response": solution, "strict": extract(solution),
         "flexible": extract(solution, FLEXIBLE), "correct": is_correct(extract(solution), row["answer"])}
        for k, (row, solution) in enumerate(zip(problems, solutions, strict=True))
    ]  # fmt: skip
    file = paths.writable_folder(run / "scores" / model) / "gsm8k_mini_test.parquet"
    pd.DataFrame(rows).to_parquet(file)
    return str(file)


@pytest.mark.notebooks
@pytest.mark.parametrize("problems, wrong", [(60, 50), (20, 12), (10, 0)], ids=["many errors", "few", "none"])
def test_it_runs_whatever_the_number_of_errors(tmp_path, problems, wrong):
    rng, rows = random.Random(0), PROBLEMS[:problems]
    right = [re.sub("<<.*?>>", "", row["answer"]) for row in rows]
    spoilt = [
        rng.choice([*(text for _, text in planted(row, rng)), "I think so.\n#### 977"]) if k < wrong else text
        for k, (row, text) in enumerate(zip(rows, right, strict=True))
    ]
    execution.execute(
        "10", tmp_path / "out.ipynb",
        {"base_predictions": leave(tmp_path, "toy", rows, right), "tuned_predictions": leave(tmp_path, "tuned", rows, spoilt),
         "label_folder": str(tmp_path / "labels"), "run_dir": str(tmp_path)},
    )  # fmt: skip
    table = results.load(tmp_path)
    assert (table.status == "partial").all()
    sampled = table[table.metric == "errors_sampled"].ours.item()
    assert sampled == wrong
    assert table.metric.str.startswith("share_").sum() == (8 if wrong >= 30 else 0)
    types = pd.read_csv(tmp_path / "figures" / "tab_10_types.csv")
    assert types.errors.sum() == wrong
    assert types.share.isna().all() == (wrong < 30)
    assert not (tmp_path / "labels").exists()
