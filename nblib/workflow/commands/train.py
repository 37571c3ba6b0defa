"""Train a bi-encoder, a cross-encoder or a multi-vector model, and leave it in RUN_DIR/encoders/NAME.

A finished training from the same data and settings is used again.

examples:
  nblib train cross-snli --architecture cross-encoder --data snli --run-dir runs/official
  nblib train nevir-multi-vector --architecture multi-vector --data nevir --run-dir runs/official
  nblib train family-nli-s1 --architecture bi-encoder --data nli --seed 1 --scale official --run-dir runs/official
"""

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nblib.training.data import TrainingData
    from nblib.training.trainer import Settings
    from nblib.training.tuning import Tuned

HELP = "train a bi-encoder, cross-encoder or multi-vector model"
ARCHITECTURES = [  # those of nblib.training.trainer, which is slow to import
    "bi-encoder",
    "cross-encoder",
    "multi-vector",
]
BASE = "all-MiniLM-L6-v2"
TASK = "semantoneg"  # what Vahtola's families are compared on


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", help="the name of the trained model")
    parser.add_argument(
        "--architecture", required=True, choices=ARCHITECTURES,
        help="the kind of model: one vector a text, one score for two texts read together, or one vector a token (MaxSim)",
    )  # fmt: skip
    parser.add_argument(
        "--data", required=True, choices=["nevir", "triples", "snli", "nli", "stsb", "paraphrases", "mixture"],
        help="the training data: NevIR's training pairs, notebook 03's triples, SNLI's classes, or the triples with contrast "
        "passages and exclusions (mixture); or, to compare Vahtola's families on one base, SNLI's contradictions, STSB's "
        "scores, or paraphrases (models trained on these are also scored on SemAntoNeg)",
    )  # fmt: skip
    parser.add_argument(
        "--base",
        help=f"the model to start from, by name or folder (default: {BASE}; for a cross-encoder on nevir the run's "
        "cross-triples)",
    )
    parser.add_argument("--epochs", type=int, help="passes over the training data (default: 20 on nevir, else 1)")
    parser.add_argument(
        "--learning-rate", type=float, help="the largest learning rate (default: 2e-5 on nevir, else 5e-5)"
    )
    parser.add_argument(
        "--size", type=int, help="the number of training examples; 0 takes all (default: depends on the data)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="the seed of the sample, the batches and new weights (default: 0)"
    )
    parser.add_argument(
        "--curve", choices=["epochs", "ends", "none"],
        help="measure dev data after every epoch, only before and after, or not at all (default: epochs on nevir, else none)",
    )  # fmt: skip
    parser.add_argument("--scale", default="lab", help="the name of the run in the results (default: lab)")
    parser.add_argument("--run-dir", default="runs/lab", help="the folder for all outputs (default: runs/lab)")
    parser.add_argument(
        "--again", action="store_true", help="train even if a finished training from the same data and settings exists"
    )


def run(arguments: argparse.Namespace) -> None:
    """Train, leave the model, its dev curve, and for a family's data the score.

    Raises:
        StudyError: the base or the data aren't there, or can't be trained so.
    """
    from nblib import artefacts, paths
    from nblib.benchmarks import scoring
    from nblib.corpora import triples
    from nblib.models.folders import FinetuningError
    from nblib.training import data, trainer, tuning
    from nblib.training.dev_scores import DevEvaluator
    from nblib.training.trainer import Settings

    name, architecture, chosen = arguments.name, arguments.architecture, data.DATA[arguments.data]
    run_dir = paths.resolve(arguments.run_dir)
    anchors_file = run_dir / "triples" / "anchors.parquet"
    base, curve = arguments.base or BASE, arguments.curve or ("epochs" if arguments.data == "nevir" else "none")
    loss = data.default_loss(arguments.data, architecture)
    size = chosen.size if arguments.size is None else arguments.size
    examples, evaluator = data.examples(arguments.data, loss, anchors_file, size, arguments.seed), None
    if arguments.base is None and (architecture, arguments.data) == ("cross-encoder", "nevir"):
        if not (folder := run_dir / "encoders" / "cross-triples").is_dir():
            options = f"--architecture cross-encoder --data triples --run-dir {arguments.run_dir}"
            raise FinetuningError(f"No cross-encoder at {folder}. Train one first: nblib train cross-triples {options}")
        base = f"{arguments.run_dir}/encoders/cross-triples"
    settings = Settings(
        base, loss=loss, learning_rate=arguments.learning_rate or chosen.learning_rate,
        epochs=arguments.epochs or chosen.epochs, seed=arguments.seed,
    )  # fmt: skip
    if curve != "none":
        anchors = triples.load_anchors(anchors_file)
        seen = set(triples.training_set(anchors, "NevIR").id) if arguments.data == "nevir" else set()
        dev, system = anchors[anchors.split == "dev"], trainer.ARCHITECTURES[architecture].load(settings, examples)
        evaluator = DevEvaluator(system, dev, seen, "nevir", trainer.ARCHITECTURES[architecture].graded)
    number = sum(map(len, examples.values()))
    about = {"scale": arguments.scale, "data": arguments.data, "training_data": chosen.training_set, "examples": number}
    places = [paths.inside(run_dir, kind, name) for kind in ("encoders", "trainings", "checkpoints")]
    tuned = tuning.tune(
        architecture, settings, examples, *places,
        evaluator=evaluator, every_epoch=curve == "epochs", alphas=[1.0] if curve == "ends" else [],
        source=f"{number:,} examples: {chosen.about}, seed {settings.seed}.", again=arguments.again, **about,
    )  # fmt: skip
    sys.stdout.write(f"{name}: {tuned.sentence}\n")
    if evaluator:
        file = scoring.folder_of(run_dir, name) / "epochs.csv"
        by_epoch = tuned.epochs.assign(architecture=architecture)
        first = ["architecture", "epoch", "set"]
        about |= {**vars(settings), "architecture": architecture, "seconds": tuned.seconds}
        artefacts.write_table(by_epoch[[*first, *by_epoch.columns.drop(first)]], file, about, float_format="%.4f")
    if chosen.family and architecture == "bi-encoder":
        _score_family(tuned, settings, chosen, number, arguments)


def _score_family(
    tuned: "Tuned", settings: "Settings", chosen: "TrainingData", number: int, given: argparse.Namespace
) -> None:
    """Score the training on SemAntoNeg (Vahtola's Figure 1), and write `results/07_<name>.csv`.

    The paper's models of a family also differ in base, size and amount of data. Here one encoder is trained further on as many
    pairs of each kind, with the same steps and learning rate.
    """
    from nblib import paths, results
    from nblib.benchmarks import scoring
    from nblib.models import encoders
    from nblib.models.systems import BiEncoder

    if tuned.has_model:
        base, trained = encoders.load(settings.base), encoders.load(str(tuned.folder))
        spec = replace(base.spec, name=given.name, sha256=None)
        system = BiEncoder(replace(trained, spec=spec, cacheable=False))
    else:
        system = scoring.stored_system(given.run_dir, given.name)
    scored = scoring.score(system, [TASK], given.run_dir, dev_splits=False).summary
    rows = scoring.result_rows(
        scored, given.name, given.scale, fingerprint=system.fingerprint,
        trained_on=f"{chosen.about} ({number:,} pairs), seed {settings.seed}, from {settings.base}",
    )  # fmt: skip
    file = paths.inside(given.run_dir, "results", f"07_{given.name}.csv")
    results.save(
        rows, file, **vars(settings), family=chosen.family, pairs_used=number, loss_at_end=tuned.history.loss.iloc[-1],
        scale=given.scale, fingerprint=system.fingerprint, seconds=tuned.seconds,
    )  # fmt: skip
