"""Fine-tuning on NevIR, epoch by epoch, of a cross-encoder and of a multi-vector model (Weller §6, Figures 5 and 11).

They get the pairs and batch size of the bi-encoder that notebook 04 trains, unless told otherwise its epochs and learning rate,
and are measured on the same dev items: NevIR's, and what they could do before. No test set is touched. What was trained is a
ranker's folder:

    python -m nblib.nevir_training multi-vector --run-dir runs/official
    python -m nblib.ranking runs/official/encoders/nevir-multi-vector --suite official --scale official --run-dir runs/official
"""

import argparse
import copy
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd
from sentence_transformers.multi_vector_encoder import MultiVectorEncoderTrainer, MultiVectorEncoderTrainingArguments
from sentence_transformers.multi_vector_encoder.losses import MultiVectorMultipleNegativesRankingLoss
from torch import nn
from transformers import TrainerCallback

from nblib import (
    checkpoints,
    corpora,
    cross_training,
    dev,
    finetuning,
    models,
    negation_profile,
    paths,
    provenance,
    rankers,
    ranking,
    scores,
    triples,
    tuned,
)
from nblib.checkpoints import FinetuningError
from nblib.finetuning import Settings
from nblib.model_registry import ModelError
from nblib.rankers import Cross, LateInteraction, Ranker, RankerError
from nblib.tasks.pairwise import PairwiseTask

EPOCHS, LEARNING_RATE = 20, 2e-5  # the paper's for bi-encoders; what notebook 04 trains with
COLUMNS = ["architecture", "epoch", "set", "metric", "value", "n"]


@dataclass(frozen=True)
class Architecture:
    """What can be trained on NevIR.

    Attributes:
        base: where to start from: a name or folder, `{run_dir}` in it is the run's.
        load: gives the ranker of that name; its `model` is trained.
        fit: trains a model in place, with a callback after each epoch.
        graded: whether its score says how similar two texts are, so that STS can be asked of it.
    """

    base: str
    load: Callable[[str], Ranker]
    fit: Callable[[nn.Module, Settings, pd.DataFrame, Path, Sequence[TrainerCallback]], object]
    graded: bool = False


def load_cross_encoder(base: str) -> Cross:
    """A cross-encoder that gives one score.

    Raises:
        FinetuningError, RankerError: there is none, or it can't be loaded.
    """
    if base not in rankers.registry() and not paths.resolve(base).is_dir():
        raise FinetuningError(
            f"No cross-encoder at {paths.resolve(base)}. Train one first: python -m nblib.cross_training triples --run-dir …"
        )
    ranker = rankers.load(base)
    if not isinstance(ranker, Cross) or ranker.model.num_labels != 1:
        raise FinetuningError(
            f"{base} is no cross-encoder that gives a query and a document one score. Choose another."
        )
    return ranker


def load_multi_vector(base: str) -> LateInteraction:
    """MaxSim over an encoder's token vectors, its mean over the query's tokens: STS compares the scores of different queries."""
    ranker = rankers.token_maxsim(models.load(base))
    ranker.model.similarity_fn_name = "meanmaxsim"
    return ranker


def fit_cross_encoder(
    model: nn.Module, settings: Settings, train_set: pd.DataFrame, scratch: Path, callbacks: Sequence[TrainerCallback]
) -> None:
    """Binary cross-entropy: a question's own document is right, the pair's other one wrong."""
    cross_training.fit(model, settings, cross_training.labelled(train_set), scratch, callbacks)


def fit_multi_vector(
    model: nn.Module, settings: Settings, train_set: pd.DataFrame, scratch: Path, callbacks: Sequence[TrainerCallback]
) -> None:
    """The bi-encoder's examples, batches and kind of loss (the pair's other document and the batch's as negatives), by MaxSim."""
    arguments = MultiVectorEncoderTrainingArguments(
        **finetuning.schedule(settings, scratch), save_strategy="no", batch_sampler=finetuning.AnchorBatches
    )
    MultiVectorEncoderTrainer(
        model=model, args=arguments, train_dataset=finetuning.examples(train_set), callbacks=list(callbacks),
        loss=MultiVectorMultipleNegativesRankingLoss(model),
    ).train()  # fmt: skip


ARCHITECTURES = {
    "cross-encoder": Architecture("{run_dir}/encoders/cross-triples", load_cross_encoder, fit_cross_encoder),
    "multi-vector": Architecture("all-MiniLM-L6-v2", load_multi_vector, fit_multi_vector, graded=True),
}


def measure(ranker: Ranker, items: dev.Items, anchors: pd.DataFrame) -> pd.DataFrame:
    """The dev scores of a ranker, as `dev.Watch` measures an encoder's: set, metric, value (percent, ρ × 100), n.

    Args:
        items: from `dev.items`.
        anchors: the dev anchors with their variants: how often is a hedge ranked above a negation?

    Raises:
        RankerError: see `ranking.judge`.
    """
    rows = []
    for name, (task, table) in items.items():
        if isinstance(task, PairwiseTask):
            judged = ranking.judge(ranker, table)
            rows.append((name, "pairwise_accuracy", judged.correct.mean(), len(judged)))
        else:
            rho = scores.spearman(ranker.score(table.sentence1, table.sentence2), table.score)
            rows.append((name, "spearman", rho, len(table)))
    variants = negation_profile.VARIANTS
    texts = [text for variant in variants for text in anchors[variant]]
    judged = negation_profile.settle(anchors, ranker.score([*anchors.anchor] * len(variants), texts))
    rows.append((dev.ANCHORS, "accuracy", judged.correct.mean(), len(judged)))
    return pd.DataFrame(rows, columns=["set", "metric", "value", "n"]).assign(value=lambda table: 100 * table.value)


def run(
    architecture: str,
    settings: Settings,
    run_dir: str | Path,
    anchors_file: str | Path,
    *,
    name: str | None = None,
    every_epoch: bool = True,
) -> pd.DataFrame:
    """Train on NevIR's training pairs at hand; leave what was trained, `encoders/<name>`, and the curve,
    `scores/<name>/epochs.csv`, each with its sidecar.

    Args:
        settings: `base` is where to start from.
        name: None takes `nevir-<architecture>`.
        every_epoch: False measures before the training and after it alone.

    Returns:
        `COLUMNS`, before training (epoch 0) and after each epoch.

    Raises:
        FinetuningError, ModelError, RankerError: the base can't be trained so.
        CorpusError, TripleError: NevIR or the dev anchors aren't there.
    """
    name, chosen, started = name or f"nevir-{architecture}", ARCHITECTURES[architecture], time.perf_counter()
    apart = triples.load_anchors(anchors_file)
    train_set, anchors = triples.training_set(apart, "NevIR"), apart[apart.split == "dev"]
    items = dev.items("nevir", set(train_set.id)).items()
    asked = {part: entry for part, entry in items if chosen.graded or isinstance(entry[0], PairwiseTask)}
    ranker, measured = chosen.load(settings.base), []
    start = copy.deepcopy(ranker.model)

    def watch(model: nn.Module, epoch: int) -> None:
        watched = copy.copy(ranker)
        watched.model = model
        measured.append(measure(watched, asked, anchors).assign(architecture=architecture, epoch=epoch))

    watch(start, 0)
    scratch = paths.writable_folder(Path(run_dir, "checkpoints", name))
    callbacks = [finetuning.AfterEpoch(start, ranker.model, watch)] if every_epoch else []
    chosen.fit(ranker.model, settings, train_set, scratch, callbacks)
    trained = tuned.interpolate(start, ranker.model, 1.0)  # out of autocast: float32 again
    if not every_epoch:
        watch(trained, settings.epochs)
    checkpoints.forget(scratch)
    about = {
        **asdict(settings), "source": ranker.source, "pairs": train_set.id.nunique(), "architecture": architecture,
        "seconds": time.perf_counter() - started,
    }  # fmt: skip
    card = f"# {name}\n\n{ranker.source}, fine-tuned on {about['pairs']} training pairs of NevIR ({architecture}).\n"
    tuned.save(trained, Path(run_dir, "encoders", name), card, **about)
    table = pd.concat(measured, ignore_index=True)[COLUMNS]
    file = scores.folder_of(run_dir, name) / "epochs.csv"
    with paths.write_atomically(file) as draft:
        table.to_csv(draft, index=False, lineterminator="\n", float_format="%.4f")
    provenance.write_sidecar(file, **about)
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line: one architecture."""
    parser = argparse.ArgumentParser(prog="python -m nblib.nevir_training", description=__doc__.splitlines()[0])
    parser.add_argument("architecture", choices=list(ARCHITECTURES))
    parser.add_argument("--base", help="what to start from (default: cross-triples of the run, or all-MiniLM-L6-v2)")
    parser.add_argument("--name", help="what it is filed under (default: nevir-<architecture>)")
    parser.add_argument("--learning-rate", type=float, default=LEARNING_RATE)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--ends", action="store_true", help="measure before and after, not each epoch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run-dir", default="runs/lab")
    given = parser.parse_args(arguments)
    base = given.base or ARCHITECTURES[given.architecture].base.format(run_dir=given.run_dir)
    settings = Settings(base, learning_rate=given.learning_rate, epochs=given.epochs, seed=given.seed)
    anchors_file = Path(given.run_dir, "triples", "anchors.parquet")
    try:
        run(given.architecture, settings, given.run_dir, anchors_file, name=given.name, every_epoch=not given.ends)
    except (
        FinetuningError, RankerError, ModelError, corpora.CorpusError, triples.TripleError, FileNotFoundError,
        PermissionError,
    ) as error:  # fmt: skip
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
