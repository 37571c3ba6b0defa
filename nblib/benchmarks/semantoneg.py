"""SemAntoNeg (Vahtola et al.): choose the paraphrase of a sentence among three candidates with negations and antonyms."""

import pandas as pd

from nblib.benchmarks.base import DevSet, metadata, mini
from nblib.benchmarks.pairwise import PairwiseTask
from nblib.corpora import semantoneg


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
        table = semantoneg.load(self.corpus)
        return pd.DataFrame({
            "id": table.idx.astype(str), "cluster": table.sentence_set, "question": "input", "query": table.input,
            "positive": table.positive, "negatives": table.negatives,
        })  # fmt: skip


FORMS = (SemAntoNeg, mini(SemAntoNeg))
