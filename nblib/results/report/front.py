"""The front of the site: the claims, systems × benchmarks, the exhibits as small pictures, coverage, notebooks; and the index
that the search box reads."""

import re
from itertools import groupby
from pathlib import Path

import pandas as pd
import yaml

from nblib import paths, results
from nblib.results import comparison, exhibits, matrix, published, tables
from nblib.results.report import content, items, markup
from nblib.results.report.content import Cell
from nblib.results.report.executed import Executed

HERO = "13_results/fig_glance"  # the picture that opens the index
UNDECIDED = ("not testable here", "not measured in this run")
VERDICTS = ("supported", "not supported", "partly", *UNDECIDED)


def index(board: pd.DataFrame, claims: pd.DataFrame, notebooks: list[Executed]) -> dict[str, object]:
    """The content of the index: the claims, the scoreboard, coverage, and the notebooks in their order.

    Args:
        claims: notebook 13's table of claims; empty where it wasn't executed.
    """
    coverage, numbers = results.coverage(board), board.published.notna()
    groups = [(source, list(group)) for source, group in groupby(notebooks, key=lambda notebook: notebook.source)]
    last = next((notebook for notebook in notebooks if notebook.number == "13"), None)
    coverage["link"] = [_exhibit_link(row, coverage, last) for row in coverage.to_dict("records")]
    counts = claims.verdict.value_counts() if len(claims) else {}
    if len(claims):  # the decided ones first
        claims = claims.sort_values("verdict", key=lambda column: column.map(VERDICTS.index), kind="stable")
    return {
        "papers": published.PAPERS,
        "citation": yaml.safe_load((paths.DATA.parent / "CITATION.cff").read_text(encoding="utf-8")),
        "printed": int(numbers.sum()),
        "in_full": int((numbers & board.measured.eq("full")).sum()),
        "agree": int(results.reproduced(board).sum()),
        "claims": [{**row, "link": _exhibit_link(row, coverage, last)} for row in claims.to_dict("records")],
        "tally": ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if verdict in counts),
        "decided": len(claims) and not claims.verdict.isin(UNDECIDED).all(),
        "findings": content.findings(last) if last else "",
        "coverage": coverage.to_dict("records"),
        "commands": sorted({one for row in coverage.command for one in row.split("; ") if one}),
        "kinds": {kind: kind.replace(" ", "_").replace("-", "_") for kind in comparison.MEASURED},
        "groups": groups,
        "executed_numbers": {notebook.number for notebook in notebooks},
        "commits": sorted({state for notebook in notebooks for state in notebook.states}),
    }


def glance(measured: pd.DataFrame, board: pd.DataFrame) -> dict[str, object]:
    """The matrix of systems and benchmarks: each system with its scores by benchmark."""
    table = matrix.matrix(measured, board)
    table["interval"] = tables.interval_text(table.ci_low, table.ci_high, 1)
    table["agrees"] = table.agrees.fillna("")
    rows = [
        (system, part.trained_on.iloc[0], {row.benchmark: row for row in part.itertuples()})
        for system, part in table.groupby("system", sort=False)
    ]
    return {"matrix": rows, "chances": matrix.chances(table), "agreeing": comparison.AGREEING}


def pictures(notebooks: list[Executed], shown: dict[str, list[Cell]]) -> dict[str, object]:
    """The figures of a run for the index: of a notebook executed for several models the first's, and the one that opens it."""
    found: dict[str, dict[str, object]] = {}
    for notebook in notebooks:
        for output in (output for cell in shown[notebook.page] for output in cell.outputs if output.kind == "figure"):
            name = output.file.removesuffix(f"_{notebook.name}") if notebook.name else output.file
            if name in found:
                found[name]["more"] += 1
            else:
                size = {"width": output.width, "height": output.height, "alt": output.alt, "file": output.file}
                found[name] = {"page": notebook.page, "id": Path(output.file).name, "more": 0, **size}
    return {"gallery": list(found.values()), "hero": found.get(HERO)}


def write_search(file: Path, notebooks: list[Executed], shown: dict[str, list[Cell]], covered: list[dict]) -> None:
    """The index that the search box reads: title and address of each page, section, figure and exhibit."""
    found = []
    for notebook in notebooks:
        title = " ".join(filter(None, [re.sub("[*`]", "", notebook.heading), notebook.name]))
        found.append((title, notebook.page))
        found += [
            (f"{title}: {name}", f"{notebook.page}#{id_}") for id_, name in content.headings(shown[notebook.page])
        ]
        figures = [output for cell in shown[notebook.page] for output in cell.outputs if output.kind == "figure"]
        found += [(f"{title}: {output.alt}", f"{notebook.page}#{Path(output.file).name}") for output in figures]
    found += [
        (f"{row['paper'].capitalize()}, {row['exhibit']}: {row['title']}", row["link"])
        for row in covered
        if row["link"]
    ]
    items.script(file, "searchIn", found)


def _exhibit_link(row: dict[str, str], coverage: pd.DataFrame, last: Executed | None) -> str:
    """Where notebook 13's page has the exhibit of a claim or a row of the coverage; "" without that page."""
    titles = coverage.set_index(["paper", "exhibit"]).title
    heading = f"{row['paper'].capitalize()}, {row['exhibit']}: {titles[row['paper'], row['exhibit']]}"
    return f"{last.page}#{markup.anchor(heading)}" if last else ""


def ranked(board: pd.DataFrame) -> pd.DataFrame:
    """The scoreboard for reading: what was measured most nearly first, what wasn't run last; n and interval as text."""
    place = board.measured.map({kind: place for place, kind in enumerate(comparison.MEASURED)})
    rows = board.assign(interval=tables.interval_text(board.ci_low, board.ci_high))
    rows["items"] = [exhibits.n_text(*pair) for pair in zip(board.n, board.n_printed, strict=True)]
    return rows.loc[place.sort_values(kind="stable").index]
