"""ExcluIR (Zhang et al.): rank the wanted document before the one that the query excludes."""

import json
from typing import Any

import numpy as np
import pandas as pd
from datasets import Dataset
from mteb.abstasks import AbsTaskRetrieval
from mteb.types import PromptType

from nblib import corpora, paths
from nblib.benchmarks.base import DevSet, LocalTask, metadata, mini, sample, shared_text_clusters
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

    The benchmark's own right rank looks at the ten nearest of the whole corpus (`ExcluIRCorpus`): another number. Truong doesn't
    state which it is; its chance level of 50 % suggests pairs.
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


class ExcluIRCorpus(LocalTask, AbsTaskRetrieval):
    """ExcluIR by its official rule, over the whole corpus (`corpus.json`, which is on its authors' drive only).

    Right rank: among the ten nearest documents, the wanted one stands before the excluded one, or stands there alone.
    """

    label = "ExcluIR"
    corpus = "excluir_queries"
    metric = "right_rank"
    corpus_file = "excluir/corpus.json"
    metadata = metadata(
        "excluir_corpus", corpus, main_score="right_rank_at_10", **{**ABOUT, "type": "Retrieval"},
        description="Exclusionary retrieval in the full corpus: right rank within the top ten.",
    )  # fmt: skip

    def load_data(self, **_: Any) -> None:
        """Raises:
        CorpusError: corpus.json isn't there, or is another corpus than the one the queries point into.
        """
        if self.data_loaded:
            return
        root = paths.official_data() or paths.cache() / "corpora"
        file = root / self.corpus_file
        if not file.is_file():
            raise corpora.CorpusError(
                f"ExcluIR's corpus isn't at {file}: its authors share it only on a drive (see {self.metadata.reference}). Put "
                "corpus.json there, or use the task excluir, which ranks within pairs."
            )
        documents = json.loads(file.read_text(encoding="utf-8"))
        queries = corpora.load(self.corpus)
        for query in queries.itertuples():
            title = documents[query.neg_index].split("\n")[0] if query.neg_index < len(documents) else "(no document)"
            if title.strip() != query.neg_title.strip():
                raise corpora.CorpusError(
                    f"{file}: document {query.neg_index} is {title!r}, expected {query.neg_title!r}."
                )
        self.excluded = {str(query.index): str(query.neg_index) for query in queries.itertuples(index=False)}
        self.dataset = {"default": {"test": {
            "corpus": Dataset.from_dict({"id": [str(k) for k in range(len(documents))], "text": documents}),
            "queries": Dataset.from_dict({"id": [str(k) for k in queries["index"]], "text": queries["query"].tolist()}),
            "relevant_docs": {str(k): {str(p): 1} for k, p in zip(queries["index"], queries.pos_index, strict=True)},
            "top_ranked": None,
        }}}  # fmt: skip
        self.data_loaded = True

    def task_specific_scores(self, scores: dict, qrels: dict, results: dict, hf_split: str, hf_subset: str) -> dict:
        right = [
            right_rank(sorted(found, key=found.get, reverse=True)[:10], next(iter(qrels[query])), self.excluded[query])
            for query, found in results.items()
        ]
        return {"right_rank_at_10": float(np.mean(right))}


def right_rank(top: list[str], wanted: str, excluded: str) -> bool:
    """The official rule: the wanted document is among the top, and the excluded one is not before it."""
    return wanted in top and (excluded not in top or top.index(wanted) < top.index(excluded))


FORMS = (ExcluIR, mini(ExcluIR), sample(ExcluIR, 100, "pairs"), ExcluIRCorpus)
