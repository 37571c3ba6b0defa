"""The README: its commands exist and run, its links lead somewhere, its numbers are the record's."""

import re
import shlex
import subprocess
import sys

import numpy as np

from nblib import paths, results
from nblib.models import registry, weights
from nblib.models.negation_adapter import NegationAdapter
from nblib.workflow import cli, documents, run_notebook

README = (paths.PROJECT_ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands():
    lines = "\n".join(blocks("bash")).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.strip()]


def test_each_of_its_make_commands_has_a_target_and_takes_its_scale():
    asked = [command for command in commands() if command[0] == "make"]
    asked += [shlex.split(command) for command in re.findall(r"`(make [^`…]+)`", README)]
    assert len(asked) >= 3
    for command in asked:
        subprocess.run([*command, "-n"], cwd=paths.PROJECT_ROOT, check=True, capture_output=True)


def test_each_notebook_it_executes_takes_the_parameters_it_gives():
    asked = [
        command[command.index(word) + 1 :] for command in commands() for word in ("run", "papermill") if word in command
    ]
    assert len(asked) >= 4
    for notebook, *rest in asked:
        pairs = [rest[place + 1 : place + 3] for place, word in enumerate(rest) if word == "-p"]
        run_notebook.check_parameters(
            run_notebook.find_notebook(notebook), run_notebook.read_parameters("{}", pairs)
        )  # fmt: skip


def test_its_commands_are_known_and_the_quickest_scores(tmp_path):
    asked = [command[1:] for command in commands() if command[0] == ".venv/bin/nblib"]
    assert len(asked) >= 4
    for arguments in asked:
        cli.parser().parse_args(arguments)
    cli.main(["score", "TF-IDF", "--run-dir", str(tmp_path)])
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
    assert len(blocks("python")) == 1
    for code in blocks("python"):
        for old, new in replaced.items():
            code = code.replace(old, new)
        subprocess.run([sys.executable, "-c", code], cwd=paths.PROJECT_ROOT, check=True)
    assert (tmp_path / "negation" / "modules.json").is_file()


def test_its_links_and_the_files_it_names_are_there():
    linked = re.findall(r"\]\(([^)]+)\)", README)
    named = re.findall(r"`((?:data|figures|nblib|notebooks|config)/[^`\s<…*]+)`", README)
    assert len(linked) > 10
    assert [name for name in {*linked, *named} if not (paths.PROJECT_ROOT / name).exists()] == []


def test_it_is_a_page_that_can_be_read():
    prose = [line for line in README.splitlines() if not line.startswith(("|", "![", "adapter = "))]
    assert len(README.splitlines()) <= 110
    assert len(re.findall(r"[^\W_]+(?:['’.-][^\W_]+)*", re.sub(r"\]\([^)]*\)", "]", README))) <= 900
    assert [line for line in prose if len(line) > 102] == []


def test_its_numbers_are_those_of_record():
    assert {name for _, name, _ in documents.PART.findall(README)} == set(documents.PARTS)
    assert documents.fill(README, documents.Record()) == README
