"""GSM8K predictions: answers as lm-eval extracts them, described; two models' tables joined, errors drawn."""

import json
from importlib.resources import files

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nblib import artefacts, paths
from nblib.analysis.gsm8k import predictions
from nblib.analysis.gsm8k.predictions import FLEXIBLE, INVALID, STRICT, PredictionError, extract
from nblib.corpora import registry

SOLUTIONS = [
    "5 * 2 = 10\n#### 10", "So $1,000.\n#### 1,000", "#### $10", "The answer is 10.", "nothing", "", "#### -3", "#### 10.0",
    "#### 10\nQ: 2+2\n#### 4", "2 + 3 = 5 dollars", "#### 10.", "10 cents\n####10",
]  # fmt: skip


def store(table, file):
    """As notebook 11 leaves predictions."""
    back = {new: old for old, new in predictions.STORED.items()}
    artefacts.write_table(table.drop(columns="gold", errors="ignore").rename(columns=back), file)


def table(**columns):
    size = len(columns.get("correct", [True, False, False]))
    default = {
        "id": [f"test-{k}" for k in range(size)], "question": [f"What is {k} + 1?" for k in range(size)],
        "reference": [f"{k} + 1 = {k + 1}\n#### {k + 1}" for k in range(size)], "gold": [str(k + 1) for k in range(size)],
        "solution": ["#### 1"] * size, "prediction": ["1"] * size, "correct": [True, False, False],
    }  # fmt: skip
    return pd.DataFrame({**default, **columns})


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """What lm-eval logs of its own gsm8k task for a model that answers `SOLUTIONS`, read from a local file."""
    import lm_eval
    from lm_eval.api.model import LM
    from lm_eval.tasks import TaskManager

    class Scripted(LM):
        def generate_until(self, requests, disable_tqdm=False):
            return [SOLUTIONS[request.doc_id] for request in requests]

        def loglikelihood(self, requests):
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

    folder = tmp_path_factory.mktemp("task")
    rows = [{"question": f"Number {k}?", "answer": "5*2 = <<5*2=10>>10\n#### 10"} for k in range(len(SOLUTIONS))]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    stock = files("lm_eval") / "tasks" / "gsm8k" / "gsm8k.yaml"
    (folder / "local.yaml").write_text(
        f"include: {stock}\ntask: gsm8k_local\ndataset_path: json\ndataset_name: null\n"
        f"dataset_kwargs: {{data_files: {{test: {folder / 'rows.jsonl'}}}}}\n"
        "training_split: null\nfewshot_split: test\ntag: null\n",
        encoding="utf-8",
    )
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    done = lm_eval.simple_evaluate(
        Scripted(), tasks=["gsm8k_local"], num_fewshot=0, task_manager=manager, log_samples=True, bootstrap_iters=0
    )
    return done["samples"]["gsm8k_local"]


def test_extraction_and_verdict_agree_with_lm_evals_own_samples(samples):
    assert len(samples) == 2 * len(SOLUTIONS)
    for sample in samples:
        solution = sample["resps"][0][0]
        extracted = extract(solution, sample["filter"])
        assert extracted == sample["filtered_resps"][0], (solution, sample["filter"])
        assert predictions.is_correct(extracted, sample["target"]) == bool(sample["exact_match"]), solution


def test_extraction_by_hand():
    assert (extract("#### 1,234"), extract("#### $10"), extract("#### $10", FLEXIBLE)) == ("1,234", INVALID, "$10")
    assert predictions.is_correct("1,234", "…\n#### 1234")
    with pytest.raises(PredictionError, match="flexible-extract"):
        extract("#### 1", "no-such-filter")


@settings(deadline=None)
@given(st.text(max_size=60), st.integers(-(10**9), 10**9))
def test_a_marked_answer_is_found_behind_any_text_without_marks(text, answer):
    text = text.replace("#", "")
    assert extract(f"{text}\n#### {answer}") == str(answer)
    assert predictions.is_correct(extract(f"{text}\n#### {answer:,}"), f"#### {answer}")


def test_the_gold_answer_is_what_follows_the_mark():
    assert predictions.gold_answer("a\n#### 1,234 ") == "1234"
    with pytest.raises(PredictionError, match="####"):
        predictions.gold_answer("no answer")


def test_a_file_comes_back_as_it_was_written(tmp_path):
    store(table(), tmp_path / "gsm8k_test.parquet")
    pd.testing.assert_frame_equal(predictions.load(tmp_path / "gsm8k_test.parquet"), table())


def test_the_name_says_which_problems_they_are():
    assert predictions.data_of("runs/quick/scores/toy/gsm8k_mini_test.parquet", 60) == ("gsm8k_mini", False)
    assert predictions.data_of("gsm8k_test.parquet", 1319) == ("gsm8k test", True)
    assert predictions.data_of("gsm8k_test.parquet", 200) == ("gsm8k test, 200 of 1,319 problems", False)


def test_a_missing_file_says_what_makes_it(tmp_path):
    with pytest.raises(PredictionError, match=r"nobody/gsm8k_test.* -p data official -p run_dir runs/nowhere$"):
        predictions.load("runs/nowhere/scores/nobody/gsm8k_test.parquet")
    with pytest.raises(PredictionError, match=r"nblib run 11 out.ipynb -p base .*-p data mini -p run_dir .*run$"):
        predictions.load(tmp_path / "run" / "scores" / "toy" / "gsm8k_mini_test.parquet")


@pytest.mark.parametrize(
    "spoilt, fault",
    [
        (table().drop(columns="solution"), "no column response"), (table().head(0), "no rows"),
        (table(id=["a", "a", "b"]), "'a' twice"),
    ],
)  # fmt: skip
def test_bad_files_are_refused(tmp_path, spoilt, fault):
    store(spoilt, tmp_path / "bad.parquet")
    with pytest.raises(PredictionError, match=fault):
        predictions.load(tmp_path / "bad.parquet")
    (tmp_path / "bad.parquet").write_text("no parquet")
    with pytest.raises(artefacts.DamageError, match=r"bad\.parquet is damaged"):
        predictions.load(tmp_path / "bad.parquet")


def test_two_models_are_joined_on_the_problems_both_were_asked():
    joined = predictions.join(table(), table(correct=[False, True, False]).iloc[1:])
    assert joined.id.tolist() == ["test-1", "test-2"]
    assert joined.base_correct.tolist() == [False, False]
    assert joined.tuned_correct.tolist() == [True, False]
    assert {"question", "reference", "gold", "base_solution", "tuned_prediction"} <= set(joined)


def test_other_problems_are_refused():
    with pytest.raises(PredictionError, match="no problem in common"):
        predictions.join(table(), table(id=["x", "y", "z"]))
    with pytest.raises(PredictionError, match="another question"):
        predictions.join(table(), table(question=["What?"] * 3))


def test_errors_are_drawn_by_seed_and_all_where_they_are_few():
    size = 200
    many = table(correct=[k % 4 == 0 for k in range(size)])
    joined = predictions.join(many, many)
    drawn = predictions.sample_errors(joined, 100, seed=1)
    assert len(drawn) == 100
    assert not drawn.tuned_correct.any()
    assert drawn.equals(predictions.sample_errors(joined, 100, seed=1))
    assert not drawn.equals(predictions.sample_errors(joined, 100, seed=2))
    assert len(predictions.sample_errors(joined, 1000)) == 150


@pytest.mark.parametrize(
    "solution, passage",
    [
        ("She has eggs in boxes.\n" * 4 + "#### 9", "she has eggs in boxes"),
        ("That costs 300/120 = 300/120 = 300/120 = 300/12", "300 120"),
        ("She has eggs in boxes.\n" * 2 + "#### 9\n" + "She has eggs in boxes.\n" * 2, ""),
        ("No.\nNo.\nNo.\nNo.", ""), ("", ""),
    ],
)  # fmt: skip
def test_a_passage_that_stands_three_times_is_a_repetition(solution, passage):
    assert predictions.repeated_passage(solution) == passage


@pytest.mark.official
def test_the_official_solutions_repeat_nothing():
    rows = registry.read_jsonl(paths.official_data() / "gsm8k" / "gsm8k_test.jsonl.gz")
    assert [row["answer"] for row in rows if predictions.repeated_passage(row["answer"])] == []


def test_answers_are_described():
    tuned = table(
        solution=["So it is 1.", "1 + 1 = 2\n#### 2", "again and again it goes\n" * 3], correct=[False, True, False]
    )
    described = predictions.describe(predictions.join(table(), tuned)).set_index("answers")
    assert described.loc["base model"].tolist() == [3, 1, 0, 1, 0]
    assert described.loc["tuned model"].tolist() == [3, 1, 2, 2, 1]


def test_the_two_filters_are_lm_evals():
    assert {STRICT, FLEXIBLE} == {entry["name"] for entry in predictions.task()["filter_list"]}
