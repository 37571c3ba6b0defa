"""An executed notebook in one line: what it found, or why it failed."""

import re
from html import unescape
from pathlib import Path

from nblib.results.report import executed
from nblib.results.report.executed import ReportError


def headline(file: Path) -> str:
    """The first finding of an executed notebook as plain text; "" where it has none or can't be read."""
    try:
        findings = executed.read(file, file.parent.parent).findings
    except ReportError:
        return ""
    first = next((line for line in findings.splitlines() if line.strip()), "")
    return _plain(first.lstrip().removeprefix("- "))


def failure(file: Path) -> str:
    """The cell and the error at which an executed notebook stopped; "" where it didn't or can't be read."""
    try:
        notebook = executed.read(file, file.parent.parent).notebook
    except ReportError:
        return ""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                return f"cell [{cell.execution_count}]: {output.ename}: {output.evalue}"
    return ""


def _plain(markdown: str) -> str:
    """A line of Markdown without its marks and with its escaped signs."""
    return unescape(re.sub(r"\*+|`", "", markdown)).strip()
