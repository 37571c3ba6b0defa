"""The page of one scored system: what it scored, where that puts it and how it was measured, as one file to send."""

import io
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from markupsafe import Markup

from nblib import artefacts, corpora, paths, results
from nblib.analysis import encoder_card
from nblib.benchmarks import catalogue, efficiency, general_ability, negation_profile, scoring
from nblib.models.systems import System
from nblib.results import plotting, published_mteb
from nblib.results.report import site

UNSCORED = pd.DataFrame(columns=["task", "view", "metric", "ci_low", "ci_high", "data"])


def write(system: System, summary: pd.DataFrame | None, run_dir: str | Path, command: str) -> Path:
    """Write `<run_dir>/pages/<system>.html`, which needs no other file and no network; return it.

    Args:
        summary: `Scores.summary`; None where only general ability was measured.
        command: what makes the page again.
    """
    summary = UNSCORED if summary is None else summary
    shown = encoder_card.with_published(summary)
    shown["place"] = places(shown, _measured(run_dir, system.name))
    about_negation = {name for data in catalogue.DATA for name in catalogue.names(data, "negation")}
    sentence = encoder_card.verdict(system.name, shown[shown.task.isin(about_negation)])
    profiled = _profile(system.name, run_dir)
    page = site.PAGES.get_template("model.html.j2").render(
        name=system.name, verdict=sentence, style=Markup((site.ASSETS / "style.css").read_text(encoding="utf-8")),
        profile="" if profiled is None else encoder_card.sentence(system.name, profiled),
        profile_table="" if profiled is None else Markup(encoder_card.profile_table(profiled)),
        figure=Markup(picture(shown, sentence)) if len(shown) else "",
        rows=shown.to_dict("records"), general=_general(system.name, run_dir), command=command,
        trained_on=scoring.trained_on(run_dir, system.name), about=_about(system), hashes=_hashes(summary),
    )  # fmt: skip
    file = paths.inside(run_dir, "pages", f"{scoring.folder_of(run_dir, system.name).name}.html")
    with paths.write_atomically(file) as draft:
        draft.write_text(page, encoding="utf-8")
    return file


def places(shown: pd.DataFrame, measured: pd.DataFrame) -> list[str]:
    """The rank of each score among the systems measured in this study and among the printed scores, in words.

    Args:
        shown: task, benchmark, key (of the metric), data, ours.
        measured: measurements of other systems.
    """
    found = []
    for row in shown.itertuples():
        same = (measured.benchmark == row.benchmark) & (measured.metric == row.key) & (measured.data == row.data)
        printed = encoder_card.published_scores(row.task).query("metric == @row.key")
        sets = {"measured here": measured[same].drop_duplicates("system").value, "printed": printed.value}
        ranks = [
            f"{(values > row.ours).sum() + 1} of {len(values) + 1} {kind}"
            for kind, values in sets.items()
            if len(values)
        ]
        found.append("; ".join(ranks))
    return found


def picture(shown: pd.DataFrame, title: str) -> str:
    """`encoder_card.draw` as an SVG that stands within a page."""
    plotting.use_style()
    figure, _ = encoder_card.draw(shown, title)
    drawn = io.StringIO()
    with plt.rc_context({"svg.hashsalt": "page"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    plt.close(figure)
    return site.slim(drawn.getvalue()[drawn.getvalue().index("<svg") :])


def _measured(run_dir: str | Path, system: str) -> pd.DataFrame:
    """The measurements of other systems: of record, and of this run."""
    kept = [results.measurements.read(file) for file in sorted(paths.FIGURES.glob("*/measurements.csv"))]
    if any((paths.resolve(run_dir) / "results").glob("*.csv")):
        kept.append(results.load(run_dir))
    table = pd.concat([pd.DataFrame(columns=results.measurements.COLUMNS), *kept])
    return table[(table.system != system) & ~table.system.str.contains(" + ", regex=False)]  # a sweep's variants


def _profile(system: str, run_dir: str | Path) -> pd.DataFrame | None:
    there = scoring.predictions_file(run_dir, system, negation_profile.TASK).is_file()
    return negation_profile.profile(scoring.load_predictions(run_dir, system, negation_profile.TASK)) if there else None


def _general(system: str, run_dir: str | Path) -> dict | None:
    """General ability where it was measured: the tasks, their averages, and the place among the published models."""
    if system.replace("/", "__") not in general_ability.systems(run_dir):
        return None
    tasks = general_ability.load(run_dir, system)
    averages = general_ability.averages(tasks)
    mean, known = averages.set_index("average").value[general_ability.BY_TASK], published_mteb.averages(tasks.task)
    place = f"{(known.value > mean).sum() + 1} of {len(known) + 1} models with a published score on the same tasks"
    return {"tasks": tasks.to_dict("records"), "averages": averages.to_dict("records"), "place": place}


def _about(system: System) -> dict[str, object]:
    """How it was measured: the model, its weights' precision, code, machine and versions."""
    size = efficiency.parameters(system)
    weights = next(system.model.parameters(), None) if size and system.model else None
    model = {
        "model": system.source, "architecture": system.kind, "parameters": f"{size:,.1f} million" if size else "none",
        "precision": "none" if weights is None else str(weights.dtype).removeprefix("torch."),
        "fingerprint of weights and settings": system.fingerprint,
    }  # fmt: skip
    made = artefacts.provenance()
    packages = ", ".join(f"{name} {version}" for name, version in made.pop("packages").items())
    return {**model, **made, "packages": packages}


def _hashes(summary: pd.DataFrame) -> dict[str, str]:
    """The SHA-256 of each split that was scored."""
    found = {}
    for task, view in summary[["task", "view"]].drop_duplicates().itertuples(index=False):
        corpus = corpora.describe(catalogue.get(task).corpus)
        if view in corpus.splits:
            found[f"{corpus.name} {view}"] = corpus.splits[view].sha256
    return found
