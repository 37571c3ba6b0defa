"""The site of a run, made by Sphinx from `docs/`, whose includes are made here, and the executed notebooks."""

import json
import math
import re
import shutil
import tempfile
from html import escape
from pathlib import Path
from urllib.parse import quote, unquote

import pandas as pd
from itables import JavascriptFunction
from itables.javascript import generate_init_offline_itables_html, to_html_datatable
from itables.options import dt_bundle
from sphinx.cmd.build import build_main

from nblib import artefacts, paths
from nblib.analysis import claims, matrix
from nblib.errors import StudyError, readable
from nblib.results import exhibits, measurements, scoreboard, tables

RECORD = paths.FIGURES / "official" / "13_results" / "tab_claims.csv"
OF_RECORD = (
    "No claim is judged by this run's data. The verdicts are those of the record, on the official test sets.\n\n"
)
OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./[^)]*\)")  # a page's links to files that the site doesn't have
FONT = "'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif"  # of figures; the second for machines that lack it
SHOWN = {"text/html", "text/markdown", "image/svg+xml", "image/png"}  # an output without any of them is a progress bar
FIGURE = "![An encoder trained here beside its base: scores with intervals](fig_glance.svg)"
FILES = ["scoreboard.csv", "measurements.csv", "13_results/tab_claims.csv", "13_results/fig_glance.svg"]
CLAIM = """<details><summary>{short}<small>{first}</small></summary>
<p><b>Claim.</b> {claim} ({section})</p><p><b>Measured.</b> {measured}</p>
<p><b>Why not more.</b> {because} It would take: {needs}</p><p><b>Would refute it.</b> {refuted_by}</p></details>"""
CELL = JavascriptFunction("""function (value, type, row) {
    if (Number.isNaN(value)) return null;
    return type === "sort" || type === "type" || !Number.isNaN(row[2]) ? value : (value > 0 ? "✓ " : "✗ ") + value;
}""")


def build(scale: str) -> Path:
    """Make `runs/<scale>/site/` from the run's executed notebooks, or without a run from the record's; return its first page.

    Raises:
        StudyError: no notebook of that scale has been executed, or a file can't be read.
    """
    run, record = paths.inside("runs", scale), paths.inside(paths.FIGURES, scale)
    own = (run / "notebooks").is_dir()
    figures, root = (run / "figures", run / "notebooks") if own else (record, record / "notebooks")
    executed = [file for pattern in ("*.ipynb", "[0-9]*/*.ipynb") for file in sorted(root.glob(pattern))]
    if not executed:
        raise StudyError(f"No executed notebooks in {run / 'notebooks'}. Run: make study SCALE={scale}")
    site = paths.writable_folder(run) / "site"
    with tempfile.TemporaryDirectory(prefix="site-", dir=run) as folder:
        source, draft, predictions = Path(folder, "source"), Path(folder, "html"), record / "predictions.tar.xz"
        shutil.copytree(paths.PROJECT_ROOT / "docs", source)
        for page in source.glob("*.md"):
            _write(page, OUTSIDE.sub(r"\1", page.read_text(encoding="utf-8")))
        for file in (figures / name for name in FILES if (figures / name).is_file()):
            _write(source / file.name, file.read_text(encoding="utf-8").replace(*FONT))
        stopped = [
            _copy(file, source / "notebooks" / file.relative_to(root).with_stem(_page(file.stem))) for file in executed
        ]
        if not own and predictions.is_file():
            artefacts.unpack(predictions, folder)
        if not (items := _items(run if own else Path(folder))):
            (source / "items.md").unlink()
        _write(source / "items.txt", items)
        _write(source / "claims.txt", "".join(stopped) + _claims(source / "tab_claims.csv"))
        _write(source / "systems.txt", _systems(source))
        _write(source / "notebooks.txt", _notebooks(source / "notebooks"))
        if build_main(["-q", "-j", "auto", "-d", f"{folder}/doctrees", str(source), str(draft)]):
            raise StudyError(f"Sphinx could not make {site}; the lines above say why.")
        shutil.rmtree(site, ignore_errors=True)
        draft.rename(site)
    return site / "index.html"


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _page(system: str) -> str:
    """A system's name as that of a page: percent-encoded, with "=" for "%", so that no browser decodes it."""
    return quote(system, safe="+").replace("%", "=")


def _system(page: str) -> str:
    """The system's name of a `_page`."""
    return unquote(page.replace("=", "%"))


def _copy(file: Path, target: Path) -> str:
    """Copy an executed notebook with its code folded; return a sentence about the error that it stopped with, "" without."""
    name, stopped = file.stem, ""
    with readable(file, "Remove it and execute it again."):
        notebook = json.loads(file.read_text(encoding="utf-8").replace(*FONT))
        for cell in notebook["cells"]:
            cell["source"] = "".join(cell["source"])
            cell["metadata"] = {"tags": ["hide-input"], "mystnb": {"image": {"alt": f"A figure of {name}"}}}
            if cell["cell_type"] == "markdown" and target.parent.name != "notebooks":  # one of several executions
                cell["source"] = re.sub("^(# .*)", rf"\1 ({name})", cell["source"], count=1)
            for output in cell.get("outputs", []):
                if output["output_type"] == "error":
                    error = escape(" ".join(f"{output['ename']}: {output['evalue']}".split()))
                    stopped = f'<p class="stopped">{escape(name)} stopped with {error}</p>\n\n'
                elif output["output_type"] == "display_data" and not SHOWN & set(output["data"]):
                    output["data"] = {}
        notebook["metadata"] = {"language_info": {"name": "python", "pygments_lexer": "python"}}
    _write(target, json.dumps(notebook, ensure_ascii=False))
    return stopped


def _notebooks(folder: Path) -> str:
    """The list of notebooks by number; those executed several times stand below a page of their own."""
    listed, entries = "```{{toctree}}\n:maxdepth: 1\n{}\n\n{}\n```\n".format, []
    for entry in sorted(folder.iterdir()):
        pages = sorted(entry.glob("*.ipynb")) if entry.is_dir() else [entry]
        heading = re.search(r'"# ([^:("\\]+)|$', pages[0].read_text(encoding="utf-8"))[1] or entry.stem
        entries.append(f"{heading} <notebooks/{entry.stem}>")
        if entry.is_dir():
            below = listed("", "\n".join(f"{_system(page.stem)} <{entry.name}/{page.stem}>" for page in pages))
            _write(entry.with_suffix(".md"), f"# {heading}\n\nExecuted once for each of:\n\n{below}")
    return listed(":caption: Notebooks", "\n".join(entries))


def _claims(file: Path) -> str:
    """How many claims have which verdict, and each claim, those with a verdict first; Markdown and HTML."""
    if not file.is_file():
        return "No claim has a verdict: notebook 13 hasn't ended in this run.\n"
    with readable(file, "Run notebook 13 again."):
        checked = pd.read_csv(file, keep_default_na=False).map(escape)
        checked["verdict"] = pd.Categorical(checked.verdict, [*claims.VERDICTS, claims.NOT_MEASURED])
        checked["first"] = checked.measured.str.split(r"(?<=\))[;.] |\. ", regex=True).str[0]
        checked["opened"] = [CLAIM.format(**row) for row in checked.to_dict("records")]
        checked["shown_in"] = checked.paper.str.capitalize() + ", " + checked.exhibit
    if checked.verdict.isin([claims.NOT_TESTABLE, claims.NOT_MEASURED]).all() and file != RECORD:
        return OF_RECORD + _claims(RECORD)
    shown = checked.sort_values("verdict", kind="stable")[["verdict", "holds", "opened", "shown_in"]]
    with pd.option_context("display.max_colwidth", None):
        table = shown.to_html(classes="claims", border=0, header=False, index=False, escape=False)
    return f"**{claims.counts(checked)}**\n\n{table}\n"


def _systems(source: Path) -> str:
    """The systems' scores by benchmark, and how the printed numbers agree; Markdown and HTML."""
    if not (source / "scoreboard.csv").is_file():
        return "No scores: notebook 13 hasn't ended in this run.\n"
    board = scoreboard.read(source / "scoreboard.csv")
    scores = matrix.matrix(measurements.read(source / "measurements.csv"), board)
    scores["interval"] = tables.interval_text(scores.ci_low, scores.ci_high, 1)
    scores["shown"] = [f"{row.value:.1f} ({row.interval}; n = {row.n:,.0f})" for row in scores.itertuples()]
    wide = scores.pivot(index="system", columns="benchmark", values="shown").fillna("")
    wide = wide.loc[scores.system.unique(), [*matrix.chances(scores)]].rename_axis(index=None, columns=None)
    parts = [FIGURE] * (source / "fig_glance.svg").is_file() + [exhibits.describe_agreement(board)]
    return "\n\n".join([*parts, f'<div class="wide">\n{wide.to_html(border=0)}\n</div>\n'])


def _items(folder: Path) -> str:
    """Items and answers of the systems that answered most, as a table to search, sort and filter; HTML, "" without any."""
    answers: dict[str, list[pd.Series]] = {}
    for file in sorted(folder.glob("scores/*/[!A-Z]*_test.parquet")):  # MTEB's have capitals, and 90,000 items
        with readable(file, "Score the system again."):
            table = pd.read_parquet(file)
            answer = next((name for name in ("margin", "similarity") if name in table), None)
            human = table["score"].round(2) if answer == "similarity" else math.nan
        if answer and not file.name.startswith("llm_"):
            table = table.assign(benchmark=file.stem.removesuffix("_test"), human=human)
            numbers = table.set_index(["benchmark", "id", "human"])[answer]
            answers.setdefault(file.parent.name.replace("__", "/"), []).append(numbers)
    columns = {system: pd.concat(parts) for system, parts in answers.items()}
    shown = sorted(columns, key=lambda system: (-len(columns[system]), "+" in system, system))
    if not shown:
        return ""
    # A browser loads the page as a whole, so six systems are the most
    table = pd.concat({system: columns[system] for system in shown[:6]}, axis=1)
    table = table.map("{:.3g}".format).astype(float).reset_index()  # with three digits a small margin keeps its sign
    look = {"column_filters": "footer", "scrollX": True, "display_logo_when_loading": False, "table_id": "items"}
    cells = [{"targets": list(range(2, table.shape[1])), "render": CELL}]
    html = to_html_datatable(table, connected=False, maxBytes=0, columnDefs=cells, **look)
    return generate_init_offline_itables_html(dt_bundle) + html
