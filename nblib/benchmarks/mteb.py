"""General ability by MTEB's own tasks, as mteb computes them: on local files (`score`), or where a hub is (`score_hub`).

mteb is imported where it is used: who plans runs can do without its seconds.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from tqdm.auto import tqdm

from nblib import artefacts, corpora, paths, stats
from nblib.benchmarks import scoring
from nblib.benchmarks.base import shared_text_clusters
from nblib.errors import StudyError, one_of
from nblib.models import embeddings
from nblib.models.encoders import Encoder
from nblib.models.systems import BiEncoder, System

if TYPE_CHECKING:
    from mteb.abstasks import AbsTask

BY_ITEM = ("STS", "Classification", "Retrieval")  # the categories whose items are compared between systems
SCORE_FILE = "general.csv"
SCORE_COLUMNS = "task category metric value ci_low ci_high n fingerprint".split()
# Truong §4.2.2: the 15 tasks of LLM2Vec and SummEval
MTEB_LITE = """
    Banking77Classification EmotionClassification MassiveIntentClassification BiorxivClusteringS2S MedrxivClusteringS2S
    TwentyNewsgroupsClustering SprintDuplicateQuestions SciDocsRR StackOverflowDupQuestions ArguAna NFCorpus SciFact STS17
    SICK-R STSBenchmark SummEval""".split()


@dataclass(frozen=True)
class MtebTask:
    """A task of MTEB(eng, v1) whose data are at hand."""

    category: str  # mteb's type of it
    corpora: tuple[str, ...]  # what it reads of `data/registries/corpora.yaml`; the first has its items
    subset: str | None = None  # the English part of a task in several languages, by mteb's name
    caveat: str = ""  # why a score may differ from one on MTEB's own copy of the data


EDITED = "the authors' release, from which MTEB's copy differs in small edits of the texts and in one annotation"
LOWERED = "42,200 of the 51,534 pairs are lower-cased copies of MTEB's; all are read lower-cased"
TASKS = {
    **{f"STS{year}": MtebTask("STS", (f"sts{year}",)) for year in range(12, 17)},
    "STS17": MtebTask("STS", ("sts17",), "en-en"),
    "STSBenchmark": MtebTask("STS", ("stsb",)),
    "SICK-R": MtebTask("STS", ("sick_r",)),
    "BIOSSES": MtebTask("STS", ("biosses",), caveat=EDITED),
    "AmazonCounterfactualClassification": MtebTask("Classification", ("amazon_counterfactual",), "en"),
    "Banking77Classification": MtebTask("Classification", ("banking77",)),
    "EmotionClassification": MtebTask("Classification", ("emotion",)),
    "MassiveIntentClassification": MtebTask("Classification", ("massive_intent",), "en"),
    "MassiveScenarioClassification": MtebTask("Classification", ("massive_scenario",), "en"),
    "TweetSentimentExtractionClassification": MtebTask("Classification", ("tweet_sentiment",)),
    "SummEval": MtebTask("Summarization", ("summeval",), caveat="the texts are token-spaced copies of MTEB's"),
    "TwitterURLCorpus": MtebTask("PairClassification", ("twitter_url",), caveat=LOWERED),
    **{
        name: MtebTask("Retrieval", tuple(f"{name.lower()}_{part}" for part in ("queries", "corpus", "qrels")))
        for name in ("NFCorpus", "SciFact", "ArguAna")
    },
}


def names(choice: str) -> list[str]:
    """The tasks of a choice: none; `lite`, those of Truong's 16 at hand; `short`, those that need no corpus; or `all`."""
    choices = {
        "none": [],
        "lite": [name for name in TASKS if name in MTEB_LITE],
        "short": [name for name, task in TASKS.items() if task.category in ("STS", "Classification")],
        "all": list(TASKS),
    }
    return choices[one_of(choice, choices, "choice of general tasks")]


def corpora_of(choice: str) -> list[str]:
    """The corpora that the tasks of a choice read."""
    return [corpus for name in names(choice) for corpus in TASKS[name].corpora]


def score(system: System, choice: str, run_dir: str | Path) -> pd.DataFrame:
    """Measure general ability, by task of the choice: `SCORE_COLUMNS` (percent). A task that these weights have finished in
    this run is not run again. A StudyError: no such choice, no embeddings, or no data."""
    if not isinstance(system, BiEncoder):
        raise StudyError(f"{system.name} ({system.architecture}) has no embeddings: MTEB's tasks are for encoders.")
    scoring.make_room(system, run_dir)
    scoring.describe(system, run_dir)
    folder, wanted, table = scoring.folder_of(run_dir, system.name), names(choice), load(run_dir, system.name)
    missing = [name for name in wanted if name not in set(table.task)]
    for name in (progress := tqdm(missing, desc=f"{system.name}: general ability", unit="task", disable=not missing)):
        progress.set_postfix_str(name)
        row = {**_score_task(MtebEncoder(system.encoder), name, folder), "fingerprint": system.fingerprint}
        table = pd.DataFrame([*table.to_dict("records"), row], columns=SCORE_COLUMNS)
        table = table.sort_values("task", key=lambda column: column.map(list(TASKS).index), ignore_index=True)
        # Task by task, so that a stopped run goes on where it was
        artefacts.write_table(table, folder / SCORE_FILE)
    return table[table.task.isin(wanted)].reset_index(drop=True)


def _score_task(encoder: "MtebEncoder", name: str, folder: Path) -> dict[str, Any]:
    task, category = local_task(name), TASKS[name].category
    # "always": score and predictions by item then belong together
    options = {"overwrite_strategy": "always", "show_progress_bar": False}
    _evaluate(encoder, task, folder, prediction_folder=None if category == "Retrieval" else folder, **options)
    artefacts.write_table(task.predictions, folder / f"{name}_test.parquet")
    metric = task.metadata.main_score.removeprefix("cosine_")
    return {"task": name, "category": category, "metric": metric, **measure(task.predictions)}


def measure(predictions: pd.DataFrame) -> dict[str, float]:
    """`scoring.measure`; of predictions with a label, 0 or 1, the average precision."""
    if "label" not in predictions:
        return scoring.measure(predictions)
    columns = predictions.label, predictions.similarity
    drawn = stats.cluster_replicates(_average_precision, *columns, clusters=predictions.cluster)
    low, high = stats.percentile_interval(100 * drawn)
    return {"value": 100 * _average_precision(*columns), "ci_low": low, "ci_high": high, "n": len(predictions)}


def _average_precision(label: Sequence[int], similarity: Sequence[float]) -> float:
    from sklearn.metrics import average_precision_score  # a second to import

    return average_precision_score(label, similarity)


def _evaluate(encoder: "MtebEncoder", tasks: Any, folder: Path, **options: Any) -> list:
    import mteb

    options["encode_kwargs"] = {"show_progress_bar": False}
    cache = mteb.ResultCache(paths.writable_folder(folder) / "mteb")
    return mteb.evaluate(encoder, tasks, cache=cache, co2_tracker=False, **options).task_results


def load(run_dir: str | Path, system: str) -> pd.DataFrame:
    """What `score` measured of a system with the weights that were scored last; empty where it wasn't."""
    file = scoring.folder_of(run_dir, system) / SCORE_FILE
    if not file.is_file():
        return pd.DataFrame(columns=SCORE_COLUMNS)
    table = artefacts.read_table(file).reindex(columns=SCORE_COLUMNS)
    scored = scoring.about(run_dir, system).get("fingerprint")
    table["fingerprint"] = table.fingerprint.astype(object).fillna(scored)
    return table[table.fingerprint == scored].reset_index(drop=True)


def systems(run_dir: str | Path) -> list[str]:
    """The systems whose general ability was measured in a run."""
    return sorted(file.parent.name for file in (paths.resolve(run_dir) / "scores").glob(f"*/{SCORE_FILE}"))


def hub_tasks(benchmark: str) -> list["AbsTask"]:
    """mteb's own tasks of MTEB-lite (16) or MTEB(eng, v1) (56); data not yet loaded."""
    import mteb

    if one_of(benchmark, ("MTEB-lite", "MTEB(eng, v1)"), "benchmark of the hub") == "MTEB-lite":
        return list(mteb.get_tasks(tasks=MTEB_LITE, languages=["eng"], exclusive_language_filter=True))
    return list(mteb.get_benchmark(benchmark).tasks)


def score_hub(system: BiEncoder, benchmark: str, run_dir: str | Path) -> pd.DataFrame:
    """Evaluate on MTEB-lite or MTEB(eng, v1) from the hub; results that are there are not run again: task, category, value
    (percent, the task's main score)."""
    tasks = hub_tasks(benchmark)
    done = _evaluate(MtebEncoder(system.encoder), tasks, scoring.folder_of(run_dir, system.name))
    categories = {task.metadata.name: task.metadata.type for task in tasks}
    rows = [(one.task_name, categories[one.task_name], 100 * one.get_score()) for one in done]
    return pd.DataFrame(rows, columns=["task", "category", "value"])


class MtebEncoder:
    """An encoder for `mteb.evaluate`, with the cache of embeddings and the prompts of the roles. Its revision, by which mteb
    finds stored scores, is the fingerprint: weights trained anew under an old name are another model."""

    def __init__(self, encoder: Encoder) -> None:
        from mteb.models.model_meta import ModelMeta, ScoringFunction

        self.encoder, self.model = encoder, encoder.model
        about = {
            "name": f"nblib/{encoder.name}",
            "revision": encoder.fingerprint,
            "max_tokens": self.model.max_seq_length,
        }
        about["use_instructions"] = any(self.model.prompts.values())
        about["similarity_fn_name"] = ScoringFunction(self.model.similarity_fn_name)
        self.mteb_model_meta = ModelMeta.create_empty(about)
        self.similarity, self.similarity_pairwise = self.model.similarity, self.model.similarity_pairwise

    def encode(self, inputs: Iterable[Mapping], *, prompt_type: Any = None, **_: Any) -> np.ndarray:
        """Embeddings, float32 [texts, dimension]; symmetric tasks give no prompt type."""
        # Some corpora on the hub have empty documents
        texts = [text if text.strip() else "-" for batch in inputs for text in batch["text"]]
        role = "symmetric" if prompt_type is None else prompt_type.value
        return embeddings.encode(self.encoder, texts, role=role)


def local_task(name: str) -> "AbsTask":
    """mteb's task on local rows; a StudyError where there are none.

    After an evaluation it has `predictions`, whose `measure` is mteb's main score: id, cluster, and score and similarity (STS),
    label and similarity (pairs), or correct (of classification the share right of its ten classifiers, of retrieval nDCG@10,
    of a summarised article its term of mteb's mean).
    """
    import mteb

    entry = TASKS[one_of(name, TASKS, "task of MTEB with local data")]
    task = mteb.get_task(name, eval_splits=["test"], hf_subsets=[entry.subset] if entry.subset else None)
    splits = [split for corpus in entry.corpora for split in corpora.describe(corpus).splits.values()]
    hashes = "".join(split.sha256 for split in splits)
    source = {"path": f"nblib/{entry.corpora[0]}", "revision": hashlib.sha256(hashes.encode()).hexdigest()}
    # The papers report these versions: no warning that there are newer ones
    task.metadata = task.metadata.model_copy(update={"dataset": source, "superseded_by": None})

    def load_data(**_: Any) -> None:
        if not task.data_loaded:
            rows, task.items = _read(entry.category, entry.corpora)
            task.dataset, task.data_loaded = {task.hf_subsets[0]: rows}, True

    def keep(raw: Any, *_: Any, **__: Any) -> dict:
        """Called by mteb with what it makes the main score of."""
        task.predictions = _by_item(entry.category, task.items, raw)
        return {}

    task.load_data = load_data
    setattr(task, "task_specific_scores" if entry.category == "Retrieval" else "_save_task_predictions", keep)
    return task


def _read(category: str, names: Sequence[str]) -> tuple[dict, pd.DataFrame]:
    """What mteb reads, by split, and the test items: id, cluster, and gold score or label."""
    from datasets import Dataset

    dataset = partial(Dataset.from_pandas, preserve_index=False)
    if category == "Retrieval":
        queries, documents, judged = (corpora.load(name, "test") for name in names)
        by_query = judged.groupby("query_id", sort=False)
        rows = {
            "corpus": dataset(documents[["id", "title", "text"]]),
            "queries": dataset(queries[["id", "text"]]),
            "relevant_docs": {key: dict(zip(part.doc_id, part.relevance, strict=True)) for key, part in by_query},
            "top_ranked": None,
        }
        return {"test": rows}, queries[["id"]].assign(cluster=pd.factorize(queries.text)[0])
    # STS12 to STS16 are read in the tokenised, lower-cased form that MTEB's copy has
    test = corpora.load(names[0], "test").rename(columns=lambda column: column.removesuffix("_tok"))
    test["id"] = test[corpora.describe(names[0]).key].astype(str).agg("/".join, axis=1)
    if category == "Classification":
        rows = {split: dataset(corpora.load(names[0], split)[["text", "label"]]) for split in ("train", "test")}
        return rows, test[["id", "label"]].assign(cluster=pd.factorize(test.text)[0])
    if category == "Summarization":
        test = test[test.relevance.map(set).map(len) > 1]  # mteb leaves out the others
        return {"test": dataset(test.drop(columns="split"))}, test[["id"]].assign(cluster=range(len(test)))
    gold, column = ("score", "score") if category == "STS" else ("label", "labels")
    pairs = test[["sentence1", "sentence2"]]
    if category == "PairClassification":
        pairs = pairs.map(str.lower)  # most come lower-cased
    items = test[["id", gold]].assign(cluster=shared_text_clusters(pairs.sentence1, pairs.sentence2))
    return {"test": dataset(pairs.assign(**{column: test[gold]}))}, items


def _by_item(category: str, items: pd.DataFrame, raw: Any) -> pd.DataFrame:
    """Predictions of what mteb makes a category's main score of."""
    if category == "STS":
        return items.assign(similarity=np.asarray(raw["cosine_scores"]))
    if category == "PairClassification":  # mteb takes the best of its similarities and distances
        tables = [items.assign(similarity=np.negative(raw[name]) if "dist" in name else raw[name]) for name in raw]
        return max(tables, key=lambda table: _average_precision(table.label, table.similarity))
    if category == "Classification":
        correct = (np.asarray(raw) == items.label.to_numpy()).mean(axis=0)
    elif category == "Summarization":
        # mteb's known fault is kept: a term is the mean of ρ and its p value (its issue 1156)
        correct = [np.mean(term) for term in map(spearmanr, raw["human_scores"], raw["cosine_scores"])]
    else:
        correct = items.id.map({query: scores["ndcg_cut_10"] for query, scores in raw.items()})
    return items[["id", "cluster"]].assign(correct=correct).dropna(subset="correct")
