"""The subcommands of `nblib`, which import where they run what is slow to import: `nblib --help` answers at once."""

import argparse
import logging
import re
import sys
from pathlib import Path

from nblib import paths
from nblib.errors import StudyError

RUN = """
  nblib run 07 runs/mine.ipynb -p system all-MiniLM-L6-v2
  nblib run 04 runs/04.ipynb -p name=mine -p base=path/to/encoder -p epochs=3
  nblib run 08 runs/08.ipynb -y '{scale: quick, run_dir: runs/quick}'
  nblib run 04 runs/04.ipynb -p base all-MiniLM-L6-v2 -f config/trainings/hedge-3.yaml

The parameters are those of the notebook's parameters cell. An unknown parameter, or a value of another type, is an error.
Relative paths in parameters start at the project's folder."""
SCORE = """
  nblib score TF-IDF maxsim:all-MiniLM-L6-v2
  nblib score path/to/encoder --form official --benchmarks nevir
  nblib score all-MiniLM-L6-v2 --benchmarks --general short       # general ability alone
  nblib score runs/lab/encoders/a runs/lab/encoders/b --brief     # to compare many trainings by their test scores"""
UNPACK = """
  nblib unpack official                     below runs/official; files that are there stay
  nblib unpack official --run-dir runs/mine"""
PACK = """
  nblib pack official      what runs/official has and the record hasn't, into figures/official/unfinished.tar.xz; commit it

In another clone make study SCALE=official goes on from it after nblib unpack official --unfinished."""
REPORT = """
  nblib report official        makes runs/official/site/index.html

Without a run of that scale the site is made from the record, which the official scale has. It needs no model and no network."""
RECORD = """
  nblib record official

The reference figures are in figures/SCALE. Of the official run the notebooks and the predictions are recorded as well, and
of notebooks that run once for each model the executed copies alone: figures and tables are in them."""


def add_parsers(commands: argparse._SubParsersAction) -> None:
    """Declare every command with its arguments; `run` of what is parsed is its function."""

    def command(function: object, examples: str) -> object:
        said, raw = function.__doc__, argparse.RawDescriptionHelpFormatter
        about = {"help": said, "description": said, "epilog": f"examples:{examples}"}
        parser = commands.add_parser(function.__name__, formatter_class=raw, **about)
        parser.set_defaults(run=function)
        return parser.add_argument

    add = command(run, RUN)
    add("notebook", help="the notebook: its number (07), name or path")
    add("output", help="the file for the executed copy")
    pair = "a parameter: NAME VALUE or NAME=VALUE, the value a text as it is, any other in YAML; may be repeated"
    add("-p", dest="pairs", nargs="+", action="append", default=[], metavar=("NAME", "VALUE"), help=pair)
    several = {"dest": "mappings", "action": "append", "default": []}
    add("-y", **several, metavar="YAML", help="several parameters as YAML or JSON")
    add("-f", **several, type=lambda file: Path(file).read_text("utf-8"), metavar="FILE", help="the same, from a file")
    add = command(score, SCORE)
    systems = "an encoder (a registered name, a folder, an id on the hub), <encoder>+<adapter file>, Random, TF-IDF, "
    systems += "maxsim:<encoder>, or any other name of data/registries/rankers.yaml"
    add("systems", nargs="+", metavar="SYSTEM", help=systems)
    forms = "the authored mini sets, or the official benchmarks (default: %(default)s)"
    add("--form", default="mini", choices=["mini", "official"], help=forms)
    keys = "score only these benchmarks, such as nevir (default: all that a system can do; without a KEY: none)"
    add("--benchmarks", nargs="*", metavar="KEY", help=keys)
    add("--brief", action="store_true", help="leave predictions alone: no results, no dev splits, no negation profile")
    general = "measure general ability, too, on official tasks of MTEB: those at hand of Truong's 16 (lite), "
    general += "similarity and classification (short), all 20 (default: %(default)s); notebook 09 shows them"
    add("--general", default="none", choices=["none", "lite", "short", "all"], help=general)
    add("--scale", default="lab", help="the name of the run in the results (default: %(default)s)")
    add("--run-dir", default="runs/lab", help="the folder for all outputs (default: %(default)s)")
    add("--allow-remote-code", action="store_true", help="let a model that needs it run code from the hub")
    add = command(unpack, UNPACK)
    add("scale", help="the scale of the reference run; predictions are kept of official alone")
    add("--run-dir", metavar="DIR", help="the run folder to unpack into (default: runs/SCALE)")
    add("--unfinished", action="store_true", help="take what `nblib pack` has left of an unfinished run")
    command(pack, PACK)("scale", help="the run below runs/")
    command(record, RECORD)("scale", help="the run below runs/: quick, official, paper")
    command(report, REPORT)("scale", help="the run: a folder below runs/ (quick, official, paper, lab)")


def run(given: argparse.Namespace) -> None:
    """execute a notebook headlessly, with its parameters checked before"""
    from papermill.exceptions import PapermillExecutionError

    from nblib.workflow import run_notebook

    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # tells of sockets that an interrupt has closed
    notebook = run_notebook.find_notebook(given.notebook)
    parameters = run_notebook.read_parameters(notebook, given.mappings, given.pairs)
    try:
        run_notebook.execute(given.notebook, given.output, parameters)
    except PapermillExecutionError as error:
        traceback = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
        if traceback != f"{error.ename}: {error.evalue}":  # an error that the user can mend has no more
            sys.stderr.write(f"{traceback}\n\n")
        raise StudyError(
            f"{notebook.stem}, cell [{error.exec_count}]: {error.ename}: {error.evalue} "
            f"(the executed copy up to there: {run_notebook.partial_copy(given.output)})"
        ) from error


def score(given: argparse.Namespace) -> None:
    """score systems of any architecture on the benchmarks: print the scores, write predictions and results below RUN_DIR"""
    import pandas as pd

    from nblib import results
    from nblib.analysis import encoder_card, general_comparison
    from nblib.benchmarks import catalogue, mteb, negation_profile, scoring
    from nblib.models import systems
    from nblib.results import measurements, tables

    names = catalogue.names(given.form, keys=given.benchmarks)
    for name in given.systems:
        folder = paths.resolve(name)
        if scoring.outlive_weights(given.run_dir, folder):
            commit = scoring.about(given.run_dir, folder.name).get("commit", "unknown")
            scores = scoring.folder_of(given.run_dir, folder.name)
            there = [one for one in names if scoring.predictions_file(given.run_dir, folder.name, one).is_file()]
            if old := scoring.outdated(given.run_dir, folder.name, names if given.benchmarks else there):
                again = f"Remove {scores} and its training's record, and train it again."
                raise StudyError(
                    f"{name} is gone, and {', '.join(old)} can't be scored on today's data and code. {again}"
                )
            sys.stdout.write(f"{name} isn't there any more. Its scores, of commit {commit}, stay.\n")
            (scores / "system.json").touch()  # for the workflow: it is up to date
            continue
        system = systems.load(name, allow_remote_code=given.allow_remote_code)
        file = paths.inside(given.run_dir, "results", f"07_{system.name}.csv")
        about = {"system": system.name, "source": system.source, "scale": given.scale, "form": given.form}
        if able := names if given.benchmarks else scoring.scorable(system, names):
            scored = scoring.score(system, able, given.run_dir, dev_splits=not given.brief).summary
            scored = scored.dropna(subset="value")
            rows = results.record(scored, scale=given.scale, **scoring.measured_system(given.run_dir, system.name))
            if not given.brief:
                earlier = measurements.read(file) if file.is_file() else rows.head(0)
                earlier = earlier[earlier.fingerprint == system.fingerprint]  # of these weights, on other benchmarks
                together = pd.concat([earlier, rows]).drop_duplicates(results.KEY, keep="last")
                results.save(together, file, **about, seconds=scored.groupby("task").seconds.first().sum())
            shown = rows.assign(interval=tables.interval_text(rows.ci_low, rows.ci_high), n=rows.n.astype(int))
            shown = shown["benchmark corpus split part metric value interval n".split()]
            sys.stdout.write(f"{system.name}\n{shown.to_string(index=False, float_format='{:.2f}'.format)}\n")
        profiled = system.architecture == "bi-encoder" and scoring.scorable(system, ["negation_profile"])
        if given.benchmarks is None and profiled and not given.brief:
            predicted = encoder_card.score_profile(system, given.run_dir)  # seconds, as its texts are few
            said = encoder_card.describe_profile(system.name, negation_profile.profile(predicted))
            sys.stdout.write(f"{said}\n")
        if given.general != "none":
            scored = mteb.score(system, given.general, given.run_dir)
            for row in general_comparison.averages(scored).itertuples():
                sys.stdout.write(f"{system.name}: {row.average}, {row.tasks} tasks: {row.value:.2f}\n")


def unpack(given: argparse.Namespace) -> None:
    """unpack the predictions of the reference run, so that notebooks 08 to 10 and 13 score no model"""
    from nblib.workflow import archive

    run_dir = given.run_dir or f"runs/{given.scale}"
    reference = archive.archive(given.scale)
    if given.unfinished:
        unpacked, _ = archive.unpack(archive.unfinished(given.scale), run_dir, over=reference)
        go_on = f" Go on: make study SCALE={given.scale}" * (given.run_dir is None)
        sys.stdout.write(f"{run_dir}: {unpacked} files unpacked.{go_on}\n")
        return
    unpacked, kept = archive.unpack(reference, run_dir)
    parameters = {number: f'-y "$(cat {run_dir}/{name})"' for number, name in archive.PARAMETERS.items()}
    parameters["13"] = f"-p scale {given.scale} -p run_dir {run_dir}"
    names = {number: next(paths.NOTEBOOKS.glob(f"{number}_*.ipynb")).name for number in parameters}
    commands = [f"  nblib run {n} {run_dir}/notebooks/{names[n]} {parameters[n]}" for n in parameters]
    commands += [f"  nblib report {given.scale}"] * (given.run_dir is None)
    summary = f"{run_dir}: {unpacked} files unpacked, {kept} were there and are kept. No model is scored by"
    sys.stdout.write("\n".join([summary, *commands]) + "\n")


def pack(given: argparse.Namespace) -> None:
    """pack an unfinished run's notebooks, predictions, results and records, to go on from them elsewhere"""
    from nblib.workflow import archive

    archive.pack(given.scale, target := archive.unfinished(given.scale), over=archive.archive(given.scale))
    sys.stdout.write(f"{target}: {target.stat().st_size / 1e6:.1f} MB\n")


def record(given: argparse.Namespace) -> None:
    """make a finished run's figures the reference figures, and list what differs"""
    from nblib.workflow import record

    found = record.record(given.scale)
    lines = [f"{what}: {name}" for what, names in found.items() for name in names]
    lines.append(f"figures/{given.scale} has what differs of runs/{given.scale} beyond rounding.")
    sys.stdout.write("\n".join(lines) + "\n")


def report(given: argparse.Namespace) -> None:
    """make the site of a run: the claims, its executed notebooks, single items and the documentation, in one folder"""
    from nblib.workflow import report

    sys.stdout.write(f"Open {report.build(given.scale)}\n")
