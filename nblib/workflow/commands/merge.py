"""Merge LoRAs that were trained apart on one base, measure the dev data, and leave the encoder in RUN_DIR/encoders/NAME.

examples:
  nblib merge mean --loras runs/mine/encoders/a-lora runs/mine/encoders/b-lora --way mean --run-dir runs/mine
"""

import argparse
import sys

HELP = "merge LoRAs of one base, and measure the dev data"
WAYS = ["mean", "sum", "ties"]  # those of nblib.training.merging, which is slow to import


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", help="the name of the merged encoder")
    parser.add_argument("--loras", required=True, nargs="+", metavar="FOLDER", help="the LoRAs that notebook 04 left")
    parser.add_argument(
        "--way", choices=WAYS, default="mean",
        help="mean of the changes, their sum, or TIES, which drops the small ones and those against the majority's sign "
        "(default: mean)",
    )  # fmt: skip
    parser.add_argument(
        "--weights", nargs="+", type=float, metavar="WEIGHT",
        help="what each LoRA's change is multiplied with (default: the same for all, by the way of merging)",
    )  # fmt: skip
    parser.add_argument(
        "--base", default="all-MiniLM-L6-v2", help="the encoder they were trained from (default: all-MiniLM-L6-v2)"
    )
    parser.add_argument("--data", choices=["mini", "official"], default="mini", help="the dev data (default: mini)")
    parser.add_argument("--anchors", default="runs/lab/triples/anchors.parquet", help="the anchors of notebook 03")
    parser.add_argument("--scale", default="lab", help="the name of the run in the results (default: lab)")
    parser.add_argument("--run-dir", default="runs/lab", help="the folder for all outputs (default: runs/lab)")


def run(arguments: argparse.Namespace) -> None:
    """Merge, measure and keep.

    Raises:
        StudyError: the base, a LoRA or the dev data aren't there.
    """
    from nblib import paths
    from nblib.corpora import triples
    from nblib.models import encoders
    from nblib.models.systems import BiEncoder
    from nblib.training import merging
    from nblib.training.dev_scores import DevEvaluator

    anchors = triples.load_anchors(arguments.anchors)
    dev, seen = anchors[anchors.split == "dev"], set(anchors.id[anchors.split == "train"])
    evaluator = DevEvaluator(BiEncoder(encoders.load(arguments.base)), dev, seen, arguments.data)
    places = [paths.inside(arguments.run_dir, kind, arguments.name) for kind in ("encoders", "trainings")]
    merged = merging.keep(
        arguments.base, arguments.loras, arguments.way, *places, evaluator, arguments.weights,
        scale=arguments.scale, name=arguments.name,
    )  # fmt: skip
    for row in merged.compared().itertuples():
        sys.stdout.write(f"{row.set}: {row.base:.1f} → {row.tuned:.1f} (n = {row.n:,})\n")
