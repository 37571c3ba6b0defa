"""The README's numbers, from the record: `nblib record official` fills the marked parts of the page.

What stands between `<!-- made: NAME -->` and `<!-- end -->` is made by the function of that name below.
"""

import re
import textwrap
from pathlib import Path

import pandas as pd

from nblib import paths
from nblib.analysis import claims, matrix
from nblib.results import exhibits, measurements, scoreboard, words

WIDTH = 120  # characters of a line
FEW = 5  # claims of a verdict; more are listed by paper
PART = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
# Head of a column → benchmark
HEADLINE = {
    "NevIR": "nevir",
    "ExcluIR": "excluir",
    "CANNOT-WMT r": "cannot_wmt",
    "SemAntoNeg": "semantoneg",
    "STSB ρ": "stsb",
}
SYSTEMS = ["all-MiniLM-L6-v2", "all-mpnet-base-v2", "maxsim-all-mpnet-base-v2", "hedge-mpnet", "hedge-mpnet-3"]
SYSTEMS += ["nevir-mpnet", "nevir-multi-vector-mpnet"]


def fill(text: str, record: Path) -> str:
    """A page with its parts made anew from the tables of a record."""
    return PART.sub(lambda part: f"{part[1]}{PARTS[part[2]](record).rstrip()}\n{part[3]}", text)


def update(record: Path) -> list[str]:
    """Fill the README from a record; return its name if it changed."""
    file = paths.PROJECT_ROOT / "README.md"
    old = file.read_text(encoding="utf-8")
    new = fill(old, record)
    if new == old:
        return []
    with paths.write_atomically(file) as draft:
        draft.write_text(new, encoding="utf-8")
    return [file.name]


def _verdicts(record: Path) -> str:
    """The claims in their short form, by verdict; of those in between, how many checks hold and how many contradict the claim."""
    checked, short = pd.read_csv(record / "13_results" / "tab_claims.csv"), {one.id: one.short for one in claims.load()}
    listed = []
    for name in (*claims.VERDICTS, claims.NOT_MEASURED):
        rows = checked[checked.verdict == name]
        counted = name in (claims.PARTLY, claims.NOT_SUPPORTED)
        texts = rows.id.map(short) + (" (" + rows.holds + ")" if counted else "")
        by_paper = texts.groupby(rows.paper, sort=False)
        said = [f"{paper.capitalize()}: {'; '.join(part)}." for paper, part in by_paper]
        if len(rows) <= FEW:
            said = [" ".join(said)] * bool(said)
        lines = [f"- **{name.capitalize()}.** {one}" for one in said]
        listed += [textwrap.fill(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False) for line in lines]
    return "\n".join([claims.counts(checked), "", *listed])


def _headline(record: Path) -> str:
    """Systems by benchmarks: a score with half of its interval, "–" where it wasn't measured."""
    lines = [f"| system | {' | '.join(HEADLINE)} |", "|---" * (len(HEADLINE) + 1) + "|"]
    measured = measurements.read(record / "measurements.csv")
    whole = (measured[["sample", "part", "protocol", "variant"]] == "").all(axis=1) & (measured.split == "test")
    for system in SYSTEMS:
        rows = measured[whole & (measured.system == system)]
        known = rows[rows.trained_on != ""]
        text = words.training(known.trained_on.iloc[0], known.training_items.iloc[0]) if len(known) else ""
        cells = [f"{system} ({text})" if text else system]
        for benchmark in HEADLINE.values():
            main_metric, _ = matrix.SCORES[benchmark]
            score = rows[(rows.benchmark == benchmark) & (rows.corpus == benchmark) & (rows.metric == main_metric)]
            half = (score.ci_high - score.ci_low) / 2
            cells.append("".join(score.value.map("{:.1f}".format) + half.map(" ± {:.1f}".format)) or "–")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _agreement(record: Path) -> str:
    """How many of the printed numbers agree."""
    board = scoreboard.read(record / "scoreboard.csv")
    return textwrap.fill(exhibits.describe_agreement(board), WIDTH, break_on_hyphens=False)


PARTS = {"verdicts": _verdicts, "headline": _headline, "agreement": _agreement}
