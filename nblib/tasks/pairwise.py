"""The negation benchmarks that are choices: SemAntoNeg, NevIR, ExcluIR. The right text must be nearer than the wrong ones."""

import json
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from datasets import Dataset
from mteb.abstasks import AbsTask, AbsTaskRetrieval
from mteb.models import EncoderProtocol
from mteb.types import PromptType

from nblib import corpora, embeddings, paths, semantoneg
from nblib.tasks.local import LocalTask, encode, metadata, sample, sampled, shared_text_clusters

SAMPLE_PAIRS = 100


class PairwiseTask(LocalTask, AbsTask):
    """Items made of questions: a text that must be strictly nearer to its positive than to each of its negatives.

    An item counts only where all its questions are right, and a tie is wrong (Weller §3.4; NevIR's two documents are nearly
    identical). Predictions: id, cluster, margin (similarity of the positive minus that of the nearest negative; the smallest
    over the item's questions), `margin_<question>` where there are several, `nearest_negative` (its place, from 0) where there
    are several negatives, correct.

    Attributes:
        roles: prompts of the question and of the candidates; None for symmetric tasks.
        similarity: what to compare with: the model's own, or cosine whatever the model.
    """

    roles: ClassVar[tuple[PromptType | None, PromptType | None]]
    similarity: ClassVar[Literal["model", "cosine"]] = "model"
    paper_metric = "accuracy"

    def _evaluate_subset(
        self, model: EncoderProtocol, data_split: Dataset, *, encode_kwargs: dict, hf_split: str,
        prediction_folder: Path | None = None, **_: Any,
    ) -> dict[str, float]:  # fmt: skip
        questions = data_split.to_pandas()
        ask = encode(self, model, questions["query"], hf_split, self.roles[0], encode_kwargs)
        candidates = [*questions.positive, *questions.negatives.explode()]
        answers = encode(self, model, candidates, hf_split, self.roles[1], encode_kwargs)
        own = getattr(model.mteb_model_meta.similarity_fn_name, "value", "cosine")
        kind = own if self.similarity == "model" else "cosine"
        predictions = self.judge(questions, np.asarray(ask), np.asarray(answers), kind)
        self.keep(hf_split, predictions, prediction_folder)
        scores = {"accuracy": float(predictions.correct.mean()), "n": len(predictions)}
        if own != kind:  # an adapter compares by dot product; say what that would give, too
            by_own = self.judge(questions, np.asarray(ask), np.asarray(answers), own)
            scores["accuracy_own_similarity"] = float(by_own.correct.mean())
        return scores

    @staticmethod
    def judge(questions: pd.DataFrame, ask: np.ndarray, answers: np.ndarray, kind: str) -> pd.DataFrame:
        """Predictions from embeddings.

        Args:
            questions: from `rows`, n of them.
            ask: the queries' embeddings, [n, dimension].
            answers: the positives', then all negatives', question by question.
            kind: the similarity, "cosine" or "dot".
        """
        n = len(questions)
        owner = np.repeat(np.arange(n), questions.negatives.map(len))
        to_positive = embeddings.similarity(ask, answers[:n], kind)
        return PairwiseTask.settle(questions, to_positive, embeddings.similarity(ask[owner], answers[n:], kind))

    @staticmethod
    def settle(questions: pd.DataFrame, to_positive: np.ndarray, to_negatives: np.ndarray) -> pd.DataFrame:
        """Predictions from similarities, or any other scores.

        Args:
            questions: from `rows`, n of them.
            to_positive: each query's score with its positive, [n].
            to_negatives: with each of its negatives, question by question.
        """
        counts = questions.negatives.map(len)
        by_question = pd.Series(to_negatives).groupby(np.repeat(np.arange(len(questions)), counts))
        table = questions[["id", "cluster", "question"]].assign(margin=to_positive - by_question.max().to_numpy())
        items = (
            table.groupby("id", sort=False).agg(cluster=("cluster", "first"), margin=("margin", "min")).reset_index()
        )
        if table.question.nunique() > 1:
            margins = table.pivot(index="id", columns="question", values="margin").add_prefix("margin_")
            items = items.merge(margins.reset_index(), on="id", validate="1:1")
        elif (counts > 1).any():
            firsts = np.concatenate([[0], counts.cumsum()[:-1]])
            items["nearest_negative"] = by_question.idxmax().to_numpy() - firsts
        return items.assign(correct=items.margin > 0)


class SemAntoNeg(PairwiseTask):
    """Vahtola et al.: which of three sentences is a paraphrase; cosine for every model (§4)."""

    corpus = "semantoneg"
    printed = (("vahtola", "Table 8", "SemAntoNeg", "accuracy"),)
    roles = (None, None)
    similarity = "cosine"
    metadata = metadata(
        "SemAntoNeg", corpus, type="PairClassification", main_score="accuracy", license="cc-by-4.0",
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


class SemAntoNegMini(SemAntoNeg):
    corpus = "semantoneg_mini"
    metadata = metadata("SemAntoNegMini", corpus, type="PairClassification", main_score="accuracy")


class NevIR(PairwiseTask):
    """Weller et al.: two queries that differ by a negation, each with its document; both must be ranked right.

    mteb has NevIR as a retrieval task under another metric of the same value; as pairs it leaves per-item margins, and it
    needs no hub.
    """

    corpus = "nevir"
    printed = (("truong", "Table 1", "NevIR", "right_rank"), ("weller", "Table 2", "NevIR", "pairwise_accuracy"))
    paper_metric = "right_rank"
    roles = (PromptType.query, PromptType.document)
    metadata = metadata(
        "NevIR", corpus, type="Reranking", main_score="accuracy", license="mit",
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


class NevIRMini(NevIR):
    corpus = "nevir_mini"
    metadata = metadata("NevIRMini", corpus, type="Reranking", main_score="accuracy")


EXCLUIR = {
    "type": "Reranking", "license": "not specified", "reference": "https://github.com/zwh-sdu/ExcluIR",
    "date": ("2023-01-01", "2024-04-01"), "domains": ["Encyclopaedic"], "task_subtypes": ["Article retrieval"],
    "annotations_creators": "human-annotated", "sample_creation": "LM-generated and verified",
    "bibtex_citation": "@article{zhang-etal-2024-excluir, title={{ExcluIR}: Exclusionary Neural Information Retrieval}, "
    "author={Zhang, Wenhao and others}, journal={arXiv:2404.17288}, year={2024}}",
}  # fmt: skip


class ExcluIR(PairwiseTask):
    """Zhang et al., pairs only: is the wanted document nearer to the query than the one it excludes?

    The published right rank looks at the ten nearest of the whole corpus (`ExcluIRCorpus`): another number.
    """

    corpus = "excluir"
    printed = (("truong", "Table 1", "ExcluIR", "right_rank"),)
    reservation = "1,014 of 3,452 pairs, ranked within pairs"
    paper_metric = "right_rank"
    roles = (PromptType.query, PromptType.document)
    metadata = metadata(
        "ExcluIR", corpus, main_score="accuracy",
        description="Rank the wanted document before the one the query excludes (1,014 pairs, no other documents).", **EXCLUIR,
    )  # fmt: skip

    def rows(self, split: str) -> pd.DataFrame:
        table = corpora.load(self.corpus, split)
        return pd.DataFrame({
            "id": table[corpora.describe(self.corpus).key[0]].astype(str), "question": "query", "query": table["query"],
            "cluster": shared_text_clusters(table.pos_doc, table.neg_doc), "positive": table.pos_doc,
            "negatives": [[text] for text in table.neg_doc],
        })  # fmt: skip


class ExcluIRMini(ExcluIR):
    corpus = "excluir_mini"
    metadata = metadata("ExcluIRMini", corpus, type="Reranking", main_score="accuracy")


class NevIRSample(NevIR):
    """The first pairs of a fixed draw: what a sweep over many encoders can afford on a CPU."""

    reservation = f"a sample of {SAMPLE_PAIRS} pairs"
    metadata = sampled(NevIR)

    def rows(self, split: str) -> pd.DataFrame:
        return sample(super().rows(split), SAMPLE_PAIRS)


class ExcluIRSample(ExcluIR):
    """As `NevIRSample`."""

    reservation = f"a sample of {SAMPLE_PAIRS} pairs"
    metadata = sampled(ExcluIR)

    def rows(self, split: str) -> pd.DataFrame:
        return sample(super().rows(split), SAMPLE_PAIRS)


class ExcluIRCorpus(LocalTask, AbsTaskRetrieval):
    """ExcluIR by its official rule, over the whole corpus (`corpus.json`, which is on its authors' drive only).

    Right rank: among the ten nearest documents, the wanted one stands before the excluded one, or stands there alone.
    """

    corpus = "excluir_queries"
    printed = (("truong", "Table 1", "ExcluIR", "right_rank"),)
    paper_metric = "right_rank"
    corpus_file = "excluir/corpus.json"
    metadata = metadata(
        "ExcluIRCorpus", corpus, main_score="right_rank_at_10", **{**EXCLUIR, "type": "Retrieval"},
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
                "corpus.json there, or use the task ExcluIR, which ranks within pairs."
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


TASKS = (SemAntoNeg, SemAntoNegMini, NevIR, NevIRMini, NevIRSample, ExcluIR, ExcluIRMini, ExcluIRSample, ExcluIRCorpus)
