"""SemAntoNeg (Vahtola et al.): choose the paraphrase of a sentence among three candidates with negations and antonyms."""

import pandas as pd

from nblib import corpora
from nblib.benchmarks.base import DevSet, metadata, mini
from nblib.benchmarks.pairwise import PairwiseTask


def load(name: str = "semantoneg") -> pd.DataFrame:
    """A SemAntoNeg corpus: idx, input, positive, negatives (list of two), sentence_set.

    Rows that ask about the same four sentences share a `sentence_set` (the official 3,152 rows come from 770 sets); they
    are not independent, and a split that separates them shares sentences between its parts.
    """
    return items(corpora.load(name))


def items(table: pd.DataFrame) -> pd.DataFrame:
    """The same from any table with idx, label, input and sentences, such as `semantoneg_construction` makes."""
    sets = [frozenset([row.input, *row.sentences]) for row in table.itertuples()]
    return pd.DataFrame(
        {
            "idx": table.idx,
            "input": table.input,
            "positive": [row.sentences[row.label] for row in table.itertuples()],
            "negatives": [[s for k, s in enumerate(row.sentences) if k != row.label] for row in table.itertuples()],
            "sentence_set": pd.factorize(pd.Series(sets))[0],
        }
    )


class SemAntoNeg(PairwiseTask):
    """Which of three sentences is a paraphrase? Cosine for every model (§4)."""

    label = "SemAntoNeg"
    corpus = "semantoneg"
    roles = (None, None)
    similarity = "cosine"
    chance = 100 / 3  # the one of three
    dev_sets = (DevSet("semantoneg_mini", "test", ("official",)),)
    llm = "choice"
    metadata = metadata(
        "semantoneg", corpus, type="PairClassification", main_score="accuracy", license="cc-by-4.0",
        description="Choose the paraphrase of a sentence among three candidates with negations and antonyms.",
        reference="https://github.com/Helsinki-NLP/SemAntoNeg", date=("2021-01-01", "2022-12-31"), domains=["Subtitles"],
        task_subtypes=["Textual Entailment"], annotations_creators="expert-annotated", sample_creation="created",
        bibtex_citation="@inproceedings{vahtola-etal-2022-semantoneg, title={It Is Not Easy To Detect Paraphrases: Analysing "
        "Semantic Similarity With Antonyms and Negation Using the New SemAntoNeg Benchmark}, author={Vahtola, Teemu and Creutz, "
        "Mathias and Tiedemann, J{\\\"o}rg}, booktitle={BlackboxNLP}, year={2022}}",
    )  # fmt: skip

    def rows(self, split: str) -> pd.DataFrame:
        table = load(self.corpus)
        return pd.DataFrame({
            "id": table.idx.astype(str), "cluster": table.sentence_set, "question": "input", "query": table.input,
            "positive": table.positive, "negatives": table.negatives,
        })  # fmt: skip


FORMS = (SemAntoNeg, mini(SemAntoNeg))
