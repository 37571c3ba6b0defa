"""Search in two stages (`models.fusion`): what does the weight of the second encoder gain on negation, and cost in search?"""

from pathlib import Path

import pandas as pd

from nblib import artefacts, corpora
from nblib.benchmarks import catalogue, mteb, scoring
from nblib.errors import StudyError
from nblib.models import fusion, systems

TASKS = [name for name, task in mteb.TASKS.items() if task.category == "Retrieval"]
CHOICES = ["nevir", "excluir"]
WEIGHTS = (0, 0.1, 0.2, 0.3, 0.5, 0.75, 1)  # of the second encoder's cosine, fixed before any was measured


def over_weights(first: str, second: str, run_dir: str | Path) -> pd.DataFrame:
    """The scores of two scored encoders by the weight of the second, on MTEB's retrieval tasks (nDCG@10 of the first 100 that the
    first retrieves) and on NevIR and ExcluIR (pairwise): benchmark (its label), weight, and the change from the first alone that
    `scoring.change` gives (percentage points). A StudyError: a system was not scored, or there are no data."""
    rows = []
    for benchmark in [*TASKS, *CHOICES]:
        if benchmark in TASKS:
            found = candidates(first, second, benchmark, run_dir)
            by_weight = {weight: ndcg(found, benchmark, weight) for weight in WEIGHTS}
        else:
            alone = [scoring.load_predictions(run_dir, name, benchmark) for name in (first, second)]
            by_weight = {weight: fused(*alone, weight) for weight in WEIGHTS}
        changes = [scoring.change(by_weight[0], table) for table in by_weight.values()]
        label = catalogue.get(benchmark).label if benchmark in CHOICES else benchmark
        rows += [{"benchmark": label, "weight": weight, **row} for weight, row in zip(WEIGHTS, changes, strict=True)]
    return pd.DataFrame(rows).drop(columns="before").rename(columns={"after": "value"})


def candidates(first: str, second: str, task: str, run_dir: str | Path) -> pd.DataFrame:
    """The first 100 documents that a scored encoder retrieves for each query of a task, without the query itself: id (of the
    query), document (its id), first, second (cosines). They are kept beside the second's scores, and found again there. A
    StudyError: one was not scored, or with other weights."""
    known = [scoring.about(run_dir, name) for name in (first, second)]
    if not all(known):
        raise StudyError(f"{run_dir} has no scores of {first} and {second}. Score both: nblib score.")
    file = scoring.folder_of(run_dir, second) / f"{task}_after_{first}.parquet"
    made_from = dict(zip(("first", "second"), (one["fingerprint"] for one in known), strict=True))
    if file.is_file() and artefacts.about(file).get("made_from") == made_from:
        return artefacts.read_table(file)
    encoders = [systems.load(scoring.loaded_by(run_dir, name)).encoder for name in (first, second)]
    if [encoder.fingerprint for encoder in encoders] != list(made_from.values()):
        raise StudyError(f"{first} or {second} has other weights than when it was scored. Score both: nblib score.")
    queries, documents = (corpora.load(name, "test") for name in mteb.TASKS[task].corpora[:2])
    texts = (documents.title.fillna("") + " " + documents.text).str.strip()  # as mteb joins them
    found = fusion.search(queries.text, texts, *encoders, weight=0, depth=101)
    found = found.assign(id=queries.id.to_numpy()[found["query"]], document=documents.id.to_numpy()[found.document])
    found = found.loc[found.id != found.document, ["id", "document", "first", "second"]]  # as mteb does for ArguAna
    found = found.groupby("id", sort=False).head(100).reset_index(drop=True)
    artefacts.write_table(found, file, about={"made_from": made_from})
    return found


def ndcg(found: pd.DataFrame, task: str, weight: float) -> pd.DataFrame:
    """nDCG@10 of each query (`correct`, 0 to 1) where candidates are ordered by (1 − weight) · first + weight · second."""
    from pytrec_eval import RelevanceEvaluator  # as mteb computes it

    judged = corpora.load(mteb.TASKS[task].corpora[2], "test")
    relevant = {
        query: dict(zip(part.doc_id, part.relevance.astype(int), strict=True))
        for query, part in judged.groupby("query_id", sort=False)
    }
    scores = found.assign(score=(1 - weight) * found["first"] + weight * found.second)
    run = {query: dict(zip(part.document, part.score, strict=True)) for query, part in scores.groupby("id", sort=False)}
    by_query = RelevanceEvaluator(relevant, {"ndcg_cut.10"}).evaluate(run)
    by_query = {query: values["ndcg_cut_10"] for query, values in by_query.items()}
    return pd.DataFrame({"id": by_query.keys(), "cluster": range(len(by_query)), "correct": by_query.values()})


def fused(first: pd.DataFrame, second: pd.DataFrame, weight: float) -> pd.DataFrame:
    """A choice's predictions by the fused cosines of two encoders, from those of each (items with one negative a question)."""
    both = first.merge(second, on="id", suffixes=("_first", "_second"), validate="1:1")
    margins = [name for name in first if name.startswith("margin_")] or ["margin"]
    right = [(1 - weight) * both[f"{name}_first"] + weight * both[f"{name}_second"] > 0 for name in margins]
    return pd.DataFrame({"id": both.id, "cluster": both.cluster_first, "correct": pd.concat(right, axis=1).all(axis=1)})
