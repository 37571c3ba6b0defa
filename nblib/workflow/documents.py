"""The README's numbers, from the record: `nblib record official` fills the marked parts of the page.

A part stands between `<!-- made: NAME -->` and `<!-- end -->`; what stands there is made by the function of that name below.
Prose beside the parts holds no number of a result.
"""

import re
import textwrap
from pathlib import Path

import pandas as pd

from nblib import paths
from nblib.analysis import claims
from nblib.results import exhibits, measurements

PART = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
RECORD = "figures/official"
# The benchmarks of the headline table: head → label, metric, data
AXES = {
    "NevIR": ("NevIR", "right_rank", "nevir test"),
    "ExcluIR": ("ExcluIR", "right_rank", "excluir test"),
    "CANNOT-WMT r": ("CANNOT-WMT", "pearson", "cannot_wmt test"),
    "SemAntoNeg": ("SemAntoNeg", "accuracy", "semantoneg test"),
    "STSB ρ": ("STSB", "spearman", "stsb test"),
}
SYSTEMS = (
    "all-MiniLM-L6-v2", "all-mpnet-base-v2", "maxsim-all-mpnet-base-v2", "hedge-mpnet", "hedge-mpnet-2",
    "nevir-mpnet", "nevir-multi-vector-mpnet",
)  # fmt: skip


class Record:
    """The reference tables that the parts are made of."""

    def __init__(self, folder: str | Path = RECORD) -> None:
        folder = paths.resolve(folder)
        self.claims = pd.read_csv(folder / "13_results" / "tab_claims.csv")
        self.measured = measurements.read(folder / "measurements.csv")
        self.board = pd.read_csv(folder / "scoreboard.csv")


def fill(text: str, record: Record) -> str:
    """A page with its parts made anew."""
    return PART.sub(lambda found: f"{found[1]}{PARTS[found[2]](record).rstrip()}\n{found[3]}", text)


def update(record: Record) -> list[str]:
    """Fill the README from the record; return its name if it changed."""
    file = paths.PROJECT_ROOT / "README.md"
    old = file.read_text(encoding="utf-8")
    new = fill(old, record)
    if new == old:
        return []
    with paths.write_atomically(file) as draft:
        draft.write_text(new, encoding="utf-8")
    return [file.name]


def markdown(table: pd.DataFrame) -> str:
    """A table in Markdown."""
    cells = [
        [str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in [table.columns, *table.to_numpy()]
    ]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([lines[0], "|" + "---|" * len(table.columns), *lines[1:]]) + "\n"


def _verdicts(record: Record) -> str:
    """The claims in their short form, by verdict."""
    short = {claim.id: claim.short for claim in claims.load()}
    listed = []
    for name in (*claims.VERDICTS, claims.NOT_MEASURED):
        chosen = record.claims[record.claims.verdict == name]
        by_paper = chosen.groupby("paper", sort=False).id
        said = " ".join(f"{paper.capitalize()}: {'; '.join(short[one] for one in ids)}." for paper, ids in by_paper)
        if said:
            line = f"- **{name.capitalize()}.** {said}"
            listed.append(textwrap.fill(line, 100, subsequent_indent="  ", break_on_hyphens=False))
    return "\n".join([claims.counts(record.claims), "", *listed])


def _headline(record: Record) -> str:
    """Systems by benchmarks: a score with half of its interval, "–" where it wasn't measured."""
    rows = []
    for system in SYSTEMS:
        of_system = record.measured[record.measured.system == system]
        texts = [text for text in of_system.trained_on.unique() if text]
        trained_on = re.sub(r"(.+ pairs) \(([\d,]+) pairs\)", r"\2 of \1", texts[0]) if texts else ""
        trained_on = trained_on.replace(" (", ", ").replace(")", "")
        row = {"system": f"{system} ({trained_on})" if trained_on else system}
        for head, where in AXES.items():
            found = of_system[(of_system[["benchmark", "metric", "data"]] == list(where)).all(axis=1)]
            half = (found.ci_high - found.ci_low) / 2
            row[head] = "".join(found.value.map("{:.1f}".format) + half.map(" ± {:.1f}".format)) or "–"
        rows.append(row)
    return markdown(pd.DataFrame(rows))


def _agreement(record: Record) -> str:
    """How many of the printed numbers agree."""
    return textwrap.fill(exhibits.headline(record.board), 100, break_on_hyphens=False)


PARTS = {"verdicts": _verdicts, "headline": _headline, "agreement": _agreement}
