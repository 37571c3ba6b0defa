"""ExcluIR (Zhang et al.): rank the wanted document before the one that the query excludes."""

import pandas as pd
from mteb.types import PromptType

from nblib import corpora
from nblib.benchmarks.base import DevSet, metadata, mini, sample, shared_text_clusters
from nblib.benchmarks.pairwise import PairwiseTask

ABOUT = {
    "type": "Reranking", "license": "not specified", "reference": "https://github.com/zwh-sdu/ExcluIR",
    "date": ("2023-01-01", "2024-04-01"), "domains": ["Encyclopaedic"], "task_subtypes": ["Article retrieval"],
    "annotations_creators": "human-annotated", "sample_creation": "LM-generated and verified",
    "bibtex_citation": "@article{zhang-etal-2024-excluir, title={{ExcluIR}: Exclusionary Neural Information Retrieval}, "
    "author={Zhang, Wenhao and others}, journal={arXiv:2404.17288}, year={2024}}",
}  # fmt: skip


class ExcluIR(PairwiseTask):
    """Pairs only: is the wanted document closer to the query than the one it excludes?

    The benchmark's own right rank looks at the ten nearest of the whole corpus, which its authors share on a drive: another
    number. Truong doesn't state which it is; its chance level of 50 % suggests pairs.
    """

    label = "ExcluIR"
    corpus = "excluir"
    metric = "right_rank"
    roles = (PromptType.query, PromptType.document)
    chance = 50.0  # one question with two documents
    averaged = True
    dev_sets = (DevSet("excluir_mini", "test", ("official",)),)
    llm = "ranking"
    metadata = metadata(
        "excluir", corpus, main_score="accuracy",
        description="Rank the wanted document before the one the query excludes (1,014 pairs, no other documents).", **ABOUT,
    )  # fmt: skip

    def rows(self, split: str) -> pd.DataFrame:
        table = corpora.load(self.corpus, split)
        return pd.DataFrame({
            "id": table[corpora.describe(self.corpus).key[0]].astype(str), "question": "query", "query": table["query"],
            "cluster": shared_text_clusters(table.pos_doc, table.neg_doc), "positive": table.pos_doc,
            "negatives": [[text] for text in table.neg_doc],
        })  # fmt: skip


FORMS = (ExcluIR, mini(ExcluIR), sample(ExcluIR, 100, "pairs"))
