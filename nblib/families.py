"""Vahtola's claim put to the test: what a model was trained on decides whether it finds the paraphrase (§5, Figure 1).

The paper compares published models, whose families differ in base, size and amount of data as well. Here one encoder is trained
further on as many pairs of each kind, with the same steps, learning rate and seeds, and scored on SemAntoNeg as every encoder is.
Of a training its scores are kept, not its weights: the same command makes them again.

    python -m nblib.families NLI --seed 0 --scale official --run-dir runs/official
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pandas as pd
from datasets import Dataset, DatasetDict

from nblib import anchors, checkpoints, corpora, finetuning, models, pairs, paths, provenance, results, scores
from nblib.checkpoints import FinetuningError
from nblib.finetuning import Settings
from nblib.losses import Loss
from nblib.model_registry import ModelError

SIZE = 2000  # pairs: some minutes on a CPU, and as many as the scarcest of the paraphrases allow
LEARNING_RATE = 5e-5  # notebook 04's for the same encoder, chosen on dev data


@dataclass(frozen=True)
class Family:
    """A kind of data to train on.

    Attributes:
        loss: what sentence-transformers trains such data with (see `finetuning.Settings`).
        pairs: gives all that are at hand; what they are is said in `data`.
    """

    loss: Loss
    data: str
    pairs: Callable[[], pd.DataFrame]


# By the names of `semantoneg.FAMILIES`; the fourth there, general purpose, is the base
FAMILIES = {
    "NLI": Family("in-batch", "SNLI dev and test, entailed and contradicting sentence", pairs.contrasted),
    "STSB": Family("graded", "STSB train", pairs.graded),
    "paraphrase": Family(
        "in-batch", "COCO captions of one picture, compressed news sentences, rewritten Wikipedia sentences",
        pairs.paraphrases,
    ),
}  # fmt: skip


def name_of(family: str, seed: int) -> str:
    """What a training's scores are filed under."""
    return f"family-{family.lower()}-s{seed}"


def examples(family: str, size: int, seed: int) -> DatasetDict:
    """The examples of a training, as `finetuning.fit` takes them.

    Raises:
        AnchorError, CorpusError, PairError: not so many pairs are at hand.
    """
    drawn = pairs.draw(FAMILIES[family].pairs(), size, seed).drop(columns="source")
    return DatasetDict({family: Dataset.from_pandas(drawn, preserve_index=False)})


def run(
    family: str,
    settings: Settings,
    run_dir: str | Path,
    *,
    size: int = SIZE,
    scale: str = "lab",
    task: str = "SemAntoNeg",
) -> pd.DataFrame:
    """Train, score, and leave the scores: `scores/<name>/` and `results/07_<name>.csv` with its sidecar.

    Returns:
        The results as recorded.

    Raises:
        FinetuningError, ModelError: see `finetuning.fit`; and those of `examples`.
    """
    name, started = name_of(family, settings.seed), time.perf_counter()
    data, scratch = examples(family, size, settings.seed), Path(run_dir, "checkpoints", name)
    model, history = finetuning.fit(settings, data, scratch)
    seconds = time.perf_counter() - started
    base = models.load(settings.base)
    spec = replace(base.spec, name=name, sha256=None)
    encoder = replace(base, spec=spec, model=model, fingerprint=models.fingerprint(model), passing=True)
    (measured,) = scores.score(encoder, [task], run_dir, dev_splits=False).summary.to_dict("records")
    row = results.row(
        "vahtola", "Figure 1", family, measured["benchmark"], "accuracy", measured["value"], n=measured["n"], scale=scale,
        data=measured["data"], official=measured["official"], stand_in=True,
        interval=(measured["ci_low"], measured["ci_high"]),
        model=f"{settings.base}, trained on {FAMILIES[family].data} ({len(data[family]):,} pairs), seed {settings.seed}",
    )  # fmt: skip
    file = paths.resolve(run_dir) / "results" / f"07_{name}.csv"
    recorded = results.save([row], file)
    about = {
        **asdict(settings),
        "family": family,
        "pairs_used": len(data[family]),
        "loss_at_end": history.loss.iloc[-1],
    }
    provenance.write_sidecar(file, **about, scale=scale, fingerprint=encoder.fingerprint, seconds=seconds)
    checkpoints.forget(scratch)
    return recorded


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line: one family, one seed."""
    parser = argparse.ArgumentParser(prog="python -m nblib.families", description=__doc__.splitlines()[0])
    parser.add_argument("family", choices=list(FAMILIES))
    parser.add_argument("--base", default="all-MiniLM-L6-v2", help="the encoder to start from")
    parser.add_argument("--size", type=int, default=SIZE, help="pairs to train on, drawn by seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", default="lab", help="the name of the run, as in the results")
    parser.add_argument("--run-dir", default="runs/lab")
    given = parser.parse_args(arguments)
    settings = Settings(given.base, loss=FAMILIES[given.family].loss, learning_rate=LEARNING_RATE, seed=given.seed)
    try:
        run(given.family, settings, given.run_dir, size=given.size, scale=given.scale)
    except (
        anchors.AnchorError, corpora.CorpusError, pairs.PairError, FinetuningError, ModelError, FileNotFoundError,
        PermissionError,
    ) as error:  # fmt: skip
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
