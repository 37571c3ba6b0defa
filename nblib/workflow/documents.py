"""The numbers of README and docs, from the record: `nblib record official` fills the marked parts of the texts.

A part stands between `<!-- made: NAME -->` and `<!-- end -->`; what stands there is made by the function of that name below.
Prose beside the parts holds no number of a result.
"""

import re
import textwrap
from pathlib import Path

import pandas as pd

from nblib import artefacts, paths
from nblib.analysis import claims, general_comparison, mixture_study
from nblib.benchmarks import mteb_catalogue
from nblib.errors import StudyError, readable
from nblib.results import comparison, exhibits, measurements, published, published_mteb, tables
from nblib.workflow import cards

TEXTS = ("README.md", "docs/results.md", "docs/performance.md")
PART = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
RECORD, PERFORMANCE = "figures/official", "figures/performance"
COSTS, THROUGHPUT = "figures/paper/costs.csv", "figures/paper/throughput.csv"
UNMEASURED = "Not measured yet: `make bench`."
# The benchmarks of the headline table: head → label, metric, data
AXES = {
    "NevIR": ("NevIR", "right_rank", "nevir test"),
    "ExcluIR": ("ExcluIR", "right_rank", "excluir test"),
    "CANNOT-WMT r": ("CANNOT-WMT", "pearson", "cannot_wmt test"),
    "SemAntoNeg": ("SemAntoNeg", "accuracy", "semantoneg test"),
    "STSB ρ": ("STSB", "spearman", "stsb test"),
}
RANKING = {head: AXES[head] for head in ("NevIR", "ExcluIR", "SemAntoNeg")}  # those that need no degree of similarity
# Of all-MiniLM-L6-v2's transformer: system → architecture, whether it learnt from the mixture
ARCHITECTURES = {
    "all-MiniLM-L6-v2": ("bi-encoder", "no"),
    "hedge-minilm-2": ("bi-encoder", "yes"),
    "maxsim-all-MiniLM-L6-v2": ("late interaction", "no"),
    "mixture-multi-vector": ("late interaction", "yes"),
    "mixture-cross-encoder": ("cross-encoder", "yes"),
}
LARGER_SETS = ("CANNOT-WMT eval", "NevIR train sample", "NevIR mini", "ExcluIR mini", "SemAntoNeg mini")
PRINTED_BASE = ("all-mpnet-base-v2", "MPNet")  # of Truong's tables: our name, and the printed one
SYSTEMS = (
    "all-MiniLM-L6-v2", "all-mpnet-base-v2", "maxsim-all-mpnet-base-v2", "hedge-mpnet", "hedge-mpnet-2",
    "nevir-mpnet", "nevir-multi-vector-mpnet",
)  # fmt: skip


class DocumentError(StudyError):
    """A text whose parts can't be filled."""


class Record:
    """The reference tables that the parts are made of."""

    def __init__(self, folder: str | Path = RECORD) -> None:
        folder = paths.resolve(folder)
        self.folder = folder
        self.claims = _read(folder / "13_results" / "tab_claims.csv")
        self.measured = measurements.read(folder / "measurements.csv")
        self.board = _read(folder / "scoreboard.csv")
        for column in ("value", "ci_low", "ci_high", "n", "n_printed", "difference", "published"):
            self.board[column] = pd.to_numeric(self.board[column])


def _read(file: Path) -> pd.DataFrame:
    if not file.is_file():
        raise DocumentError(
            f"No {file}: the numbers of README and docs come from the record. Make it: make record SCALE=official"
        )
    with readable(file, "It is in git: git checkout figures", DocumentError):
        return pd.read_csv(file, keep_default_na=False)


def fill(text: str, record: Record, name: str = "the text") -> str:
    """A text with its parts made anew.

    Raises:
        DocumentError: a part has an unknown name.
    """

    def made(found: re.Match) -> str:
        if found[2] not in PARTS:
            raise DocumentError(f"{name} has a part called {found[2]!r}; known: {', '.join(PARTS)}.")
        return f"{found[1]}{PARTS[found[2]](record).rstrip()}\n{found[3]}"

    return PART.sub(made, text)


def update(record: Record) -> list[str]:
    """Fill README, docs and the cards of what ships from the record; return the names of those that changed."""
    changed = []
    for name in TEXTS:
        file = paths.PROJECT_ROOT / name
        old = file.read_text(encoding="utf-8")
        new = fill(old, record, name)
        if new != old:
            with paths.write_atomically(file) as draft:
                draft.write_text(new, encoding="utf-8")
            changed.append(name)
    return changed + cards.update(record.measured)


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
    parts = [claims.counts(record.claims)]
    for name in (*claims.VERDICTS, claims.NOT_MEASURED):
        chosen = record.claims[record.claims.verdict == name]
        by_paper = chosen.groupby("paper", sort=False).id
        listed = [f"{paper.capitalize()}: {'; '.join(short[one] for one in ids)}." for paper, ids in by_paper]
        if listed:
            parts.append(
                textwrap.fill(
                    f"- **{name.capitalize()}.** {' '.join(listed)}",
                    100,
                    subsequent_indent="  ",
                    break_on_hyphens=False,
                )
            )
    return parts[0] + "\n\n" + "\n".join(parts[1:])


def _headline(record: Record) -> str:
    """The headline table: systems by benchmarks."""
    rows = []
    for system in SYSTEMS:
        of_system = record.measured[record.measured.system == system]
        texts = [text for text in of_system.trained_on.unique() if text]
        trained_on = re.sub(r"(.+ pairs) \(([\d,]+) pairs\)", r"\2 of \1", texts[0]) if texts else ""
        trained_on = trained_on.replace(" (", ", ").replace(")", "")
        rows.append({"system": f"{system} ({trained_on})" if trained_on else system, **_scores(of_system, AXES)})
    return markdown(pd.DataFrame(rows))


def _architectures(record: Record) -> str:
    """What other architectures make of the data of the study's own encoders, on one base."""
    rows = []
    for system, (architecture, trained) in ARCHITECTURES.items():
        of_system = record.measured[record.measured.system == system]
        row = {"system": system, "architecture": architecture, "trained on the mixture": trained}
        rows.append(row | _scores(of_system, RANKING))
    return markdown(pd.DataFrame(rows))


def _scores(of_system: pd.DataFrame, axes: dict[str, tuple[str, str, str]]) -> dict[str, str]:
    """A system's score on each axis with half of its interval; "–" where it wasn't measured."""
    scores = {}
    for head, where in axes.items():
        fits = of_system[(of_system[["benchmark", "metric", "data"]] == list(where)).all(axis=1)]
        scores[head] = _score(fits.iloc[0]) if len(fits) else "–"
    return scores


def _score(item: pd.Series) -> str:
    half = (item.ci_high - item.ci_low) / 2
    return f"{item.value:.1f} ± {half:.1f}"


def _agreement(record: Record) -> str:
    """How many of the printed numbers agree."""
    return textwrap.fill(exhibits.headline(record.board), 100, break_on_hyphens=False)


def _claims(record: Record) -> str:
    """Every claim with what was measured; what is said of it is as the claims have it now."""
    known, parts = {claim.id: claim for claim in claims.load()}, []
    for row in record.claims.itertuples():
        claim = known[row.id]
        parts.append(
            f"### {claim.paper.capitalize()}, {claim.section}: {row.verdict}\n\n{claim.claim}\n\n- Measured: {row.measured}\n"
            f"- Why not more: {claim.because}\n- Would refute it: {claim.refuted_by}\n- It would take: {claim.needs}\n"
        )
    return "\n".join(parts)


def _exhibits(record: Record) -> str:
    """Every exhibit: its summary and what was measured."""
    parts = []
    for row in published.exhibits().itertuples():
        rows = exhibits.of_exhibit(record.board, row.paper, row.exhibit)
        parts.append(f"### {row.paper.capitalize()}, {row.exhibit}: {row.title}\n\n{exhibits.summary(rows)}\n")
        measured = rows[rows.value.notna()]
        if len(measured):
            renamed = measured.metric.where(
                measured.measured_metric.eq(measured.metric) | measured.metric.ne("spearman"),
                measured.measured_metric + ", printed as " + measured.metric,
            )
            columns = {"system": measured.system, "benchmark": measured.benchmark, "metric": renamed}
            columns |= {"published": measured.published.map("{:g}".format), "ours": measured.value.map("{:.2f}".format)}
            columns["interval"] = tables.interval_text(measured.ci_low, measured.ci_high)
            columns["measured"], columns["agrees"] = measured.measured, measured.agrees
            columns["measured system"] = measured.measured_system.where(measured.measured_system != measured.system, "")
            parts.append(markdown(pd.DataFrame(columns)))
    return "\n".join(parts)


def _general(record: Record) -> str:
    """General ability: MTEB's tasks, ours beside the published scores of the same model."""
    prefix, columns = "MTEB ", {}
    rows = record.measured[record.measured.benchmark.str.startswith(prefix)]
    for system, part in rows.groupby("system", sort=False):
        by_task = part.set_index(part.benchmark.str.removeprefix(prefix))
        columns[system] = by_task.value.map("{:.2f}".format)
        known = published_mteb.scores(system)
        if len(known):
            columns[f"{system}, published"] = known.reindex(by_task.index).map("{:.2f}".format)
    table = pd.DataFrame(columns).reindex(
        [name for name in mteb_catalogue.TASKS if name in set(rows.benchmark.str[5:])]
    )
    if table.empty:
        return "None was measured in this record."
    sizes = rows.groupby(rows.benchmark.str[5:]).n.first().map("{:,.0f}".format)
    return markdown(table.fillna("–").replace("nan", "–").rename_axis("task").assign(n=sizes).reset_index())


def _general_columns(record: Record) -> str:
    """Truong's columns of MTEB: what is printed, and what the measured tasks of them average."""
    model, row = PRINTED_BASE
    rows = record.measured[record.measured.system == model]
    by_task = rows[rows.benchmark.str.startswith("MTEB ")].assign(task=lambda part: part.benchmark.str[5:])
    head, metric, data = AXES["STSB ρ"]
    stsb = rows[(rows.benchmark == head) & (rows.metric == metric) & (rows.data == data)].assign(task="STSBenchmark")
    measured = pd.concat([by_task, stsb])
    measured["category"] = [mteb_catalogue.TASKS[task].category for task in measured.task]
    parts = [
        general_comparison.truong_columns(measured, model, table, row).assign(table=table)
        for table in general_comparison.COLUMNS
    ]
    columns = ["printed", "published", "ours"]
    table = pd.concat(parts, ignore_index=True)[["table", "column", "coverage", *columns]]
    table[columns] = table[columns].map(lambda value: "–" if pd.isna(value) else f"{value:.2f}")
    return markdown(table)


def _general_changes(record: Record) -> str:
    """What adapters and trainings change of general ability, by category."""
    files = sorted(record.folder.glob("07_encoder_benchmarks/tab_general_changes_*.csv"))
    if not files:
        return "None was measured in this record."
    table = pd.concat([pd.read_csv(file) for file in files], ignore_index=True)
    shown = table[["system", "average", "tasks"]].copy()
    for column in ("before", "after"):
        shown[column] = table[column].map("{:.2f}".format)
    shown["difference"] = table.difference.map("{:+.2f}".format)
    shown["interval"] = tables.interval_text(table.low, table.high)
    return markdown(shown)


def _mixtures(record: Record) -> str:
    """The trainings on several kinds of data: dev scores, and their changes from the first training."""
    files = [record.folder / "08_hedge_trainings" / f"tab_{name}.csv" for name in ("mixtures", "mixture_changes")]
    if not all(file.is_file() for file in files):
        return "None was trained in this record."
    scores, changes = map(pd.read_csv, files)
    shown = scores[["training"]].copy()
    for name in (name for name in mixture_study.SHOWN if name in scores):
        shown[name] = scores[name].map("{:.1f}".format).where(scores[name].notna(), "–")
        if name in set(changes.set):
            found = changes[changes.set == name].set_index("training").reindex(scores.training)
            interval = tables.interval_text(found.low, found.high, 1)
            said = found.difference.map("{:+.1f}".format).str.cat(interval, sep=" (") + ")"
            shown[f"change of {name}"] = said.where(found.difference.notna(), "–").to_numpy()
    return markdown(shown)


def _larger_mixtures(record: Record) -> str:
    """The same on a larger encoder."""
    file = record.folder / "08_hedge_trainings" / "tab_larger_mixtures.csv"
    if not file.is_file():
        return "None was trained in this record."
    table = pd.read_csv(file).set_index("training")
    numbers = table[[name for name in [*mixture_study.SHOWN, *LARGER_SETS] if name in table]]
    shown = numbers.map("{:.1f}".format).where(numbers.notna(), "–")
    if mixture_study.CHANGE in table:  # older records lack it
        shown.insert(1, mixture_study.CHANGE, table[mixture_study.CHANGE])
    return markdown(shown.reset_index())


def _figures(record: Record) -> str:
    """Every reference figure, by notebook."""
    parts = []
    for file in sorted(record.folder.glob("[01]*/fig_*.svg")):
        if file.parent.name not in "".join(parts):
            parts.append(f"### {file.parent.name}\n")
        parts.append(f"![{file.stem[4:].replace('_', ' ')}](../{RECORD}/{file.parent.name}/{file.name})\n")
    return "\n".join(parts)


def _coverage(record: Record) -> str:
    """How nearly each exhibit was measured."""
    coverage = comparison.coverage(record.board)
    return markdown(coverage.drop(columns=["title", "command"]).rename(columns=lambda name: name.replace("_", " ")))


def _performance(record: Record) -> str:
    """Every case of the benchmark suite: ours beside the stock way."""
    rows = _suite(PERFORMANCE)
    if rows is None:
        return UNMEASURED
    spread = rows.lowest.map(" ({:.3g}".format) + rows.highest.map("–{:.3g})".format)
    times = (rows.times.map("{:.3g} ×".format) + spread).where(rows.way != "stock", "1")
    columns = {"what": rows.case, "n": rows.n, "way": rows.way, "seconds": rows.seconds.map("{:.3g}".format)}
    columns |= {"times as fast (lowest–highest)": times, "peak MiB": rows.peak_mib.map("{:.0f}".format)}
    columns |= {"largest difference": rows.difference.map("{:.1g}".format).replace("nan", "")}
    return markdown(pd.DataFrame({**columns, "": rows.remark.astype(object).fillna("")}))


def _growth(record: Record) -> str:
    """Time and memory by size, with the exponent."""
    rows = _suite(f"{PERFORMANCE}/growth")
    if rows is None:
        return UNMEASURED
    sizes = rows["size"].map("{:,}".format) + " " + rows.unit
    columns = {"what": rows.what, "size": sizes, "seconds": rows.seconds.map("{:.3g}".format)}
    columns |= {"peak MiB": rows.peak_mib.map("{:.0f}".format), "exponent": rows.exponent.map("{:.2f}".format)}
    return markdown(pd.DataFrame(columns))


def _throughput(record: Record) -> str:
    """What this machine does of the papers' scale in a second."""
    file = paths.resolve(THROUGHPUT)
    if not file.is_file():
        return UNMEASURED
    rows, about = artefacts.read_table(file), artefacts.about(file)
    shown = pd.DataFrame({
        "what": rows.what, "seconds": rows.seconds.map("{:.1f}".format),
        "tokens a second": rows.tokens_per_second.map("{:,.0f}".format),
        "GFLOP/s": rows.gflops.map("{:.0f}".format), "share of the fastest product": rows.share.map("{:.0f} %".format),
    })  # fmt: skip
    return f"{markdown(shown).rstrip()}\n\n{_place(about)}. The fastest bfloat16 product: {rows.peak[0]:.0f} GFLOP/s."


def _costs(record: Record) -> str:
    """What the papers' scale costs, extrapolated from that."""
    file = paths.resolve(COSTS)
    if not file.is_file():
        return UNMEASURED
    rows = artefacts.read_table(file)
    together = {"what": "together", "counted": "", "hours": rows.hours.sum(), "dollars": rows.dollars.sum()}
    rows = pd.concat([rows, pd.DataFrame([together])], ignore_index=True)
    columns = {
        "what": rows.what, "counted": rows.counted, "operations": rows.operations.map("{:.2g}".format),
        "share of the peak": rows.share.map("{:.0f} %".format), "hours of one A100": rows.hours.map("{:.3g}".format),
        "dollars": rows.dollars.map("{:,.2f}".format),
    }  # fmt: skip
    return markdown(pd.DataFrame(columns).replace({"nan": "", "nan %": "", "0": ""}))


def _suite(folder: str) -> pd.DataFrame | None:
    """The tables of the benchmark suite in a folder; None where there are none."""
    files = sorted(paths.resolve(folder).glob("*.csv"))
    return pd.concat(map(artefacts.read_table, files)) if files else None


def _place(about: dict) -> str:
    """The machine of a benchmark's table, and when it ran there."""
    return (
        f"{about['cores']} cores of {about['processor']}, {about['threads']} threads, torch {about['packages']['torch']}, "
        f"commit {about['commit']}, {about['finished'][:10]}"
    )


def _machine(record: Record) -> str:
    """Where and when the suite was run."""
    abouts = [artefacts.about(file) for file in paths.resolve(PERFORMANCE).rglob("*.csv")]
    machines = {f"- {_place(about)}" for about in abouts}
    loads = [about["load"] for about in abouts]
    return "\n".join([*sorted(machines), f"- load {min(loads):.1f} to {max(loads):.1f}"]) if abouts else UNMEASURED


PARTS = {
    "verdicts": _verdicts, "headline": _headline, "agreement": _agreement, "claims": _claims, "exhibits": _exhibits,
    "coverage": _coverage, "general": _general, "general_columns": _general_columns, "general_changes": _general_changes,
    "mixtures": _mixtures, "larger_mixtures": _larger_mixtures, "architectures": _architectures, "figures": _figures,
    "performance": _performance, "growth": _growth, "machine": _machine, "throughput": _throughput,
    "costs": _costs,
}  # fmt: skip
