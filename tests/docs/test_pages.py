"""The pages beside the README: their links lead somewhere, their commands are known, their tables are complete."""

import re
import shlex
import subprocess

import pytest

from nblib import paths
from nblib.workflow import cli, run_notebook

ROOT = paths.PROJECT_ROOT
PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "notebooks/README.md")),
]


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def bash(text):
    """The commands of a text's bash blocks."""
    lines = "\n".join(re.findall(r"```bash\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ").splitlines()
    return [part for line in lines if line.strip() for part in split(line)]


def split(line):
    words, commands = shlex.split(line, comments=True), [[]]
    for word in words:
        commands.append([]) if word == "&&" else commands[-1].append(word)
    return [command for command in commands if command]


def anchors(file):
    """The anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_its_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if not link.startswith("http"):
            file, _, anchor = link.partition("#")
            target = (page.parent / file).resolve() if file else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_files_it_names_are_there(page):
    named = re.findall(r"`((?:config|data|docs|figures|nblib|notebooks|tests)/[\w./-]+)`", page.read_text("utf-8"))
    made_by_the_recipes = {"data/mini/denials_mini.jsonl", "nblib/benchmarks/denials.py"}
    assert [name for name in set(named) - made_by_the_recipes if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", ["README.md", "docs/running.md", "docs/design.md", "CONTRIBUTING.md"])
def test_its_commands_are_known(page):
    for words in bash(text_of(page)):
        if words[0] == "make":
            subprocess.run([*words, "-n"], cwd=ROOT, check=True, capture_output=True)
        elif words[0].endswith("nblib"):
            given = cli.parser().parse_args(words[1:])
            if words[1] == "run":
                notebook = run_notebook.find_notebook(given.notebook)
                parameters = run_notebook.read_parameters(notebook, given.mappings, given.pairs)
                run_notebook.check_parameters(notebook, parameters)
        elif "papermill" in words:
            notebook, *rest = words[words.index("papermill") + 1 :]
            pairs = [rest[place + 1 : place + 3] for place, word in enumerate(rest) if word == "-p"]
            run_notebook.check_parameters(ROOT / notebook, run_notebook.read_parameters(ROOT / notebook, [], pairs))
        elif "snakemake" in words:
            files = [words[place + 1] for place, word in enumerate(words) if word in ("--configfile", "--profile")]
            assert files and all((ROOT / file).exists() for file in files)
        elif "pytest" in words:
            assert (ROOT / words[-1]).is_file()


def test_every_notebook_is_in_the_table_with_its_question_executed_copy_and_times():
    text = text_of("notebooks/README.md")
    rows = re.findall(r"^\| \[(\d\d) [^\]]+\]\((\w+)\.ipynb\) \| (.+)$", text, re.MULTILINE)
    assert [name for _, name, _ in rows] == sorted(file.stem for file in paths.NOTEBOOKS.glob("*.ipynb"))
    for number, name, cells in rows:
        question, executed, quick, official, _ = cells.split("|")
        assert question.strip().endswith("?")
        assert executed.strip().startswith(f"[{number}](../figures/official/notebooks/{name}")
        assert all(re.search(r"\b(s|min|minutes?|hour)\b", time) for time in (quick, official))


def test_the_layers_are_those_that_are_checked():
    project = text_of("pyproject.toml").split("layers = [")[1].split("]")[0]
    checked = [re.findall(r"\w+", line) for line in re.findall(r'"([^"]+)"', project)]
    table = re.findall(r"^\| (\d) \| ([^|]+) \|", text_of("docs/design.md"), re.MULTILINE)
    assert [int(number) for number, _ in table] == list(range(len(checked), 0, -1))
    assert [re.findall(r"`(\w+)`", packages) for _, packages in table] == checked
