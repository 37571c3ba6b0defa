"""Cao's universality-gap diagnosis (§3): is a sentence closer to its negation than to what people call similar to it?"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from nblib.corpora.negator import NO_OUTPUT, negate_sentences
from nblib.models import embeddings
from nblib.models.encoders import Encoder
from nblib.results import published

PARAPHRASE, NEGATION = "S1 and S2", "S1 and NegS1"
GROUPS = {1: "0–0.2", 2: "0.2–0.4", 3: "0.4–0.6", 4: "0.6–0.8", 5: "0.8–1"}


def similarity_group(score: Sequence[float]) -> np.ndarray:
    """Cao's group (1–5, §3.3) of human scores 0–5 rescaled to 0–1.

    The paper gives borders to both neighbours. Here a score on a border belongs to the group above: with group 5 = [4, 5] the
    number of dev and test pairs is nearest to the paper's 550.

    Raises:
        ValueError: a score outside 0–5.
    """
    score = np.asarray(score, dtype=float)
    if not ((score >= 0) & (score <= 5)).all():
        raise ValueError(f"STSB scores lie between 0 and 5; got {score.min()} to {score.max()}.")
    return np.minimum(score.astype(int), 4) + 1


def with_negations(pairs: pd.DataFrame) -> pd.DataFrame:
    """STSB pairs with `negated` (NegS1, §3.1; NaN where the tool fails), `reason` (why it isn't clean, or "") and `group`."""
    negations = negate_sentences(pairs.sentence1.tolist())
    table = pairs.merge(negations, left_on="sentence1", right_on="sentence", how="left")
    table["negated"] = table.negated.where(~table.reason.isin(NO_OUTPUT))
    return table.drop(columns="sentence").assign(group=similarity_group(table.score))


def compare(pairs: pd.DataFrame, encoder: Encoder) -> pd.DataFrame:
    """Eq. 1 per pair: `sim_12` = Cos(S1, S2) and `sim_1neg1` = Cos(S1, NegS1).

    Args:
        pairs: from `with_negations`, rows without NegS1 dropped.

    Returns:
        group, sim_12, sim_1neg1 and the encoder's name, in the order of the pairs.
    """
    vectors = embeddings.encode(encoder, [*pairs.sentence1, *pairs.sentence2, *pairs.negated])
    first, second, negated = np.split(vectors, 3)
    similarities = {"sim_12": embeddings.similarity(first, second), "sim_1neg1": embeddings.similarity(first, negated)}
    return pd.DataFrame({"encoder": encoder.name, "group": pairs.group.to_numpy(), **similarities})


def histogram(compared: pd.DataFrame) -> pd.DataFrame:
    """Figure 2 as numbers: encoder, group, kind (`PARAPHRASE` or `NEGATION`), left, width, percent of the group's pairs;
    similarities below the lowest edge count in the first bin."""
    edges = np.linspace(-0.2, 1, 31)
    tables = []
    for (encoder, group), part in compared.groupby(["encoder", "group"]):
        for kind, column in [(PARAPHRASE, "sim_12"), (NEGATION, "sim_1neg1")]:
            counts, _ = np.histogram(part[column].clip(edges[0], edges[-1]), bins=edges)
            bins = {"left": edges[:-1], "width": edges[1] - edges[0], "percent": 100 * counts / len(part)}
            tables.append(pd.DataFrame({"encoder": encoder, "group": group, "kind": kind, **bins}))
    return pd.concat(tables, ignore_index=True)


def closer_share(compared: pd.DataFrame) -> pd.DataFrame:
    """Per encoder and group: n, and the shares (percent) of pairs in which S1 is strictly closer to NegS1, or to S2.

    Raises:
        ValueError: a group has no pairs.
    """
    closer = compared.assign(
        negation_closer=compared.sim_1neg1 > compared.sim_12, paraphrase_closer=compared.sim_12 > compared.sim_1neg1
    )
    shares = closer.groupby(["encoder", "group"])[["negation_closer", "paraphrase_closer"]].mean().mul(100)
    shares.insert(0, "n", closer.groupby(["encoder", "group"]).size())
    wanted = pd.MultiIndex.from_product([compared.encoder.unique(), GROUPS], names=["encoder", "group"])
    empty = [f"{group} ({encoder})" for encoder, group in wanted.difference(shares.index)]
    if empty:
        raise ValueError(f"No pairs in similarity group {', '.join(empty)}: take more pairs, or another corpus.")
    return shares.loc[wanted].reset_index()


POLAR_BEAR = "Polar bear DNA may help fight obesity"
WARMING = "Global warming is real."
# paper, anchor, sentence, name in the results (Cao's Figure 1; Truong's Figure 1)
EXAMPLES = [
    ("cao", POLAR_BEAR, "Polar bear study may boost fight against obesity", "cosine_paraphrase"),
    ("cao", POLAR_BEAR, "Polar bear DNA may not help fight obesity", "cosine_negation"),
    ("truong", WARMING, "Global warming is a hoax.", "cosine_hoax"),
    (
        "truong",
        WARMING,
        "There is not enough evidence to claim that global warming is real.",
        "cosine_not_enough_evidence",
    ),
    ("truong", WARMING, "There is no doubt that global warming is real.", "cosine_no_doubt"),
]


def paper_examples(encoders: Sequence[Encoder]) -> pd.DataFrame:
    """The cosines of the two Figures 1: paper, system (the paper's name), encoder, anchor, sentence, metric, cosine, and
    the published cosine where one is printed."""
    rows = []
    for encoder in encoders:
        for paper, anchor, sentence, metric in EXAMPLES:
            cosine = cosines(anchor, [sentence], [encoder]).iloc[0, 0]
            system = published.system_name(paper, encoder.name)
            in_paper = published.value_or_nan(paper, "Figure 1", system, metric)
            rows.append((paper, system, encoder.name, anchor, sentence, metric, cosine, in_paper))
    columns = ["paper", "system", "encoder", "anchor", "sentence", "metric", "cosine", "published"]
    return pd.DataFrame(rows, columns=columns)


def truongs_figure_1(encoders: Sequence[Encoder]) -> pd.DataFrame:
    """Truong's Figure 1: metric, sentence, and the cosine with the anchor by each encoder."""
    cosines = paper_examples(encoders).query("paper == 'truong'")
    wide = cosines.pivot(index=["metric", "sentence"], columns="encoder", values="cosine")
    return wide.reindex([metric for paper, _, _, metric in EXAMPLES if paper == "truong"], level="metric").reset_index()


def nearest_sentence(cosines: pd.DataFrame) -> str:
    """Which sentence of a Figure 1 is nearest to its anchor, and for how many encoders, in words.

    Args:
        cosines: of `paper_examples`, one paper.
    """
    nearest = cosines.loc[cosines.groupby("encoder").cosine.idxmax()].sentence.value_counts()
    encoders = f"{nearest.iloc[0]} of {nearest.sum()} encoders"
    return f"Nearest to “{cosines.anchor.iloc[0]}” for {encoders}: “{nearest.index[0]}”"


def cosines(sentence: str, others: Sequence[str], encoders: Sequence[Encoder]) -> pd.DataFrame:
    """The similarity of one sentence with others, a row per other sentence, a column per encoder."""
    columns = {}
    for encoder in encoders:
        anchor, *rest = embeddings.encode(encoder, [sentence, *others])
        columns[encoder.name] = embeddings.similarity(np.tile(anchor, (len(rest), 1)), np.stack(rest))
    return pd.DataFrame(columns, index=pd.Index(others, name=f"cosine with “{sentence}”"))
