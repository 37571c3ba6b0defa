"""The site of a run: it is made without a network from whatever has ended, and says what is missing."""

import json
import re
from urllib.parse import unquote, urlparse

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from nblib import paths, results
from nblib.errors import StudyError
from nblib.results import scoreboard
from nblib.workflow import cli, report

HEADING = "# 07 Toys: does it see?\n\n**Question.** It costs $5 or $6."
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><text style="font-family: \'DejaVu Sans\'">a</text></svg>'
BAR = new_output("display_data", data={"text/plain": "Map:   0%|          | 0/9"})
TABLE = "<table><tr><td>ExcluIR in a table</td></tr></table>"
OUTPUTS = [BAR, *(new_output("display_data", data=data) for data in ({"image/svg+xml": SVG}, {"text/html": TABLE}))]
CLAIM = {"id": "toy", "short": "a <claim>", "paper": "cao", "section": "§1", "claim": "It holds.", "verdict": "partly"}
CLAIM |= {"because": "One system.", "refuted_by": "Less.", "needs": "More.", "exhibit": "Table 2"}
CLAIM["holds"], CLAIM["measured"] = "1 of 2", "NevIR: A 8.1 (6.7 to 9.6, n = 1,383). And more."
SYSTEMS = ["a+adapter", *"hgfedcba"]


def execute(file, *outputs):
    code = [new_code_cell("x: int = 1", metadata={"tags": ["parameters"]}), new_code_cell("secret = 2")]
    code[1].outputs = list(outputs)
    cells = [new_markdown_cell(HEADING), *code, new_markdown_cell("$$\\frac{a}{b}$$")]
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=cells), file)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site of a run with two executions of a notebook, one of which failed, claims and predictions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "PROJECT_ROOT", root := tmp_path_factory.mktemp("project"))
        docs, run = paths.NOTEBOOKS.parent / "docs", root / "runs" / "toy"
        (root / "docs").symlink_to(docs)
        execute(run / "notebooks" / "07_toys" / "a.ipynb", *OUTPUTS)
        execute(run / "notebooks" / "07_toys" / "run#3 50%?.ipynb", *OUTPUTS)
        error = new_output("error", ename="KeyError", evalue="'<x>'\n\n2", traceback=["KeyError"])
        execute(run / "notebooks" / "07_toys" / "b.ipynb", error)
        execute(run / "notebooks" / "07_toys" / ".ipynb_checkpoints" / "a-checkpoint.ipynb")
        score = {"benchmark": "nevir", "corpus": "nevir", "split": "test", "metric": "right_rank", "value": 8.1, "n": 9}
        measured = [{"system": name, **score, "ci_low": 7, "ci_high": 9} for name in SYSTEMS]
        table = results.save(results.record(measured, scale="toy"), run / "figures" / "measurements.csv")
        (run / "figures" / "13_results").mkdir()
        pd.DataFrame([CLAIM]).to_csv(run / "figures" / "13_results" / "tab_claims.csv", index=False)
        scoreboard.build(table, run, "toy").to_csv(run / "figures" / "scoreboard.csv", index=False)
        for name in SYSTEMS:
            (folder := run / "scores" / name).mkdir(parents=True)
            items = pd.DataFrame({"id": [f"i{number}" for number in range(2000)], "margin": [0.0004] * 2000})
            items.to_parquet(folder / "STS12_test.parquet")
            items.loc[7, "margin"] = -0.00004
            items.to_parquet(folder / "nevir_test.parquet")
            scored = pd.DataFrame({"id": ["p"], "similarity": [0.5], "score": [4.0]})
            scored.to_parquet(folder / "stsb_test.parquet")
        cli.main(["report", "toy"])
        yield run / "site"


def test_the_first_page_has_each_claim_with_verdict_number_interval_and_n_and_what_failed(site):
    page = (site / "index.html").read_text()
    assert "<strong>Of 1 claims of the four papers: 1 partly.</strong>" in page
    assert "<td>partly</td>" in page and "a &lt;claim&gt;<small>NevIR: A 8.1 (6.7 to 9.6, n = 1,383)</small>" in page
    assert "<td>8.1 (7.0 – 9.0; n = 9)</td>" in page
    assert re.search(r'href="_downloads/\w+/scoreboard.csv"', page) and "no verdict" not in page
    assert '<p class="stopped">b stopped with KeyError: &#x27;&lt;x&gt;&#x27; 2</p>' in page


def test_a_page_has_its_code_folded_its_figure_and_formula_and_no_bar(site):
    page = (site / "notebooks" / "07_toys" / "a.html").read_text()
    assert page.count("tag_hide-input") == 2 and page.count("Show code") == 2
    marks = ("secret", "It costs $5 or $6.", "<mfrac>", 'alt="A figure of a"')
    assert all(mark in page for mark in marks) and "0/9" not in page
    (figure,) = (site / "_images").glob("*.svg")
    assert figure.name in page and "'DejaVu Sans', Verdana" in figure.read_text()
    assert "<h1>07 Toys: does it see? (a)<" in page
    assert {file.stem for file in (site / "notebooks" / "07_toys").iterdir()} == {"a", "b", "run=233=2050=25=3F"}


def test_the_page_of_items_has_every_row_and_the_systems_without_adapters_first(site):
    page = (site / "items.html").read_text()
    (table,) = re.findall(r'"data_json": ("(?:[^"\\]|\\.)*")', page)
    rows = json.loads(json.loads(table))
    assert len(rows) == 2001 and rows[7] == ["nevir", "i7", "___NaN___"] + 6 * [-0.00004]
    assert rows[-1] == ["stsb", "p", 4.0] + 6 * [0.5]
    assert re.findall(r"<th>(\w)</th>", re.search('"table_html".*?</thead>', page)[0]) == list("abcdef")


def test_the_site_is_searched_and_loads_nothing_from_a_network(site):
    loading = r"<(?:script|img|iframe|link|source)\b[^>]*\b(?:src|href)=\"?(?:https?:)?//[^>]*>"
    pages, index = list(site.rglob("*.html")), (site / "searchindex.js").read_text()
    assert len(pages) > 8 and all(f'"{word}"' in index for word in ("excluir", "nevir", "secret"))
    assert [found for page in pages for found in re.findall(loading, page.read_text())] == []


def test_a_run_that_goes_on_says_what_it_lacks_and_a_damaged_or_missing_one_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "PROJECT_ROOT", tmp_path)
    (tmp_path / "docs").symlink_to(paths.NOTEBOOKS.parent / "docs")
    with pytest.raises(StudyError, match=r"No executed notebooks in .*toy/notebooks. Run: make study SCALE=toy"):
        report.build("toy")
    execute(file := tmp_path / "runs/toy/notebooks/07_toys.ipynb")
    page = report.build("toy").read_text()
    assert "No claim has a verdict: notebook 13 hasn’t ended in this run." in page and "No scores:" in page
    assert not (tmp_path / "runs/toy/site/items.html").exists()
    unmeasured = pd.DataFrame([CLAIM | {"verdict": "not measured in this run"}])
    (tmp_path / "runs/toy/figures/13_results").mkdir(parents=True)
    unmeasured.to_csv(tmp_path / "runs/toy/figures/13_results/tab_claims.csv", index=False)
    page = report.build("toy").read_text()
    assert "those of the record, on the official test sets" in page and re.search(
        r"<strong>Of \d+ claims of the four papers: \d+ supported", page
    )
    file.write_text("{")
    with pytest.raises(StudyError, match=r"07_toys.ipynb can't be read.*Remove it and execute it again"):
        report.build("toy")
    assert (tmp_path / "runs/toy/site/index.html").read_text() == page
    assert len(list((tmp_path / "runs/toy").iterdir())) == 3


def test_links_to_a_system_of_any_name_lead_somewhere(site):
    linked = []
    for page in [site / "index.html", *(site / "notebooks").rglob("*.html")]:
        for target in re.findall(r'(?:href|src)="([^"]+)"', page.read_text(encoding="utf-8")):
            address = urlparse(target)
            if not address.scheme and address.path:
                linked.append((page.parent / unquote(address.path)).resolve())
    assert [path for path in linked if not path.exists()] == []
    (listed,) = {path for path in linked if path.name.startswith("run=") and path.suffix == ".html"}
    assert "(run#3 50%?)" in listed.read_text(encoding="utf-8") and not re.search("[#?% ]", listed.name)
