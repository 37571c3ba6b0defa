"""The recipes of docs/extending.md: each is applied to a copy of the project as it is written, then tried there."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pandas as pd
import pytest
import yaml
from support.language import tiny_llama

from nblib import paths
from nblib.corpora import registry

PAGE = (paths.PROJECT_ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RECIPES = [part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:] if "Try it:" in part]
DRIVER = """
import json, sys
from pathlib import Path
import huggingface_hub
from nblib.workflow import cli
given = json.loads(Path("tries.json").read_text())
huggingface_hub.snapshot_download = lambda name, **_: name if Path(name).is_dir() else given["llm"]
outcomes = {}
for recipe, (kind, code) in given["tries"].items():
    try:
        if kind == "python":
            exec(compile(code, recipe, "exec"), {})
        else:
            for words in code:
                cli.main(words[1:])
        outcomes[recipe] = "ok"
    except BaseException as error:
        outcomes[recipe] = f"{type(error).__name__}: {error}"
Path("outcomes.json").write_text(json.dumps(outcomes))
"""


def name_of(recipe):
    return recipe.splitlines()[0].lower()


def steps(recipe):
    """Each block with the sentence before it: what to do, the language, the code."""
    end, found = 0, []
    for match in BLOCK.finditer(recipe):
        said = " ".join(recipe[end : match.start()].strip().split())
        found.append((re.split(r"(?<=[.:]) (?=New file|Add to|Try it)", said)[-1], match[1], match[2]))
        end = match.end()
    return found


def apply(instruction, code, root):
    """Carry out an instruction of the page on the files below `root`."""
    file = root / re.search(r"`([^`]+)`", instruction)[1]
    if instruction.startswith("New file"):
        assert not file.exists(), file
        file.write_text(code, encoding="utf-8")
        return
    text = file.read_text(encoding="utf-8")
    if instruction.startswith("Add to the end"):
        file.write_text(text.rstrip("\n") + "\n" + code, encoding="utf-8")
    elif instruction.startswith("Add to the imports"):
        place = re.search(r"^(?:from|import) ", text, re.MULTILINE).start()
        file.write_text(text[:place] + code + text[place:], encoding="utf-8")
    else:
        how, marker = re.search(r", (below|above|inside) `([^`]+)`", instruction).groups()
        lines = text.splitlines(keepends=True)
        there = [number for number, line in enumerate(lines) if line.startswith(marker)]
        assert there, f"{file} has no line {marker}"
        at = there[-1 if instruction.endswith("the last one:") else 0]
        if how == "inside":
            at = next(number for number in range(at + 1, len(lines)) if lines[number][0] in "]}")
        file.write_text("".join([*lines[: at + (how == "below")], code, *lines[at + (how == "below") :]]), "utf-8")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory, tiny_encoder_folder):
    """What came of each recipe's last block, by its title."""
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(paths.PROJECT_ROOT / "nblib", root / "nblib", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(paths.DATA, root / "data", ignore=shutil.ignore_patterns("adapters", "generations"))
    tries = {}
    for recipe in RECIPES:
        for instruction, language, code in steps(recipe):
            code = code.replace("organisation/my-encoder", str(tiny_encoder_folder))
            if instruction == "Try it:":
                code = code.replace('"all-MiniLM-L6-v2"', repr(str(tiny_encoder_folder)))
                words = [shlex.split(line) for line in code.splitlines()] if language == "bash" else code
                tries[name_of(recipe)] = (language, words)
            else:
                apply(instruction, code.replace("SHA256", content_hash(recipe, code)), root)
    llm = tiny_llama(tmp_path_factory.mktemp("llm"))
    (root / "tries.json").write_text(json.dumps({"tries": tries, "llm": str(llm)}))
    environment = {**os.environ, "PYTHONPATH": str(root), "NBLIB_CACHE": str(root / "cache")}
    environment.pop("NBLIB_DATA", None)
    done = subprocess.run([sys.executable, "-c", DRIVER], cwd=root, env=environment, capture_output=True, text=True)
    assert (root / "outcomes.json").is_file(), done.stdout + done.stderr
    return json.loads((root / "outcomes.json").read_text())


def content_hash(recipe, code):
    """The hash that the error message would name, of the rows that the recipe gives."""
    if "SHA256" not in code:
        return ""
    (rows,) = [text for _, language, text in steps(recipe) if language == "json"]
    (name, entry), *_ = yaml.safe_load(code).items()
    corpus = registry.Corpus(name=name, **{**entry, "splits": {}})
    return registry.content_hash(pd.DataFrame(map(json.loads, rows.splitlines())), corpus)


@pytest.mark.parametrize("recipe", [name_of(recipe) for recipe in RECIPES])
def test_a_recipe_works_as_it_is_written(outcomes, recipe):
    assert outcomes[recipe] == "ok"


def test_every_recipe_is_in_the_list_at_the_top_and_is_tried():
    listed = re.findall(r"^- \[([^\]]+)\]\(#([\w-]+)\)", PAGE, re.MULTILINE)
    assert [title.lower() for title, _ in listed] == list(map(name_of, RECIPES))
    assert all(title.lower().replace(" ", "-") == anchor for title, anchor in listed)
