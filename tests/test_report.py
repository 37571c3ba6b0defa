"""The report: pages that open offline, without widgets, and in which a text is a text."""

import re
from html.parser import HTMLParser

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from nblib import paths, report, results
from nblib.report import ReportError

CANARY = "<script>canary()</script><img src=x onerror=canary()>"
WIDGET = "application/vnd.jupyter.widget-view+json"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
OUTPUTS = [
    new_output("stream", name="stdout", text=f"stdout {CANARY}\n"),
    new_output("stream", name="stderr", text=f"stderr {CANARY}\n"),
    new_output("error", ename="ValueError", evalue=CANARY, traceback=[f"\x1b[31mtraceback\x1b[0m {CANARY}"]),
    new_output("execute_result", data={"text/plain": f"plain {CANARY}"}),
    new_output("display_data", data={"image/png": PIXEL, "text/plain": "a picture"}),
    new_output("display_data", data={WIDGET: {"model_id": "a1b2"}, "text/plain": "ProgressBar at zero"}),
    new_output("display_data", data={WIDGET: {"model_id": "c3d4"}, "text/html": "<b>static table</b>"}),
]


class Elements(HTMLParser):
    """The elements of a page as a browser sees them: what stands in a script or style is text, not an element."""

    def __init__(self, page):
        super().__init__()
        self.found, self.text, self.inside = [], [], None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self.inside = tag

    def handle_data(self, data):
        self.text.append((self.inside, data))


def executed(folder, name="01_toy.ipynb", title="# 01 A & B <i>"):
    notebook = new_notebook(
        cells=[new_markdown_cell(f"{title}\n\nText."), new_code_cell("x = 1", outputs=OUTPUTS, execution_count=1)],
        metadata={
            "widgets": {"application/vnd.jupyter.widget-state+json": {"state": {"a1b2": {}}, "version_major": 2}}
        },
    )
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, file)
    return file


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return report.render(executed(tmp_path_factory.mktemp("executed")))


def test_a_text_in_an_output_does_not_become_an_element(page):
    elements = Elements(page)
    assert not [item for item in elements.found if "onerror" in item[1]]
    assert not [text for tag, text in elements.text if tag == "script" and "canary" in text]
    assert page.count("&lt;script&gt;canary()") >= 4, "and none of them is lost"
    for said in ("stdout", "stderr", "traceback", "plain"):
        assert said in page


def test_widgets_go_and_static_content_stays(page):
    assert "widget-view" not in page
    assert "widget-state" not in page
    assert "a1b2" not in page
    assert "ProgressBar at zero" not in page
    assert "<b>static table</b>" in page
    assert PIXEL in page


def test_a_page_loads_nothing_from_elsewhere(page):
    wanted = [attributes.get(key) or "" for tag, attributes in Elements(page).found
              if tag in ("script", "link", "img", "iframe", "source", "object") for key in ("src", "href", "data")]  # fmt: skip
    assert not [address for address in wanted if re.match(r"(https?:)?//", address)]
    assert any(address.startswith("data:image/png") for address in wanted)
    assert not re.search(r"@import|url\(['\"]?(https?:)?//", page)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "PROJECT_ROOT", tmp_path)
    return tmp_path / "runs" / "toy"


def save_a_result():
    row = results.row("cao", "Table 2", "x", "SemAntoNeg", "accuracy", 1.0, n=9, scale="toy", data="m", official=False)
    results.save([row], "runs/toy/results/06.csv")


def test_the_index_leads_to_every_executed_notebook_and_shows_every_exhibit(run):
    executed(run / "notebooks")
    executed(run / "notebooks", "06_adapter/tiny-encoder.ipynb", "# 06 Adapter")
    save_a_result()
    index = report.build("toy")
    found = Elements(index.read_text())
    links = [attributes["href"] for tag, attributes in found.found if tag == "a"]
    assert links == ["01_toy.html", "06_adapter_tiny-encoder.html"]
    assert all((index.parent / link).is_file() for link in links)
    text = "".join(text for _, text in found.text)
    assert "01 A & B <i>" in text
    assert "06 Adapter – tiny-encoder" in text
    assert ("tr", {}) in found.found
    assert sum(tag == "tr" for tag, _ in found.found) >= 37
    assert {file.name for file in index.parent.iterdir()} == {"index.html", *links}


def test_a_run_without_notebooks_is_refused_with_the_way_to_make_one(run):
    with pytest.raises(ReportError, match=r"No executed notebooks in .*make study SCALE=toy"):
        report.build("toy")


def test_broken_results_end_with_a_message(run, monkeypatch):
    executed(run / "notebooks")
    (run / "results").mkdir()
    (run / "results" / "06.csv").write_text("paper\ncao\n")
    monkeypatch.setattr("sys.argv", ["report", "toy"])
    with pytest.raises(SystemExit, match=r"error: .*06\.csv: no column"):
        report.main()
