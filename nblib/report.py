"""`python -m nblib.report quick`: the executed notebooks of a run as HTML pages that open from the file system, offline."""

import argparse
import sys
from html import escape
from pathlib import Path

import nbformat
from nbconvert import HTMLExporter
from nbformat import NotebookNode

from nblib import paths, results

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color-scheme: light dark; }
table { border-collapse: collapse; } td, th { padding: .25rem .75rem; text-align: left; border-bottom: 1px solid #8884; }
"""


class ReportError(ValueError):
    """A run without anything to report."""


def render(executed: Path) -> str:
    """An executed notebook as one self-contained page: pictures inside, no script or font from elsewhere."""
    notebook = nbformat.read(executed, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in map(_static, cell.outputs) if output is not None]
    notebook.metadata.pop("widgets", None)
    exporter = HTMLExporter(
        template_name="lab", embed_images=True, mathjax_url="", require_js_url="", jquery_url="", mermaid_js_url=""
    )
    page, _ = exporter.from_notebook_node(notebook)
    return page


def _static(output: NotebookNode) -> NotebookNode | None:
    """An output without its widget, which would need a kernel and a script: its static table remains if it has one; what
    else is a widget (a progress bar at 0 %) goes."""
    data = output.get("data", {})
    if data.pop("application/vnd.jupyter.widget-view+json", None) and "text/html" not in data:
        return None
    return output


def title(executed: Path) -> str:
    """The first heading of a notebook."""
    first = nbformat.read(executed, as_version=4).cells[0].source
    return first.splitlines()[0].lstrip("# ").replace("*", "")


def build(scale: str) -> Path:
    """Render every executed notebook of a run and an index over them; returns the index.

    Raises:
        ReportError: no notebook of that scale has been executed.
    """
    run = paths.resolve(f"runs/{scale}")
    executed = sorted((run / "notebooks").rglob("*.ipynb"))
    if not executed:
        raise ReportError(f"No executed notebooks in {run / 'notebooks'}. Make them: make study SCALE={scale}")
    report = paths.writable_folder(run / "report")
    links = []
    for notebook in executed:
        name = "_".join(notebook.relative_to(run / "notebooks").with_suffix(".html").parts)
        with paths.write_atomically(report / name) as draft:
            draft.write_text(render(notebook), encoding="utf-8")
        which = "" if notebook.parent.name == "notebooks" else f" – {notebook.stem}"
        links.append(f'<li><a href="{escape(name)}">{escape(title(notebook) + which)}</a></li>')
    index = report / "index.html"
    with paths.write_atomically(index) as draft:
        draft.write_text(_index(scale, links, run), encoding="utf-8")
    return index


def _index(scale: str, links: list[str], run: Path) -> str:
    coverage = results.coverage(results.scoreboard(results.load(run), scale))
    columns = ["paper", "exhibit", "title", "status", "reproduced", "partial", "not_run"]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Negation study, {escape(scale)}</title><style>{STYLE}</style></head><body>
<h1>Negation blindness in text embeddings: the {escape(scale)} run</h1>
<h2>Notebooks</h2><ul>{"".join(links)}</ul>
<h2>The papers' exhibits</h2>
{coverage[columns].to_html(index=False, border=0, escape=True)}
</body></html>
"""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m nblib.report", description=__doc__.splitlines()[0])
    parser.add_argument("scale")
    try:
        index = build(parser.parse_args().scale)
    except (ReportError, results.ResultsError, FileNotFoundError, PermissionError) as error:
        sys.exit(f"error: {error}")
    sys.stdout.write(f"Open {index}\n")


if __name__ == "__main__":
    main()
