"""Cao's universality-gap diagnosis (§3): is a sentence closer to its negation than to what people call similar to it?"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from nblib.corpora.negator import NO_OUTPUT, negate_sentences
from nblib.models import embeddings
from nblib.models.encoders import Encoder

GROUPS = {1: "0–0.2", 2: "0.2–0.4", 3: "0.4–0.6", 4: "0.6–0.8", 5: "0.8–1"}  # of human similarity (§3.3)
POLAR_BEAR, WARMING = "Polar bear DNA may help fight obesity", "Global warming is real."
EXAMPLES = [  # paper, anchor, sentence, name in the results (Cao's Figure 1; Truong's Figure 1)
    ("cao", POLAR_BEAR, "Polar bear study may boost fight against obesity", "cosine_paraphrase"),
    ("cao", POLAR_BEAR, "Polar bear DNA may not help fight obesity", "cosine_negation"),
    ("truong", WARMING, "Global warming is a hoax.", "cosine_hoax"),
    ("truong", WARMING, f"There is not enough evidence to claim that {WARMING.lower()}", "cosine_not_enough_evidence"),
    ("truong", WARMING, f"There is no doubt that {WARMING.lower()}", "cosine_no_doubt"),
]


def with_negations(pairs: pd.DataFrame) -> pd.DataFrame:
    """STSB pairs with `negated` (NegS1, §3.1; NaN where the tool fails), `reason` (why it isn't clean, or "") and `group` (one of
    `GROUPS`, of the score 0–5).

    The paper gives the groups' borders to both neighbours. Here a score on a border belongs to the group above: with group 5 =
    [4, 5] the number of dev and test pairs is nearest to the paper's 550.
    """
    negations = negate_sentences(pairs.sentence1.tolist())
    table = pairs.merge(negations, left_on="sentence1", right_on="sentence", how="left")
    table["negated"] = table.negated.where(~table.reason.isin(NO_OUTPUT))
    return table.drop(columns="sentence").assign(group=np.minimum(table.score.astype(int), 4) + 1)


def compare(pairs: pd.DataFrame, encoder: Encoder) -> pd.DataFrame:
    """Eq. 1 per pair from `with_negations` that has a NegS1: encoder (its name), group, sim_12 = Cos(S1, S2), sim_1neg1 =
    Cos(S1, NegS1)."""
    vectors = embeddings.encode(encoder, [*pairs.sentence1, *pairs.sentence2, *pairs.negated])
    first, second, negated = np.split(vectors, 3)
    similarities = {"sim_12": embeddings.similarity(first, second), "sim_1neg1": embeddings.similarity(first, negated)}
    return pd.DataFrame({"encoder": encoder.name, "group": pairs.group.to_numpy(), **similarities})


def closer_share(compared: pd.DataFrame) -> pd.DataFrame:
    """Per encoder and group: n, and the shares (percent) of pairs in which S1 is strictly closer to NegS1, or to S2; a KeyError
    where a group has no pairs."""
    to_negation, to_paraphrase = compared.sim_1neg1, compared.sim_12
    closer = compared.assign(negation_closer=to_negation > to_paraphrase, paraphrase_closer=to_paraphrase > to_negation)
    groups = closer.groupby(["encoder", "group"])
    shares = groups[["negation_closer", "paraphrase_closer"]].mean().mul(100)
    shares.insert(0, "n", groups.size())
    return shares.loc[[(encoder, group) for encoder in compared.encoder.unique() for group in GROUPS]].reset_index()


def paper_examples(encoders: Sequence[Encoder]) -> pd.DataFrame:
    """The cosines of the two Figures 1: paper, encoder, anchor, sentence, metric, cosine."""
    rows = [
        (paper, encoder.name, anchor, sentence, metric, cosines(anchor, [sentence], [encoder]).iloc[0, 0])
        for encoder in encoders
        for paper, anchor, sentence, metric in EXAMPLES
    ]
    return pd.DataFrame(rows, columns=["paper", "encoder", "anchor", "sentence", "metric", "cosine"])


def truongs_figure_1(encoders: Sequence[Encoder]) -> pd.DataFrame:
    """Truong's Figure 1: metric, sentence, and the cosine with the anchor by each encoder."""
    table = paper_examples(encoders).query("paper == 'truong'")
    wide = table.pivot(index=["metric", "sentence"], columns="encoder", values="cosine")
    return wide.reindex(table.metric.unique(), level="metric").reset_index()


def cosines(sentence: str, others: Sequence[str], encoders: Sequence[Encoder]) -> pd.DataFrame:
    """The similarity of one sentence with others, a row per other sentence, a column per encoder."""
    columns = {}
    for encoder in encoders:
        anchor, *rest = embeddings.encode(encoder, [sentence, *others])
        columns[encoder.name] = embeddings.similarity(np.tile(anchor, (len(rest), 1)), np.stack(rest))
    return pd.DataFrame(columns, index=pd.Index(others, name=f"cosine with “{sentence}”"))
