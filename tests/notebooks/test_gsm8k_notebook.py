"""Notebook 12 on made-up predictions for the mini problems: many errors with labels, and none at all."""

import re

import pandas as pd
import pytest

from nblib import artefacts, paths, results
from nblib.analysis import gsm8k
from nblib.corpora import files
from nblib.workflow import run_notebook

PROBLEMS = [row for row in files.read(paths.DATA / "mini" / "gsm8k_mini.jsonl").values() if row["split"] == "test"]
SPOILT = ["I think so.\n#### 977", "He has 2 + 2 = 5.\n3 1/2 of them.\n#### 977", "I add one more to it.\n" * 4, ""]


def leave(run, model, problems, solutions):
    """Predictions as notebook 11 leaves them."""
    table = pd.DataFrame({"response": solutions, "solution": [problem["answer"] for problem in problems]})
    answers, gold = (table[column].str.extract("#### (.+)$")[0] for column in table)
    table = table.assign(
        id=table.index.astype(str),
        cluster=table.index,
        strict=answers.fillna("[invalid]"),
        correct=answers == gold,
        correct_flexible=answers == gold,
    )
    return str(artefacts.write_table(table, run / "scores" / model / "gsm8k_mini_test.parquet"))


@pytest.mark.notebooks
@pytest.mark.parametrize("problems, wrong", [(60, 50), (10, 0)], ids=["many errors", "none"])
def test_it_runs_whatever_the_number_of_errors(tmp_path, problems, wrong):
    rows = PROBLEMS[:problems]
    right = [re.sub("<<.*?>>", "", row["answer"]) for row in rows]
    spoilt = [SPOILT[k % len(SPOILT)] if k < wrong else text for k, text in enumerate(right)]
    labelled = wrong if wrong >= 30 else 0  # a pass over all errors, or nobody's
    (tmp_path / "labels").mkdir()
    if labelled:
        lines = [f"{k},{gsm8k.fingerprint(spoilt[k])},repetition,2026-01-01T00:00Z" for k in range(labelled)]
        (tmp_path / "labels" / "gsm8k_ann_1.csv").write_text("\n".join(["id,solution,label,minute", *lines]))
    parameters = {"label_folder": str(tmp_path / "labels"), "run_dir": str(tmp_path)}
    parameters["base_predictions"] = leave(tmp_path, "toy", rows, right)
    parameters["tuned_predictions"] = leave(tmp_path, "tuned", rows, spoilt)
    run_notebook.execute("12", tmp_path / "out.ipynb", parameters)
    table = results.load(tmp_path)
    assert table.empty or results.measurements.is_mini(table).all()
    assert table.metric.str.startswith("share_").sum() == (8 if labelled else 0)
    figures = tmp_path / "figures" / "12_gsm8k_errors"
    types = pd.read_csv(figures / "tab_types.csv")
    assert types.errors.sum() == labelled
    assert types.share.isna().all() == (not labelled)
    answers = pd.read_csv(figures / "tab_answers.csv", index_col="answers")
    assert answers.right.tolist() == [problems, problems - wrong]
    assert answers.repeating["tuned model"] == sum(k % len(SPOILT) == 2 for k in range(wrong))
