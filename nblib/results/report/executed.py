"""The executed notebooks of a run: their order, question and provenance."""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from nblib import artefacts
from nblib.errors import StudyError

SWEEP = "sweep"  # the folder below a run with the trainings of its sweep (Snakefile)
# Of a sidecar: when and how fast would differ from run to run.
KEPT_PROVENANCE = ("commit", "device", "python", "fingerprint", "packages")


class ReportError(StudyError):
    """A run without notebooks, or with one that can't be read."""


@dataclass(frozen=True)
class Executed:
    """An executed notebook.

    Attributes:
        source: the notebook's name, as "07_encoder_benchmarks".
        name: what it was executed for (an encoder, a training), "" for a notebook executed once in a run.
        run: the folder with this run's figures and results.
        sweep: whether it belongs to the run's sweep.
    """

    source: str
    name: str
    run: Path
    sweep: bool
    notebook: NotebookNode

    @property
    def number(self) -> str:
        """The notebook's number, as "07"."""
        return self.source.split("_", 1)[0]

    @property
    def page(self) -> str:
        """The name of its page."""
        return "_".join(filter(None, [SWEEP if self.sweep else "", self.source, self.name])) + ".html"

    @cached_property
    def head(self) -> str:
        """The cell with the title (papermill puts a notice before it when a cell failed)."""
        texts = (cell.source for cell in self.notebook.cells if cell.cell_type == "markdown")
        return next((text for text in texts if text.startswith("# ")), f"# {self.source}")

    @property
    def heading(self) -> str:
        """The first heading, which all executions of a notebook share; Markdown."""
        return self.head.splitlines()[0].lstrip("# ")

    @property
    def question(self) -> str:
        """What the notebook asks, or "" where it doesn't say; Markdown."""
        found = re.search(r"\*\*Question\.\*\*\s*(.+?)(?:\n\s*\n|\Z)", self.head, re.DOTALL)
        return found[1] if found else ""

    @property
    def failed(self) -> bool:
        """Whether a cell of it stopped with an error."""
        outputs = [output for cell in self.notebook.cells for output in cell.get("outputs", [])]
        return any(output.output_type == "error" for output in outputs)

    @property
    def running(self) -> bool:
        """Whether papermill has begun it and not ended."""
        return self.notebook.metadata.get("papermill", {}).get("end_time", "") is None

    @property
    def findings(self) -> str:
        """Its findings, the last text that it generated; Markdown, "" where there is none."""
        outputs = [output for cell in self.notebook.cells for output in cell.get("outputs", [])]
        texts = [output.data["text/markdown"] for output in outputs if "text/markdown" in output.get("data", {})]
        return texts[-1] if texts else ""

    @property
    def parameters(self) -> dict[str, object]:
        """What it was executed with, the defaults aside."""
        return dict(self.notebook.metadata.get("papermill", {}).get("parameters", {}))

    @cached_property
    def provenance(self) -> dict[str, object]:
        """The provenance of its results, from their sidecar; empty without results."""
        pattern = f"{self.number}_{self.name or '*'}.csv.json"
        sidecar = next(iter(sorted((self.run / "results").glob(pattern))), None)
        about = artefacts.about(sidecar.with_suffix("")) if sidecar else {}
        return {key: about[key] for key in KEPT_PROVENANCE if key in about}

    def saved(self, file: str) -> Path:
        """A figure's or table's file by its name below the site's `figures/`, where the sweep has a folder of its own."""
        return self.run / "figures" / (file.removeprefix(f"{SWEEP}/") if self.sweep else file)


def find(run: Path) -> list[Executed]:
    """A run's executed notebooks in the order of their numbers, those of its sweep after the others; without those that are
    still running.

    Raises:
        ReportError: there are none, or a file is no notebook.
    """
    found = []
    for folder in (run, run / SWEEP):
        root = folder / "notebooks"
        for file in root.rglob("*.ipynb"):
            if not file.parent.name.startswith("."):  # .ipynb_checkpoints
                found.append(read(file, folder, sweep=folder != run))
    found = [executed for executed in found if not executed.running]
    if not found:
        raise ReportError(f"No executed notebooks in {run / 'notebooks'}. Run: make study SCALE={run.name}")
    return sorted(found, key=lambda executed: (executed.source, executed.sweep, executed.name))


def read(file: Path, folder: Path, sweep: bool = False) -> Executed:
    """The executed notebook of a file below `<folder>/notebooks`.

    Raises:
        ReportError: the file is no notebook.
    """
    try:
        whole = json.dumps(json.loads(file.read_text(encoding="utf-8")), ensure_ascii=False)
        notebook = nbformat.reads(whole.encode(errors="replace").decode(), as_version=4)  # half a character becomes "?"
    except Exception as error:  # nbformat raises whatever its parsers raise
        raise ReportError(f"{file} is no notebook ({error}). Remove it and execute it again.") from error
    once = file.parent == folder / "notebooks"
    source, name = (file.stem, "") if once else (file.parent.name, file.stem)
    return Executed(source, name, folder, sweep, notebook)
