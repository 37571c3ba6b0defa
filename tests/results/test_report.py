"""The report: pages that open offline, in which a text is a text, and which say the same of the same run."""

import json
import re
import shutil
import time
from html.parser import HTMLParser
from urllib.parse import unquote

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from support.browser import CHROMIUM, browser

from nblib import artefacts, corpora, paths, results
from nblib.benchmarks import scoring
from nblib.corpora import hedgetriple
from nblib.results import measurements, report
from nblib.results.report import ReportError, content, executed, front, items, markup, site
from nblib.workflow import cli

CANARY = "<script>canary()</script><img src=x onerror=canary()>"
WIDGET = "application/vnd.jupyter.widget-view+json"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TEXT = (
    'style="font-weight: 700; font-size: 11px; font-family: \'DejaVu Sans\'; fill: #262626" transform="rotate(-0 1 2)"'
)
SVG = f"""<svg width="72.5pt" height="36pt" xmlns="http://www.w3.org/2000/svg"><path d="M 1.234567 2.5"/>
<text {TEXT}>p &lt; 0.0123</text></svg>"""
TABLE = f"""<style>#T td {{color: red}}</style><table id="T"><caption>A &amp; B</caption>
<thead><tr><th id="T_0">text</th><th>score</th></tr></thead>
<tbody><tr><td onclick="canary()">{CANARY}</td><td class="data">-1,234.5</td></tr><tr><td>b</td><td>–</td></tr></tbody></table>"""
OUTPUTS = [
    new_output("stream", name="stdout", text=f"stdout {CANARY} in 12.5 s, 1,300 texts a second, table 3\n"),
    new_output("stream", name="stderr", text="\rbar: 50%|# | 1/2\n/lib/x.py:1: FutureWarning: stderr\n"),
    new_output("execute_result", data={"text/plain": f"plain {CANARY}"}),
    new_output("display_data", data={"text/markdown": f"found {CANARY} [x](javascript:canary()) in 99 s"}),
    new_output("display_data", data={WIDGET: {"model_id": "a1b2"}, "text/plain": "ProgressBar at zero"}),
    new_output("display_data", data={"text/html": "<div><progress value='1'></progress>[12/12 00:03]</div><p>after</p>"}),
    new_output("display_data", data={WIDGET: {"model_id": "c3d4"}, "text/html": "<b>static table</b>"}),
]  # fmt: skip
FIGURE = new_output("display_data", data={"image/png": PIXEL, "text/plain": "a picture"})
ROW = {"data": "semantoneg test", "n": 3152, "scale": "toy"}
CLAIM = {"id": "toy", "short": CANARY, "paper": "cao", "section": "§1", "exhibit": "Table 2", "claim": f"It holds. {CANARY}",
         "measured": CANARY, "verdict": "not supported", "because": CANARY, "refuted_by": CANARY, "needs": CANARY}  # fmt: skip


class Elements(HTMLParser):
    """The elements of a page as a browser sees them: what stands in a script or style is text, not an element."""

    def __init__(self, page):
        super().__init__()
        self.found, self.text = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


def execute(folder, cells, name="01_toy.ipynb", seconds=1.0, **parameters):
    """A notebook as papermill leaves it."""
    said = {"papermill": {"parameters": parameters, "duration": seconds, "end_time": f"2026-01-01T00:00:{seconds}"}}
    file = folder / "notebooks" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    for place, cell in enumerate(cells):
        cell.id = f"cell{place}"
    nbformat.write(new_notebook(cells=cells, metadata=said), file)
    return file


def cells(title="# 01 A & B <i>", source="x = 1", outputs=(FIGURE, *OUTPUTS)):
    question = "**Question.** Does *it* see\nthe <b>canary</b>?\n\n**Inputs.** None."
    links = "[all notebooks](README.md) · [02 Toys →](02_toys.ipynb)"
    return [new_markdown_cell(f"{title}\n\n{links}\n\n{question}"), new_markdown_cell("## 1 Look"),
            new_code_cell(source, outputs=list(outputs), execution_count=1)]  # fmt: skip


def toy_run(folder, seconds=1.0):
    """A run with a notebook executed once, one executed for an encoder, one of the sweep, and results with a canary."""
    saving = 'x = 1\noutputs.table(t, "x", "A")\noutputs.figure(\n    figure, "x", data\n)'
    table = new_output("execute_result", data={"text/html": TABLE})
    timed = [new_output("stream", name="stdout", text=f"Trained in {seconds} s.\n{folder}/results")]
    execute(folder, cells(outputs=[*OUTPUTS, *timed]), seconds=seconds)
    shown = cells("# 06 Adapter", saving, [FIGURE, table])
    execute(folder, shown, "06_adapter/tiny-encoder.ipynb", encoder="tiny-encoder", run_dir="runs/toy")
    failed = new_output(
        "error", ename="ValueError", evalue=CANARY, traceback=[f"\x1b[38;5;241mtraceback\x1b[0m {CANARY}"]
    )
    notice = new_markdown_cell("<span>An Exception was encountered</span>", metadata={"tags": [content.NOTICE]})
    stopped = [notice, *cells("# 04 Training", outputs=[failed])]
    execute(folder / "sweep", stopped, "04_training/both-s0.ipynb")
    results.save(
        [results.row("all-mpnet-base-v2", "SemAntoNeg", "accuracy", 1.0, trained_on=CANARY, **ROW)],
        folder / "results" / "06_tiny-encoder.csv",
    )
    said = {"commit": "abc123", "finished": f"2026-{seconds}", "seconds": seconds, "packages": {"torch": "2.13"}}
    sidecar = artefacts.sidecar(folder / "results" / "06_tiny-encoder.csv")
    artefacts.write_json(sidecar, artefacts.read_json(sidecar) | said)
    drawn = folder / "figures" / "06_adapter"
    drawn.mkdir(parents=True)
    (drawn / "fig_x_tiny-encoder.svg").write_text(SVG)
    for name in ("fig_x_tiny-encoder", "tab_x_tiny-encoder"):
        (drawn / f"{name}.csv").write_text(f"text\n{CANARY}\n")
    for system, margins in {"tiny": [0.1, -0.2, 0.3], "a+b": [0.1, 0.2, -0.3]}.items():
        answers = pd.DataFrame({"id": ["1-2", "2-3", "3-2"], "cluster": [0, 1, 2], "margin": margins})
        (folder / "scores" / system).mkdir(parents=True)
        answers.assign(correct=answers.margin > 0).to_parquet(folder / "scores" / system / "nevir_test.parquet")
    claims = folder / "figures" / "13_results" / "tab_claims.csv"
    artefacts.write_table(pd.DataFrame([CLAIM, {**CLAIM, "paper": "weller", "verdict": "supported"}]), claims)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """The index of a toy run's site."""
    root = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "PROJECT_ROOT", root)
        toy_run(root / "runs" / "toy")
        return report.build("toy")


@pytest.fixture
def pages(index):
    return {file.name: Elements(file.read_text()) for file in index.parent.glob("*.html")}


def tree(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_text_in_an_output_or_a_result_does_not_become_an_element(index, pages):
    for name, page in pages.items():
        own = ["items.js", "items/index.js"] if name == "items.html" else []
        assert [script.get("src") for script in page.all("script")] == ["report.js", *own], name
        assert not [attributes for _, attributes in page.found if any(key.startswith("on") for key in attributes)], name
        assert not [link for link in page.all("a") if "javascript" in link.get("href", "")], name
        assert not page.all("img") or name.startswith(("06", "index")), name
    text = index.with_name("01_toy.html").read_text()
    assert text.count("&lt;script&gt;canary()") >= 3, "and none of them is lost"
    for said in ("stdout", "plain", "found"):
        assert said in text
    assert "&lt;script&gt;canary()" in index.read_text()
    assert "traceback" in index.with_name("sweep_04_training_both-s0.html").read_text()


def test_the_gate_keeps_what_can_be_read_and_nothing_that_runs_or_styles():
    cleaned = markup.clean(
        f"<div style='x' onclick='canary()'><!--><img src=x onerror=canary()>-->{TABLE}<svg onload=canary()><mark>step</mark>"
    )
    assert "canary()&lt;/script" not in cleaned, "a script in an output is gone with its text"
    assert not [
        item for item in Elements(cleaned).found if item[0] in ("script", "img", "svg", "style") or "onclick" in item[1]
    ]
    assert "<caption>A &amp; B</caption>" in cleaned
    assert "<mark>step</mark>" in cleaned
    assert '<th scope="col">text</th>' in cleaned
    assert '<td class="n">-1,234.5</td>' in cleaned


def test_a_table_without_a_caption_is_named_by_its_columns_and_an_empty_head_heads_nothing():
    cleaned = markup.clean(
        "<table><thead><tr><th></th><th>n</th></tr></thead><tbody><tr><td>a</td><td>1</td></tr></tbody></table>"
    )
    assert 'aria-label="Table: n"' in cleaned and cleaned.count("<th") - cleaned.count("<thead") == 1


def test_an_equation_becomes_mathml_and_nothing_else_in_it_passes():
    shown = markup.markdown("$$\\frac{e^{s(a, p)}}{\\tau}$$\n\nAt $5, not $6.")
    assert '<math display="block"><mrow><mfrac>' in shown and "<mi>τ</mi>" in shown
    assert "$$" not in shown and "At $5, not $6." in shown
    hostile = markup.markdown(rf"$$\text{{{CANARY}}} \href{{javascript:canary()}}{{x}}$$")
    assert "<mi>x</mi>" in hostile and "canary" not in hostile
    assert markup.markdown(r"$$\left( <i>x$$") == "<p>$$\\left( &lt;i&gt;x$$</p>\n", "what can't be read stays text"


def test_widgets_leave_their_static_form_and_progress_goes(index):
    page = index.with_name("01_toy.html").read_text()
    for gone in ("a1b2", "ProgressBar at zero", "12/12", "widget", "bar: 50%", "FutureWarning: stderr"):
        assert gone not in page
    assert "<b>static table</b>" in page
    assert "after" in page


def test_every_link_and_picture_is_there_and_nothing_comes_from_elsewhere(index, pages):
    folder = index.parent
    ids = {
        name: {attributes["id"] for _, attributes in page.found if "id" in attributes} for name, page in pages.items()
    }
    linked = set()
    for name, page in pages.items():
        for tag, attributes in page.found:
            address = attributes.get("href") or attributes.get("src")
            if address is None or address.startswith("data:"):
                continue
            assert not re.match(r"\w+:|//", address), f"{name}: {tag} {address}"
            file, _, part = unquote(address).partition("#")
            assert (folder / (file or name)).is_file(), f"{name}: {address}"
            state = "=" in part  # a choice that a script reads
            assert not part or state or part in ids[file or name], f"{name}: {address}"
            linked.add(file or name)
        policy = next(
            meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"
        )
        assert "default-src 'none'" in policy
    on_demand = {name for name in tree(folder) if name.startswith("items/") or name == "search.js"}
    assert linked | on_demand == set(tree(folder)), "and nothing lies there that no page leads to"
    assert "url(" not in (folder / "style.css").read_text()


def scoreboard_of(index):
    run = index.parents[1]
    return results.scoreboard(results.load(run), run, "toy")


def test_the_index_leads_with_the_claims_the_systems_and_the_coverage_then_groups_the_notebooks(index):
    page = index.read_text()
    parts = ("claims", "matrix", "exhibits", "coverage", "notebook-01", "notebook-04", "notebook-06")
    places = [page.index(f'id="{name}"') for name in parts]
    assert places == sorted(places)
    assert "01 A &amp; B &lt;i&gt;" in page
    assert "Does <em>it</em> see\nthe &lt;b&gt;canary&lt;/b&gt;?" in page
    assert "1 more of the sweep" in page
    assert page.count("stopped with an error") == 1
    coverage = page[page.index('id="coverage"') :]
    assert coverage.count('<th scope="row">') == len(results.coverage(scoreboard_of(index)))


def test_a_claim_has_its_verdict_and_what_would_refute_it(index):
    page = index.read_text()
    claims = page[page.index('id="claims"') : page.index('id="matrix"')]
    assert "Of 2 claims: 1 supported, 1 not supported." in page
    assert claims.index(">supported<") < claims.index(">not supported<"), "the decided ones first"
    assert claims.count("<tr>") == 1 + 2
    assert claims.count('<td class="verdict not-supported">not supported</td>') == 1
    assert "It holds. &lt;script&gt;canary()" in claims and "Would refute it." in claims and "It would take:" in claims


def test_a_run_without_notebook_13_has_no_claims_and_no_link_to_them(run):
    toy_run(run)
    shutil.rmtree(run / "figures" / "13_results")
    page = report.build("toy").read_text()
    assert "#claims" not in page and 'id="claims"' not in page


def test_a_run_that_judges_no_claim_says_so_and_shows_its_scores_first(run):
    toy_run(run)
    file = run / "figures" / "13_results" / "tab_claims.csv"
    pd.read_csv(file).assign(verdict="not measured in this run").to_csv(file, index=False)
    page = report.build("toy").read_text()
    assert "This run judges no claim" in page and "which claims hold?" not in page
    assert page.index('id="matrix"') < page.index("claims, and what would test them") < page.index('id="claims"')


def test_every_measurement_and_the_scoreboard_lie_beside_the_index(index):
    kept = measurements.read(index.with_name("measurements.csv"))
    pd.testing.assert_frame_equal(kept, results.load(index.parents[1]), check_dtype=False)
    board = pd.read_csv(index.with_name("scoreboard.csv"))
    assert board.columns.tolist() == scoreboard_of(index).columns.tolist()
    assert len(board) == len(results.expected())


def test_the_scoreboard_begins_with_what_was_measured_most_nearly(tmp_path):
    rows = [
        results.row("hedge-mpnet", "NevIR", "right_rank", 35.9, data="nevir test", n=1383, scale="toy"),
        results.row("all-mpnet-base-v2", "ExcluIR", "right_rank", 70.9, data="excluir test", n=1014, scale="toy"),
        results.row("all-MiniLM-L6-v2", "SemAntoNeg", "accuracy", 1.9, **ROW),
    ]
    board = results.scoreboard(measurements.validate(pd.DataFrame(rows), "here"), tmp_path, "toy")
    ranked = front.ranked(board)
    assert len(ranked) == len(board)
    assert list(dict.fromkeys(ranked.measured)) == ["full", "sample", "stand-in", "not run"]
    first = ranked.iloc[0]
    assert (first.system, first.published, first.value, first["items"]) == ("all-MiniLM-L6-v2", 1.9, 1.9, "3,152")
    assert set(ranked[ranked.measured == "sample"]["items"]) == {"1,014; printed: 3,452"}


def test_a_figure_is_the_svg_its_cell_saved_with_the_data_beside_it(index):
    page = Elements(index.with_name("06_adapter_tiny-encoder.html").read_text())
    (image,) = page.all("img")
    assert image["src"] == "figures/06_adapter/fig_x_tiny-encoder.svg"
    assert image["alt"] == "1 Look. p < 0.0123"
    assert (image["width"], image["height"]) == ("97", "48")
    links = [link["href"] for link in page.all("a")]
    assert {f"figures/06_adapter/{name}_x_tiny-encoder.csv" for name in ("fig", "tab")} <= set(links)
    assert PIXEL not in index.with_name("06_adapter_tiny-encoder.html").read_text()


def test_a_picture_nobody_saved_is_shown_as_it_is(tmp_path):
    execute(tmp_path, cells(outputs=[FIGURE]))
    (shown,) = content.cells(executed.find(tmp_path)[0])[-1].outputs
    assert (shown.kind, shown.alt, shown.png) == ("picture", "1 Look", PIXEL)


def test_a_figure_of_the_sweep_and_one_saved_once_are_found_in_their_folders(tmp_path):
    saving = 'outputs.figure(figure, "x", data)'
    for folder, name in [(tmp_path, "01_toy.ipynb"), (tmp_path / "sweep", "04_training/both-s0.ipynb")]:
        execute(folder, cells(source=saving, outputs=[FIGURE]), name)
    for file in ("figures/01_toy/fig_x", "sweep/figures/04_training/fig_x_both-s0"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / f"{file}.csv").touch()
        (tmp_path / f"{file}.svg").write_text(SVG)
    shown = [content.cells(notebook)[-1].outputs[0].file for notebook in executed.find(tmp_path)]
    assert shown == ["01_toy/fig_x", "sweep/04_training/fig_x_both-s0"]
    execute(tmp_path, cells(source="%matplotlib inline", outputs=[FIGURE]))
    (output,) = content.cells(executed.find(tmp_path)[0])[-1].outputs
    assert output.kind == "picture", "a line that is no Python is no reason to fail"


def test_a_slimmed_svg_keeps_its_texts():
    slim = site.slim(SVG)
    assert "p &lt; 0.0123" in slim
    assert "M 1.23 2.5" in slim
    assert "rotate" not in slim
    assert slim.startswith("<svg font-family=\"'DejaVu Sans', Verdana, sans-serif\"")


def test_code_is_folded_and_escaped():
    assert markup.code('if a < b:  # <b>\n    c("<i>")') == (
        '<i class="k">if</i> a &lt; b:  <i class="c"># &lt;b&gt;</i>\n    c(<i class="s">&#34;&lt;i&gt;&#34;</i>)'
    )


def test_the_footer_says_where_the_numbers_come_from(index):
    page = index.with_name("06_adapter_tiny-encoder.html").read_text()
    footer = page[page.index("<footer>") :]
    for said in ("abc123", "torch 2.13", "runs/toy", "tiny-encoder"):
        assert said in footer


def test_the_same_run_at_another_time_makes_the_same_pages(index, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "PROJECT_ROOT", tmp_path)
    toy_run(tmp_path / "runs" / "toy", seconds=59.25)
    assert tree(report.build("toy").parent) == tree(index.parent)
    assert "Trained in … s.\nruns/toy/results" in index.with_name("01_toy.html").read_text()
    assert "table 3" in index.with_name("01_toy.html").read_text()


def test_a_report_made_again_has_no_page_left_over(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "PROJECT_ROOT", tmp_path)
    run = tmp_path / "runs" / "toy"
    toy_run(run)
    report.build("toy")
    shutil.rmtree(run / "sweep")
    assert not list(report.build("toy").parent.glob("sweep*"))


def called(file):
    """The arguments of the one call in a script of `items`."""
    return json.loads(re.fullmatch(r"\w+\(\.\.\.(.*)\);\n", file.read_text())[1])


def test_the_items_have_the_answers_and_margins_of_each_system_and_nothing_of_an_official_text(index):
    folder = index.parent / "items"
    (listed,) = called(folder / "index.js")
    assert (listed["task"], listed["label"], listed["n"], listed["systems"]) == ("nevir", "NevIR", 3, ["a+b", "tiny"])
    _, about = called(folder / "nevir" / "items.js")
    assert about["ids"] == ["1-2", "2-3", "3-2"]
    assert about["filters"]["edit"] == [
        "scope of the negation changed",
        "negation undone",
        "scope of the negation changed",
    ]
    assert "texts" not in about
    assert called(folder / "nevir" / "1.js")[2] == {"right": "101", "number": "margin", "values": [0.1, -0.2, 0.3]}


def test_the_texts_of_authored_items_are_there_each_row_once(tmp_path):
    anchors = hedgetriple.load().id.head(2)
    table = pd.DataFrame({"id": [f"{one}/{kind}/word" for one in anchors for kind in ("verbal", "lexical")]})
    table = table.assign(cluster=0, negation=["verbal", "lexical"] * 2, margin=0.0, correct=False)
    (tmp_path / "scores" / "tiny").mkdir(parents=True)
    table.to_parquet(tmp_path / "scores" / "tiny" / "negation_profile_test.parquet")
    items.write(tmp_path, tmp_path / "site")
    _, about = called(tmp_path / "site" / "items" / "negation_profile" / "items.js")
    assert about["rows"] == [0, 0, 1, 1]
    assert about["texts"][1][about["columns"].index("anchor")] == hedgetriple.load().anchor[1]


def test_a_sample_is_shown_among_the_items_of_the_whole(tmp_path):
    whole = pd.DataFrame({"id": ["1", "2", "3"], "cluster": [0, 1, 2], "margin": 0.5, "correct": True})
    for system, name, table in [("a", "excluir", whole), ("b", "excluir_sample", whole.iloc[[1]])]:
        (tmp_path / "scores" / system).mkdir(parents=True)
        table.to_parquet(tmp_path / "scores" / system / f"{name}_test.parquet")
    (listed,) = items.write(tmp_path, tmp_path / "site")
    assert listed["systems"] == ["a", "b"]
    assert called(tmp_path / "site" / "items" / "excluir" / "1.js")[2]["right"] == " 1 "


@pytest.fixture
def partial(tmp_path, monkeypatch):
    """A run of a configured scale that goes on: notebook 01 has finished, 06 is running."""
    monkeypatch.setattr(paths, "PROJECT_ROOT", tmp_path)
    monkeypatch.setattr(paths, "CONFIG", tmp_path / "config")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "toy.yaml").touch()
    toy_run(tmp_path / "runs" / "toy")
    begun = tmp_path / "runs" / "toy" / "notebooks" / "06_adapter" / "tiny-encoder.ipynb"
    notebook = nbformat.read(begun, as_version=4)
    notebook.metadata.papermill["end_time"] = None
    nbformat.write(notebook, begun)
    return report.build("toy", provisional=True)


def test_of_a_run_that_goes_on_the_index_names_what_is_to_come(partial):
    page = partial.read_text()
    assert "This run isn't finished" in page and "(still to come)" in page
    assert '<h3 id="notebook-07">' in page and "06 Negation adapter" in page
    assert partial.with_name("01_toy.html").is_file() and not list(partial.parent.glob("06*"))


def test_the_page_of_a_running_study_is_older_than_anything_snakemake_compares_it_with(partial):
    assert partial.stat().st_mtime == 0
    assert report.build("toy").stat().st_mtime > 0


def test_a_finished_run_has_nothing_to_come_and_neither_has_one_without_a_configuration(index, partial, monkeypatch):
    assert "still to come" not in index.read_text()
    sources = [executed.Executed(file.stem, "", partial, False, None) for file in paths.NOTEBOOKS.glob("*.ipynb")]
    assert site.to_come("toy", sources) == []


def test_the_matrix_has_our_score_with_n_and_interval_and_the_printed_one_of_the_same_system(tmp_path):
    same = {"data": "nevir test", "n": 1383, "scale": "toy", "interval": (6.7, 9.6)}
    rows = [
        results.row("all-mpnet-base-v2", "NevIR", "right_rank", 8.1, **same),
        results.row("hedge-mpnet", "NevIR", "right_rank", 35.9, trained_on="authored negations", **same),
        results.row(
            "all-mpnet-base-v2", "NevIR", "right_rank", 9.0, **{**same, "data": "nevir test, negation undone", "n": 694}
        ),
        results.row("all-mpnet-base-v2 + both", "NevIR", "right_rank", 9.0, **same),
    ]
    measured = measurements.validate(pd.DataFrame(rows), "here")
    shown = front.glance(measured, results.scoreboard(measured, tmp_path, "toy"))
    assert [(system, trained_on) for system, trained_on, _ in shown["matrix"]] == [
        ("all-mpnet-base-v2", ""), ("hedge-mpnet", "authored negations"),
    ]  # fmt: skip
    published, tuned = (scores["NevIR"] for _, _, scores in shown["matrix"])
    assert (published.value, published.published, published.agrees) == (8.1, 8.1, "within rounding")
    assert (published.interval, published.n) == ("6.7 – 9.6", 1383)
    assert tuned.agrees == "", "a stand-in has no printed number"
    mini = results.row(
        "all-mpnet-base-v2", "NevIR (mini)", "right_rank", 32.0, data="nevir_mini test", n=100, scale="toy"
    )
    measured = measurements.validate(pd.DataFrame([mini]), "here")
    shown = front.glance(measured, results.scoreboard(measured, tmp_path, "toy"))
    assert shown["chances"] == {"NevIR (mini)": 25.0} and list(shown["matrix"][0][2]) == ["NevIR (mini)"]


def test_a_page_has_its_command_settings_data_hashes_models_and_the_notebook(index):
    page = index.with_name("06_adapter_tiny-encoder.html").read_text()
    assert "nblib run 06 runs/06_adapter_tiny-encoder.ipynb -y &#39;{" in page
    assert f"<dt>semantoneg test</dt><dd>{corpora.describe('semantoneg').splits['test'].sha256}</dd>" in page
    copied = nbformat.read(index.parent / "notebooks" / "06_adapter_tiny-encoder.ipynb", as_version=4)
    assert [cell.source for cell in copied.cells] == [
        cell.source for cell in cells("# 06 Adapter", copied.cells[2].source)
    ]
    assert not any("image/png" in output.get("data", {}) for output in copied.cells[2].outputs)
    assert "canary" in str(copied.cells[2].outputs)


def test_the_contents_of_a_page_are_its_sections_and_each_has_an_anchor():
    texts = [markup.markdown(f"## {number} Part & *more*") for number in range(5)]
    found = content.headings([content.Cell(text=text) for text in texts])
    assert found[0] == ("0-part-more", "0 Part & more")
    assert '<a aria-label="Link to 0 Part &amp; more" class="anchor" href="#0-part-more">#</a>' in texts[0]


def test_a_headline_is_the_first_finding_in_plain_text(tmp_path):
    found = new_output("display_data", data={"text/markdown": "- **A** is `b` &lt; c\n- more"})
    file = execute(tmp_path, cells(outputs=[*OUTPUTS, found]))
    assert report.headline(file) == "A is b < c"
    assert report.failure(file) == ""
    assert report.headline(execute(tmp_path, cells(outputs=[]), "02_bare.ipynb")) == ""
    (tmp_path / "notebooks" / "cut.ipynb").write_text('{"cells": [')
    assert report.headline(tmp_path / "notebooks" / "cut.ipynb") == ""


def test_a_failure_names_cell_and_error(tmp_path):
    stopped = new_output("error", ename="ValueError", evalue="bad", traceback=["long"])
    assert report.failure(execute(tmp_path, cells(outputs=[stopped]))) == "cell [1]: ValueError: bad"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "PROJECT_ROOT", tmp_path)
    return tmp_path / "runs" / "toy"


def test_a_run_without_notebooks_is_refused_with_the_way_to_make_one(run):
    with pytest.raises(ReportError, match=r"No executed notebooks in .*make study SCALE=toy"):
        report.build("toy")


def test_a_file_that_is_no_notebook_is_named_and_the_old_report_stays(run, capsys):
    toy_run(run)
    cli.main(["report", "toy"])
    assert capsys.readouterr().out == f"Open {run}/report/index.html\n"
    (run / "notebooks" / "06_adapter" / "half.ipynb").write_text('{"cells": [')
    with pytest.raises(ReportError, match=r"half\.ipynb is no notebook"):
        report.build("toy")
    assert (run / "report" / "index.html").is_file()
    assert not list(run.glob(".report.*"))


def test_broken_results_end_with_a_message(run):
    execute(run, cells())
    artefacts.write_table(pd.DataFrame({"paper": ["cao"]}), run / "results" / "06.csv")
    with pytest.raises(results.ResultsError, match=r"06\.csv: no column"):
        report.build("toy")


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def test_a_browser_loads_every_page_without_complaint_and_without_the_net(index, tab):
    for file in sorted(index.parent.glob("*.html")):
        tab.open(file)
        assert tab.complaints == [], file.name
        elsewhere = [address for address in tab.requests if not address.startswith((index.parent.as_uri(), "data:"))]
        assert elsewhere == [], file.name
        assert tab.evaluate("document.styleSheets.length") == 1, "the policy lets the style in"
        assert images_show(tab), file.name


def images_show(tab):
    """Whether each image of a page can be shown; one far below is loaded late, if at all, unless it is asked for."""
    tab.evaluate("[...document.images].map(image => image.loading = 'eager')")
    ends = time.monotonic() + 20
    while not tab.evaluate("[...document.images].every(image => image.complete)") and time.monotonic() < ends:
        time.sleep(0.05)
    return tab.evaluate("[...document.images].every(image => image.naturalWidth > 0)")


def test_a_browser_runs_no_script_of_a_text_even_where_the_gate_failed(index, tab, tmp_path):
    site_ = shutil.copytree(index.parent, tmp_path / "site")
    page = (site_ / "01_toy.html").read_text()
    (site_ / "01_toy.html").write_text(
        page.replace("</main>", "<img src=x onerror='window.ran = 1'><script>window.ran = 1</script></main>")
    )
    tab.open(site_ / "01_toy.html")
    assert tab.evaluate("window.ran === undefined")
    assert any("Content Security Policy" in str(said) for said in tab.complaints)


def test_the_scoreboard_sorts_and_filters_and_the_address_keeps_it(index, tab):
    tab.open(index.with_name("scoreboard.html"))
    tab.evaluate(
        """const region = document.querySelector("[aria-label=Scoreboard]"), table = region.querySelector("table");
        const select = region.previousElementSibling.querySelector("select");
        const column = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === "published");
        const press = () => table.tHead.rows[0].cells[column].firstChild.click();
        const first = () => table.tBodies[0].rows[0].cells[column].textContent;"""
    )
    printed = scoreboard_of(index).published
    assert float(tab.evaluate("press(), first()")) == pytest.approx(printed.min(), abs=0.01)
    assert float(tab.evaluate("press(), first()")) == pytest.approx(printed.max(), abs=0.01)
    assert tab.evaluate("table.tHead.querySelector('[aria-sort]').ariaSort") == "descending"
    tab.evaluate("select.value = 'cao', select.dispatchEvent(new Event('input', {bubbles: true}))")
    shown = "new Set([...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.cells[0].textContent))"
    assert tab.evaluate(f"[...{shown}].join()") == "cao"
    kept = tab.evaluate("location.hash")
    assert kept == "#table=scoreboard&sort=-published&paper=cao"
    tab.open(index)
    tab.send("Page.navigate", url=index.with_name("scoreboard.html").as_uri() + kept)
    there = "document.querySelector('[aria-sort]')?.ariaSort + document.querySelector('.filters select')?.value"
    for _ in range(50):
        if tab.evaluate(there) == "descendingcao":
            break
        time.sleep(0.1)
    assert tab.evaluate(there) == "descendingcao"


def test_the_search_finds_pages_figures_and_exhibits(index, tab):
    tab.open(index)
    tab.evaluate("document.querySelector('.search input').focus(); var field")
    hits = "[...document.querySelectorAll('.found a')].map((one) => one.getAttribute('href')).join()"
    for _ in range(50):
        tab.evaluate("field = document.querySelector('.search input'); field.value = 'adapter p <'")
        tab.evaluate("field.dispatchEvent(new Event('input'))")
        if tab.evaluate(hits):
            break
        time.sleep(0.1)
    assert tab.evaluate(hits) == "06_adapter_tiny-encoder.html#fig_x_tiny-encoder"


def test_a_figure_is_enlarged_on_a_tap(index, tab):
    tab.open(index.with_name("06_adapter_tiny-encoder.html"))
    tab.evaluate("document.querySelector('a.enlarge').click()")
    assert (
        tab.evaluate("document.querySelector('dialog').open && document.querySelector('dialog img').alt")
        == "1 Look. p < 0.0123"
    )


def test_two_systems_are_compared_item_by_item_and_the_address_keeps_the_choice(index, tab):
    page = index.with_name("items.html")
    tab.open(page)
    chosen = "task=nevir&a=a%2Bb&b=tiny&show=1+0&edit=negation+undone"
    shown = "[...document.querySelectorAll('#items tbody tr')].map((row) => row.cells[0].textContent).join()"
    tab.send("Page.navigate", url=f"{page.as_uri()}#{chosen}")
    for _ in range(50):
        if tab.evaluate(shown) == "2-3":
            break
        time.sleep(0.1)
    assert tab.evaluate(shown) == "2-3", "A right, B wrong, negation undone"
    tab.evaluate("document.querySelector('#items tbody a').click()")
    assert "item=2-3" in tab.evaluate("location.hash") and "show=1+0" in tab.evaluate("location.hash")
    assert tab.complaints == []


def test_all_code_unfolds_at_once(index, tab):
    tab.open(index.with_name("01_toy.html"))
    folded = "[...document.querySelectorAll('details.code')].filter(code => !code.open).length"
    assert tab.evaluate(folded) == 1
    tab.evaluate("document.querySelector('.tools button').click()")
    assert tab.evaluate(folded) == 0


@pytest.mark.parametrize("file", sorted((paths.FIGURES / "official/report").glob("*.html")), ids=lambda file: file.stem)
def test_a_page_of_record_is_small_and_loads_nothing_from_elsewhere(file):
    assert file.stat().st_size < (300_000 if file.stem == "index" else 1_500_000)
    loaded = [attributes for tag, attributes in Elements(file.read_text()).found if tag in ("script", "link", "img")]
    addresses = [attributes.get("src") or attributes.get("href") for attributes in loaded]
    assert not [address for address in addresses if re.match(r"(?!data:)\w+:|//", address)]


def test_items_of_general_ability_stay_off_the_site(tmp_path):
    rows = pd.DataFrame({"id": ["1", "2"], "cluster": [0, 1], "correct": [True, False]})
    for task in ("nevir", "Banking77Classification"):
        scoring.save_predictions(rows, tmp_path / "run", "tiny", task)
    assert [row["task"] for row in items.write(tmp_path / "run", tmp_path / "site")] == ["nevir"]


def test_a_downloaded_table_has_no_styles_of_single_cells():
    style = (
        "<style>\n#T_a1 th {\n  text-align: left;\n}\n#T_a1_row0_col1, #T_a1_row1_col1 {\n  color: red;\n}\n</style>\n"
    )
    cells = '<table id="T_a1">\n  <th id="T_a1_level0_row0" class="row_heading level0 row0">x</th>\n  <td class="data">1</td>'
    kept = "<style>\n#T_a1 th {\n  text-align: left;\n}\n\n</style>" + '<table id="T_a1"><th>x</th><td>1</td>'
    assert content.STYLING.sub("", style + cells) == kept
