"""Train a small cross-encoder, of an encoder's own transformer, on SNLI or on our triples (Weller §4.2 ranks by such models).

It reads both texts together, so that what *not* belongs to is there to see. The folder it is left in is a ranker's name:

    python -m nblib.cross_training snli --run-dir runs/official
    python -m nblib.ranking runs/official/encoders/cross-snli --suite sample --scale official --run-dir runs/official
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import torch
from datasets import Dataset
from sentence_transformers.cross_encoder import CrossEncoder, CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss, CrossEntropyLoss
from transformers import TrainerCallback

from nblib import anchors, checkpoints, corpora, finetuning, models, pairs, paths, triples, tuned
from nblib.finetuning import Settings
from nblib.model_registry import ModelError

SIZE = 1500  # pairs: some minutes on a CPU
LEARNING_RATE = 5e-5
SOURCES = {
    "snli": "pairs of SNLI dev and test, a third of each class",
    "triples": "anchors with a hedge (1) or a negation (0) of the study's triples, half each",
}
CLASSES = {pairs.ENTAILMENT: "entailment", pairs.NEUTRAL: "neutral", pairs.CONTRADICTION: "contradiction"}


def judgements(source: str, anchors_file: str | Path) -> pd.DataFrame:
    """Pairs with what to say of them: query, document, label (a class of SNLI; or 1.0 for a hedge, 0.0 for a negation).

    Args:
        anchors_file: for "triples", what notebook 03 has left; those held out or for dev stay out.

    Raises:
        AnchorError, CorpusError, TripleError: they aren't there.
    """
    if source == "snli":
        return pairs.snli().rename(columns={"premise": "query", "hypothesis": "document"})[
            ["query", "document", "label"]
        ]
    return labelled(triples.training_set(triples.load_anchors(anchors_file), "both"))


def labelled(table: pd.DataFrame) -> pd.DataFrame:
    """Triples as pairs with what to say of them (see `judgements`): 1.0 of anchor and positive, 0.0 of anchor and negative."""
    sides = [
        table[["anchor", side]].set_axis(["query", "document"], axis=1).assign(label=label)
        for side, label in [("positive", 1.0), ("negative", 0.0)]
    ]
    return pd.concat(sides).drop_duplicates(ignore_index=True)


def train(settings: Settings, table: pd.DataFrame, scratch: str | Path) -> CrossEncoder:
    """A cross-encoder on the transformer of `settings.base`, trained to give the labels: classes where they are whole numbers
    (cross-entropy), else one logit (binary cross-entropy). Of the settings the loss, the method and the pooling don't apply.

    Args:
        scratch: a folder the trainer may write to.

    Raises:
        ModelError, FinetuningError: the base isn't there, or has no transformer.
    """
    encoder = models.load(settings.base)
    source = tuned.prepare(encoder.model)[0].auto_model.name_or_path
    classes = pd.api.types.is_integer_dtype(table.label)
    torch.manual_seed(settings.seed)  # of the new layer's weights
    model = CrossEncoder(source, num_labels=len(CLASSES) if classes else 1, revision=encoder.spec.revision)
    if classes:
        model.config.id2label, model.config.label2id = CLASSES, {label: place for place, label in CLASSES.items()}
    return fit(model, settings, table, scratch)


def fit(
    model: CrossEncoder,
    settings: Settings,
    table: pd.DataFrame,
    scratch: str | Path,
    callbacks: Sequence[TrainerCallback] = (),
) -> CrossEncoder:
    """A cross-encoder trained further, in place; all else as `train`."""
    arguments = CrossEncoderTrainingArguments(
        **finetuning.schedule(settings, paths.writable_folder(scratch)), save_strategy="no"
    )
    trainer = CrossEncoderTrainer(
        model=model, args=arguments, train_dataset=Dataset.from_pandas(table, preserve_index=False),
        loss=BinaryCrossEntropyLoss(model) if model.num_labels == 1 else CrossEntropyLoss(model),
        callbacks=list(callbacks),
    )  # fmt: skip
    trainer.train()
    return trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False).eval()  # out of autocast: float32 again


def run(source: str, settings: Settings, run_dir: str | Path, anchors_file: str | Path, size: int = SIZE) -> Path:
    """Train on pairs of a source and leave `encoders/cross-<source>`, a folder that `rankers.load` takes.

    Raises:
        PairError: fewer pairs than asked for; and those of `judgements` and `train`.
    """
    name, started = f"cross-{source}", time.perf_counter()
    table = pairs.draw(judgements(source, anchors_file), size, settings.seed, by="label")
    scratch = Path(run_dir, "checkpoints", name)
    model = train(settings, table, scratch)
    checkpoints.forget(scratch)
    about = {
        "base": settings.base, "data": SOURCES[source], "pairs": len(table), "learning_rate": settings.learning_rate,
        "epochs": settings.epochs, "batch_size": settings.batch_size, "seed": settings.seed,
    }  # fmt: skip
    said = "\n".join(f"- {key}: {value}" for key, value in about.items())
    card = f"# {name}\n\nA cross-encoder on {settings.base}'s transformer, with a new last layer.\n\n{said}\n"
    return tuned.save(model, Path(run_dir, "encoders", name), card, **about, seconds=time.perf_counter() - started)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line: one cross-encoder."""
    parser = argparse.ArgumentParser(prog="python -m nblib.cross_training", description=__doc__.splitlines()[0])
    parser.add_argument("source", choices=list(SOURCES))
    parser.add_argument("--base", default="all-MiniLM-L6-v2", help="the encoder whose transformer to start from")
    parser.add_argument("--anchors", help="what notebook 03 has left (default: triples/anchors.parquet of the run)")
    parser.add_argument("--size", type=int, default=SIZE, help="pairs to train on, drawn by seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run-dir", default="runs/lab")
    given = parser.parse_args(arguments)
    settings = Settings(given.base, learning_rate=LEARNING_RATE, seed=given.seed)
    anchors_file = given.anchors or Path(given.run_dir, "triples", "anchors.parquet")
    try:
        run(given.source, settings, given.run_dir, anchors_file, given.size)
    except (
        anchors.AnchorError, corpora.CorpusError, pairs.PairError, triples.TripleError, ModelError,
        checkpoints.FinetuningError, FileNotFoundError, PermissionError,
    ) as error:  # fmt: skip
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
