"""What `nblib train` trains on, in one table: where the texts come from, and how many of them one training takes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from datasets import DatasetDict

from nblib.corpora import pairs, triples
from nblib.models.folders import FinetuningError
from nblib.training import batches, mixture
from nblib.training.batches import labelled
from nblib.training.losses import LOSSES


@dataclass(frozen=True)
class TrainingData:
    """Texts to train on.

    Attributes:
        about: what they are, in a model card.
        layouts: how examples can be formed of them (`batches.LAYOUTS`).
        read: gives examples in the one layout they have; None for triples.
        training_set: triples: which (`triples.training_set`).
        balanced_by: a sample has equally many examples of each value of this column.
        family: the family of Vahtola's that models trained on such data belong to; its trainings are scored on SemAntoNeg.
        size, epochs, learning_rate: a training's defaults; size 0 is all.
    """

    about: str
    layouts: tuple[str, ...]
    read: Callable[[], pd.DataFrame] | None = None
    training_set: str = ""
    balanced_by: str = "source"
    family: str = ""
    size: int = 2000  # some minutes on a CPU, and as many as the scarcest of the paraphrases allow
    epochs: int = 1
    learning_rate: float = 5e-5  # notebook 04's for the small encoder, chosen on dev data


def _snli() -> pd.DataFrame:
    return pairs.snli().rename(columns={"premise": "query", "hypothesis": "document"})[["query", "document", "label"]]


MIXTURE = "mixture"
_TRIPLES = ("positive", "anchor", "labelled")
DATA = {
    "nevir": TrainingData(
        "NevIR's training pairs at hand", _TRIPLES, training_set="NevIR", balanced_by="label", size=0, epochs=20,
        learning_rate=2e-5,  # the paper's for bi-encoders
    ),
    "triples": TrainingData(
        "the study's triples: anchors with their hedges and negations", _TRIPLES, training_set="both", balanced_by="label",
        size=1500,
    ),
    "snli": TrainingData(
        "pairs of SNLI dev and test, a third of each class", ("labelled",), _snli, balanced_by="label", size=1500
    ),
    "nli": TrainingData(
        "SNLI dev and test, entailed and contradicting sentence", ("positive",), pairs.contrasted, family="NLI"
    ),
    "stsb": TrainingData("STSB train", ("scored",), pairs.graded, family="STSB"),
    "paraphrases": TrainingData(
        "COCO captions of one picture, compressed news sentences, rewritten Wikipedia sentences", ("positive",),
        pairs.paraphrases, family="paraphrase",
    ),
    MIXTURE: TrainingData(
        "the study's triples, contrast passages and exclusions", ("positive", "labelled"), size=0
    ),
}  # fmt: skip


def default_loss(name: str, architecture: str) -> str:
    """The loss that trains an architecture on such data.

    Raises:
        FinetuningError: there is none.
    """
    for loss, entry in LOSSES.items():
        if entry.architecture == architecture and entry.layout in DATA[name].layouts:
            return loss
    raise FinetuningError(f"No loss trains a {architecture} on {name}. Choose another architecture, or other data.")


def examples(name: str, loss: str, anchors_file: str | Path, size: int, seed: int) -> DatasetDict:
    """The examples of a training, in the layout of its loss.

    Raises:
        FinetuningError: a part of the mixture.
        AnchorError, CorpusError, TripleError, PairError: see `load`.
    """
    if name != MIXTURE:
        layout = LOSSES[loss].layout
        return batches.data_sets(load(name, layout, anchors_file, size, seed), layout)
    if size:
        raise FinetuningError("The mixture is taken whole. Leave out --size, or set it to 0.")
    kinds = {kind: mixture.Kind(loss) for kind in mixture.TABLES if kind not in mixture.UNLABELLED}
    return mixture.data_sets(kinds, triples.load_anchors(anchors_file), seed)


def load(name: str, layout: str, anchors_file: str | Path, size: int, seed: int) -> pd.DataFrame:
    """Texts to train on, as `batches.data_sets` takes them.

    Args:
        layout: labelled pairs are sampled; of triples the first `size` anchors (or pairs of NevIR) are taken.
        anchors_file: for triples, what notebook 03 has left; anchors held out or for dev stay out.
        size: 0 takes all.
        seed: of the draw.

    Raises:
        AnchorError, CorpusError, TripleError: the texts aren't there.
        PairError: fewer than asked for.
    """
    chosen = DATA[name]
    if chosen.read is None:
        apart = triples.load_anchors(anchors_file)
        if layout != "labelled":
            return triples.training_set(apart, chosen.training_set, size)
        table = labelled(triples.training_set(apart, chosen.training_set))
    else:
        table = chosen.read()
    chosen_pairs = pairs.sample(table, size, seed, by=chosen.balanced_by) if size else table
    return chosen_pairs.drop(columns="source", errors="ignore")
