"""NevIR (Weller et al.): rank two documents that differ by a negation, for two queries that differ so, too."""

import pandas as pd
from mteb.types import PromptType

from nblib import corpora
from nblib.benchmarks.base import DevSet, metadata, mini, sample, shared_text_clusters
from nblib.benchmarks.pairwise import PairwiseTask


class NevIR(PairwiseTask):
    """Two queries that differ by a negation, each with its document; both must be ranked right.

    mteb has NevIR as a retrieval task under another metric of the same value; as pairs it leaves per-item margins, and it
    needs no hub.
    """

    label = "NevIR"
    corpus = "nevir"
    metric = "right_rank"
    roles = (PromptType.query, PromptType.document)
    chance = 25.0  # both questions with two documents each
    averaged = True
    dev_sets = (
        DevSet("nevir", "train_sample", ("official", "nevir")),
        DevSet("nevir_mini", "test", ("official", "nevir")),
    )
    llm = "ranking"
    metadata = metadata(
        "nevir", corpus, type="Reranking", main_score="accuracy", license="mit",
        description="Rank two documents that differ by a negation right for both of two contrasting queries.",
        reference="https://github.com/orionw/NevIR", date=("2023-05-12", "2023-09-28"), domains=["Web"],
        task_subtypes=["Article retrieval"], annotations_creators="human-annotated", sample_creation="created",
        bibtex_citation="@inproceedings{weller-etal-2024-nevir, title={{NevIR}: Negation in Neural Information Retrieval}, "
        "author={Weller, Orion and Lawrie, Dawn and Van Durme, Benjamin}, booktitle={EACL}, year={2024}}",
    )  # fmt: skip

    def rows(self, split: str) -> pd.DataFrame:
        table = corpora.load(self.corpus, split)
        cluster = shared_text_clusters(table.doc1, table.doc2)
        sides = [("q1", table.q1, table.doc1, table.doc2), ("q2", table.q2, table.doc2, table.doc1)]
        return pd.concat([
            pd.DataFrame({
                "id": table.id, "cluster": cluster, "question": question, "query": query, "positive": positive,
                "negatives": [[text] for text in negative],
            })
            for question, query, positive, negative in sides
        ], ignore_index=True)  # fmt: skip


FORMS = (NevIR, mini(NevIR), sample(NevIR, 100, "pairs"))
