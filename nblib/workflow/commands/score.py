"""Score systems of any architecture on the benchmarks, print the scores, and write predictions and results below RUN_DIR.

examples:
  nblib score TF-IDF maxsim:all-MiniLM-L6-v2
  nblib score path/to/encoder --data official --benchmarks nevir
  nblib score all-MiniLM-L6-v2 --benchmarks --general short       # general ability alone
  nblib score runs/lab/encoders/a runs/lab/encoders/b --brief     # to compare many trainings by their test scores
"""

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nblib.models.systems import System

HELP = "score systems of any architecture on the benchmarks"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "systems", nargs="+", metavar="SYSTEM",
        help="an encoder (a registered name, a folder, an id on the hub), <encoder>+<adapter file>, Random, TF-IDF, "
        "maxsim:<encoder>, or any other name of data/registries/rankers.yaml",
    )  # fmt: skip
    parser.add_argument(
        "--data", default="mini", choices=["mini", "official", "sample"],
        help="the authored mini sets, the official benchmarks, or samples of these (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--benchmarks",
        nargs="*",
        metavar="KEY",
        help="score only these benchmarks, such as nevir (default: all that a system can do; without a KEY: none)",
    )
    parser.add_argument(
        "--brief", action="store_true", help="score the test splits alone: no dev splits, no negation profile"
    )
    parser.add_argument(
        "--general", default="none", choices=["none", "lite", "short", "all"],
        help="measure general ability, too, on official tasks of MTEB: those at hand of Truong's 16 (lite), similarity and "
        "classification (short), all 20 (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--scale", default="lab", help="the name of the run in the results (default: %(default)s)")
    parser.add_argument("--run-dir", default="runs/lab", help="the folder for all outputs (default: %(default)s)")
    parser.add_argument(
        "--allow-remote-code", action="store_true", help="let a model that needs it run code from the hub"
    )


def run(arguments: argparse.Namespace) -> None:
    """Score each system on the tasks it can do; print the scores, write predictions and `results/07_<system>.csv`.

    General ability goes to `scores/<system>/general.csv`, and beside the system's other results.
    """
    from nblib.analysis import encoder_card
    from nblib.benchmarks import catalogue, negation_profile, scoring
    from nblib.models.systems import BiEncoder

    names = catalogue.names(arguments.data, keys=arguments.benchmarks)
    for name in arguments.systems:
        system = scoring.find_system(name, arguments.run_dir, allow_remote_code=arguments.allow_remote_code)
        if able := names if arguments.benchmarks else scoring.scorable(system, names):
            _score_benchmarks(system, able, arguments)
        if arguments.benchmarks is None and system.kind == BiEncoder.kind and not arguments.brief:
            predicted = encoder_card.score_profile(system, arguments.run_dir)  # seconds, as its texts are few
            sys.stdout.write(f"{encoder_card.sentence(system.name, negation_profile.profile(predicted))}\n")
        if arguments.general != "none":
            _score_general(system, arguments)


def _score_benchmarks(system: "System", names: "Sequence[str]", arguments: argparse.Namespace) -> None:
    from nblib import paths, results
    from nblib.benchmarks import efficiency, scoring
    from nblib.results import tables

    scored = scoring.score(system, names, arguments.run_dir, dev_splits=not arguments.brief).summary
    file = paths.inside(arguments.run_dir, "results", f"07_{system.name}.csv")
    made = {"fingerprint": system.fingerprint, "trained_on": scoring.trained_on(arguments.run_dir, system.name)}
    about = {"system": system.name, "kind": system.kind, "source": system.source, "fingerprint": system.fingerprint}
    about |= {"scale": arguments.scale, "data": arguments.data}
    columns = [column for column in ("seconds", "pairs") if column in scored]
    took = scored.groupby("task")[columns].first().sum().to_dict()
    about |= {**took, "parameters": efficiency.parameters(system)}
    kept = results.save(scoring.result_rows(scored, system.name, arguments.scale, **made), file, **about)
    shown = kept[["benchmark", "metric", "value", "data"]].assign(n=kept.n.astype(int))
    shown.insert(3, "95 % interval", tables.interval_text(kept.ci_low, kept.ci_high))
    sys.stdout.write(f"{system.name}\n{shown.to_string(index=False, float_format='{:.2f}'.format)}\n")


def _score_general(system: "System", arguments: argparse.Namespace) -> None:
    from nblib import paths
    from nblib.benchmarks import general_ability, scoring
    from nblib.results import measurements

    planned = general_ability.plan(system, arguments.general, arguments.run_dir)
    sys.stdout.write(f"{system.name}: {planned.sentence}\n")
    sys.stdout.flush()
    found = general_ability.score(system, arguments.general, arguments.run_dir)
    for row in general_ability.averages(found).itertuples():
        sys.stdout.write(f"{system.name}: {row.average}, {row.tasks} tasks: {row.value:.2f}\n")
    made = {"fingerprint": system.fingerprint, "trained_on": scoring.trained_on(arguments.run_dir, system.name)}
    file = paths.inside(arguments.run_dir, "results", f"07_{system.name}.csv")
    measurements.add(general_ability.result_rows(found, system.name, arguments.scale, **made), file, system=system.name)
