"""The README: its commands exist and run, its links lead somewhere, its numbers are those of record."""

import re
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from nblib import paths, results
from nblib.models import rankers, registry, weights
from nblib.models.negation_adapter import NegationAdapter
from nblib.workflow import cli, run_notebook

README = (paths.PROJECT_ROOT / "README.md").read_text(encoding="utf-8")
RECORD = paths.FIGURES / "official"
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
BENCHMARKS = {  # a column's head → the benchmark and the metric in the results
    "NevIR": ("NevIR", "right_rank"), "ExcluIR": ("ExcluIR", "right_rank"), "CANNOT-WMT": ("Cannot", "spearman"),
    "M3-derived": ("M3-Counterfactual", "spearman"), "SemAntoNeg": ("SemAntoNeg", "accuracy"), "STSB": ("STSB", "spearman"),
}  # fmt: skip
TRAININGS = {  # a row's head → the training in notebook 08's table
    "as it comes": "all-MiniLM-L6-v2", "6,400 triples": "both", "12,800 triples": "size-all", "800 triples": "size-100",
    "only negation": "only-negation", "only hedging": "only-hedging", "a rule's negation": "rule-based",
    "four types mixed": "mixed", "the symmetric-supcon loss": "two-sided",
}  # fmt: skip
ON_NEVIR = [  # before and after its 40 pairs, in the order of the table's rows
    (["all-MiniLM-L6-v2"], ["nevir-minilm-fast"]), (["maxsim-all-MiniLM-L6-v2"], ["nevir-multi-vector-minilm"]),
    (["all-mpnet-base-v2", "MPNet"], ["nevir-mpnet"]), (["maxsim-all-mpnet-base-v2"], ["nevir-multi-vector-mpnet"]),
]  # fmt: skip
BASE = "Gemma 3 270M as it comes"
LANGUAGE_MODELS = {BASE: "gemma-3-270m-q4"} | {  # a row's head → the model
    name: name for name in ("hedge-gemma", "hedge-gemma-negation", "hedge-gemma-hedging")
}


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands():
    lines = "\n".join(blocks("bash")).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.strip()]


def table(head):
    """The first table whose head names a column: one frame, the first column its index."""
    lines = next(found for found in re.findall(r"(?:^\|.*\n)+", README, re.MULTILINE) if head in found.splitlines()[0])
    cells = [[cell.strip(" *") for cell in line.strip().strip("|").split("|")] for line in lines.splitlines()]
    return pd.DataFrame(cells[2:], columns=cells[0]).set_index(cells[0][0])


def numbers(text):
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]


@pytest.fixture(scope="module")
def scoreboard():
    return pd.read_csv(RECORD / "scoreboard.csv")


def test_each_of_its_make_commands_has_a_target_and_takes_its_scale():
    asked = [command for command in commands() if command[0] == "make"]
    asked += [shlex.split(command) for command in re.findall(r"`(make [^`…]+)`", README)]
    assert len(asked) >= 7
    for command in asked:
        subprocess.run([*command, "-n"], cwd=paths.PROJECT_ROOT, check=True, capture_output=True)


def test_each_notebook_it_executes_takes_the_parameters_it_gives():
    asked = [
        command[command.index(word) + 1 :] for command in commands() for word in ("run", "papermill") if word in command
    ]
    assert len(asked) >= 10
    for notebook, *rest in asked:
        pairs = [rest[place + 1 : place + 3] for place, word in enumerate(rest) if word == "-p"]
        run_notebook.check_parameters(
            run_notebook.find_notebook(notebook), run_notebook.read_parameters("{}", pairs)
        )  # fmt: skip


def test_its_commands_are_known_and_the_quickest_scores(tmp_path):
    asked = [command[1:] for command in commands() if command[0] == ".venv/bin/nblib"]
    assert len(asked) >= 10
    for arguments in asked:
        cli.parser().parse_args(arguments)
    systems = [arguments[1] for arguments in asked if arguments[0] == "score"]
    assert {name for name in systems if ":" not in name} <= set(rankers.entries())
    cli.main(["score", systems[0], "--run-dir", str(tmp_path)])
    assert len(results.load(tmp_path))


def test_its_examples_of_python_run(tmp_path):
    """In order, the hub's name replaced by the same weights on disk, the run's adapter by one made here."""
    folder = weights.from_package(registry.entries()["all-mpnet-base-v2"])
    NegationAdapter().fit(*np.random.default_rng(0).normal(size=(3, 50, 768))).save(tmp_path / "adapter.safetensors")
    replaced = {
        "sentence-transformers/all-mpnet-base-v2": str(folder),
        "runs/quick/adapters/all-mpnet-base-v2.safetensors": str(tmp_path / "adapter.safetensors"),
        '"all-mpnet-base-v2-negation"': repr(str(tmp_path / "negation")),
    }
    assert len(blocks("python")) == 2
    for code in blocks("python"):
        for old, new in replaced.items():
            code = code.replace(old, new)
        subprocess.run([sys.executable, "-c", code], cwd=paths.PROJECT_ROOT, check=True)
    assert (tmp_path / "negation" / "modules.json").is_file()


def test_its_links_and_the_files_it_names_are_there():
    linked = re.findall(r"\]\(([^)]+)\)", README)
    named = re.findall(r"`((?:data|figures|nblib|notebooks|config)/[^`\s<…*]+)`", README)
    assert len(linked) > 10 and len(named) > 5
    assert [name for name in {*linked, *named} if not (paths.PROJECT_ROOT / name).exists()] == []


def test_every_notebook_is_in_its_table():
    listed = re.findall(r"\(notebooks/(\w+\.ipynb)\)", README)
    assert sorted(listed) == sorted(file.name for file in paths.NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("name", ["all-mpnet-base-v2", "hedge-mpnet", "hedge-mpnet-exclusions", "hedge-mpnet-full"])
def test_the_tuned_encoders_scores_are_those_of_record(scoreboard, name):
    [row] = [cells for head, cells in table("STSB ρ").iterrows() if re.split("[*,:]", head)[0] == name]
    ours = scoreboard[scoreboard.model.isin([name, "MPNet"] if name == "all-mpnet-base-v2" else [name])]
    for head, cell in row[row != "–"].items():
        benchmark, metric = BENCHMARKS[head.split(",")[0].removesuffix(" ρ")]
        found = ours[(ours.benchmark == benchmark) & (ours.metric == metric)]
        stated = numbers(cell) if "(" in cell else numbers(cell)[:1]  # else what follows says how many pairs
        known = found[["ours", "ci_low", "ci_high"]].iloc[0, : len(stated)]
        assert stated == pytest.approx(known.tolist(), abs=0.051), f"{name}, {head}"


@pytest.mark.parametrize("place", range(len(ON_NEVIR)))
def test_what_nevirs_pairs_bring_is_as_of_record(scoreboard, place):
    ours = scoreboard[scoreboard.metric.isin(["right_rank", "pairwise_accuracy", "accuracy"])]
    for head, cell in table("before → after").iloc[place].items():
        on = ours[ours.benchmark == head.split(",")[0]]
        before, after = (on[on.model.isin(names)].iloc[0] for names in ON_NEVIR[place])
        stated, known = numbers(cell), [before.ours, after.ours, after.ci_low, after.ci_high]
        assert len(stated) >= 2
        assert stated == pytest.approx(known[: len(stated)], abs=0.051), head


@pytest.mark.parametrize(("label", "model"), LANGUAGE_MODELS.items())
def test_the_language_models_scores_are_those_of_record(scoreboard, label, model):
    [row] = [cells for head, cells in table("dev pairs").iterrows() if head.split(":")[0] == label]
    base = label == BASE
    dev = pd.read_csv(RECORD / "05_llm_lora" / f"tab_dev_{'hedge-gemma' if base else model}.csv")
    known = dev.groupby("kind")["base" if base else "tuned"].mean()[["negation", "hedging"]].tolist()
    ours = scoreboard[(scoreboard.model == model) & (scoreboard.exhibit == "Table 3")]
    for head in row.index[2:]:
        benchmark = {"CANNOT-WMT": "Cannot", "M3-derived": "M3-Counterfactual"}.get(head, head)
        found = ours[(ours.benchmark == benchmark) & ours.metric.isin(["right_rank", "spearman", "accuracy"])]
        known.append(found.ours.item() if len(found) else np.nan)
    stated = [float(cell.replace("−", "-").removesuffix("*") if cell != "–" else "nan") for cell in row]
    assert stated == pytest.approx(known, abs=0.051, nan_ok=True)


@pytest.mark.parametrize(("label", "training"), TRAININGS.items())
def test_what_each_choice_is_worth_is_as_of_record(label, training):
    kept = pd.read_csv(RECORD / "08_hedge_trainings" / "tab_trainings.csv").set_index("variant").loc[training]
    [row] = [cells for head, cells in table("ExcluIR | CANNOT-WMT | STSB").iterrows() if head.startswith(label)]
    for head, cell in row.items():
        assert numbers(cell) == pytest.approx(numbers(kept[head]), abs=0.51 if "(" in cell else 0.051), (
            f"{label}, {head}"
        )
