"""The executed notebooks of a run: their order, question and provenance."""

import ast
import json
import re
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat
import pandas as pd
from nbformat import NotebookNode

from nblib import artefacts, corpora
from nblib.errors import StudyError
from nblib.results import measurements

SWEEP = "sweep"  # the folder below a run with the trainings of its sweep (Snakefile)
# Of a sidecar: when and how fast would differ from run to run.
KEPT_PROVENANCE = ("commit", "device", "python", "packages")
STATE = re.compile(r"· commit (\S+) ·")  # in the line that a notebook prints first (artefacts.provenance_line)


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

    @cached_property
    def parameters(self) -> dict[str, object]:
        """Every parameter with the value it was executed with."""
        source = next(
            (cell.source for cell in self.notebook.cells if "parameters" in cell.metadata.get("tags", [])), ""
        )
        declared = [node for node in ast.parse(source).body if isinstance(node, ast.AnnAssign)]
        return {node.target.id: ast.literal_eval(node.value) for node in declared} | self._given

    @property
    def _given(self) -> dict[str, object]:
        return dict(self.notebook.metadata.get("papermill", {}).get("parameters", {}))

    @property
    def command(self) -> str:
        """The command that executes it so again."""
        given = shlex.quote(json.dumps(self._given, ensure_ascii=False))
        return f"nblib run {self.number} runs/{self.page.removesuffix('.html')}.ipynb" + f" -y {given}" * bool(
            self._given
        )

    @property
    def _results(self) -> Path:
        return self.run / "results" / f"{self.number}_{self.name or self.source.partition('_')[2]}.csv"

    @cached_property
    def provenance(self) -> dict[str, object]:
        """The provenance of its results, from their sidecar; empty without results."""
        about = artefacts.about(self._results)
        return {key: about[key] for key in KEPT_PROVENANCE if key in about}

    @cached_property
    def states(self) -> set[str]:
        """The code states that it names: at its head when it began, and in its results' sidecar."""
        texts = [output.get("text", "") for cell in self.notebook.cells for output in cell.get("outputs", [])]
        found = {state for text in texts for state in STATE.findall(text)}
        return found | {str(self.provenance["commit"])} if self.provenance else found

    @cached_property
    def _measured(self) -> pd.DataFrame:
        return (
            measurements.read(self._results) if self._results.is_file() else pd.DataFrame(columns=measurements.COLUMNS)
        )

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprint of each model that it measured."""
        table = self._measured[self._measured.fingerprint != ""].drop_duplicates("system")
        return dict(zip(table.system, table.fingerprint, strict=True))

    @property
    def data_hashes(self) -> dict[str, str]:
        """The content hash of each split of the corpora that its measurements name."""
        words = {word for text in self._measured.data for word in re.findall(r"\w+", text)}
        named = [corpus for name, corpus in corpora.entries().items() if name in words]
        return {
            f"{corpus.name} {split}": about.sha256
            for corpus in named
            for split, about in corpus.splits.items()
            if split in words or len(corpus.splits) == 1
        }

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
