"""The pages beside the README: their links lead somewhere, their commands are known, their tables are complete."""

import re
import shlex
import subprocess

import nbformat
import pytest
import yaml

from nblib import paths
from nblib.models.negation_adapter import WEIGHTINGS
from nblib.results import comparison
from nblib.results.published import PAPERS
from nblib.training.losses import LOSSES
from nblib.workflow import cli, run_notebook

ROOT = paths.PROJECT_ROOT
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md", paths.NOTEBOOKS / "README.md"]


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def bash(text):
    """The commands of a text's bash blocks."""
    lines = "\n".join(re.findall(r"```bash\n(.*?)```", text, re.DOTALL)).splitlines()
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
    made_by_the_recipes |= {"nblib/models/ranker_architectures/overlap.py"}
    assert [name for name in set(named) - made_by_the_recipes if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", ["docs/running.md", "docs/design.md", "CONTRIBUTING.md"])
def test_its_commands_are_known(page):
    for words in bash(text_of(page)):
        if words[0] == "make":
            subprocess.run([*words, "-n"], cwd=ROOT, check=True, capture_output=True)
        elif words[0].endswith("nblib"):
            given = cli.parser().parse_args(words[1:])
            if words[1] == "run":
                parameters = run_notebook.read_parameters(given.mapping, given.pairs)
                run_notebook.check_parameters(run_notebook.find_notebook(given.notebook), parameters)
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


def test_the_lab_opens_on_that_table_rendered():
    (line,) = [line for line in text_of("Makefile").splitlines() if "jupyter lab" in line]
    folder, page = re.search(r"app_settings_dir=(\S+) .*default_url=/lab/tree/(\S+)", line).groups()
    assert (ROOT / page) == paths.NOTEBOOKS / "README.md"
    assert "Markdown Preview" in (ROOT / folder / "overrides.json").read_text()


def test_the_glossary_has_the_words_of_the_code_and_lists_none_twice():
    text = text_of("docs/glossary.md")
    rows = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)
    terms = [term for term in rows if term not in ("term", "---")]
    assert len(terms) == len(set(terms)) > 60
    words = ["hard negative", "cluster bootstrap", "position bias", "pairwise accuracy", "mini set"]
    assert [word for word in [*words, *comparison.MEASURED, *WEIGHTINGS, "symmetric-supcon"] if word not in text] == []
    assert "symmetric-supcon" in LOSSES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_it_says_things_in_the_words_of_the_glossary(page):
    text = page.read_text(encoding="utf-8").lower()
    others = [
        "miniature",
        "guarded",
        "of record",
        "habit",
        "two-sided",
    ]  # mini set, constrained, reference, bias, symmetric
    assert [word for word in others if re.search(rf"\b{word}", text)] == []


def test_the_layers_are_those_that_are_checked():
    project = text_of("pyproject.toml").split("layers = [")[1].split("]")[0]
    checked = [re.findall(r"\w+", line) for line in re.findall(r'"([^"]+)"', project)]
    table = re.findall(r"^\| (\d) \| ([^|]+) \|", text_of("docs/design.md"), re.MULTILINE)
    assert [int(number) for number, _ in table] == list(range(len(checked), 0, -1))
    assert [re.findall(r"`(\w+)`", packages) for _, packages in table] == checked


def test_the_citation_has_what_the_format_asks_for_and_the_four_papers():
    cited = yaml.safe_load(text_of("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert (cited["cff-version"], cited["license"]) == ("1.2.0", "MIT")
    assert f'version = "{cited["version"]}"' in text_of("pyproject.toml")
    assert all({"type", "title", "authors"} <= set(paper) for paper in cited["references"])
    authors = [paper["authors"][0]["family-names"].lower() for paper in cited["references"]]
    assert sorted(authors) == sorted(PAPERS)
    titles = " ".join(paper["title"] for paper in cited["references"])
    for title in PAPERS.values():
        assert title.split(", ", 1)[1].split(" (")[0].lower() in titles.lower()


def test_the_pages_are_the_report_without_secrets_and_with_pinned_actions():
    text = text_of(".github/workflows/pages.yml")
    steps = yaml.safe_load(text)["jobs"]["publish"]["steps"]
    assert "secrets." not in text
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]) for step in steps)
    (upload,) = [step for step in steps if "upload" in step["uses"]]
    assert (ROOT / upload["with"]["path"] / "index.html").is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_its_lines_fit_a_screen_tables_and_code_aside(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert [line for line in text.splitlines() if len(line) > 122 and not line.startswith("|")] == []


def test_the_contributing_guide_is_one_page():
    assert len(text_of("CONTRIBUTING.md").splitlines()) <= 70


def test_each_notebook_opens_with_its_number_and_a_question():
    for file in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        head = nbformat.read(file, as_version=4).cells[0].source
        assert head.startswith(f"# {file.stem[:2]} ") and "**Question.**" in head
