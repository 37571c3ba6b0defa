"""Search in two stages on MTEB's retrieval tasks: what does a tuned encoder's share in the score cost (`models.fusion`)?"""

from pathlib import Path

import pandas as pd

from nblib import artefacts, corpora
from nblib.benchmarks import mteb, scoring
from nblib.models import fusion
from nblib.models.systems import BiEncoder

TASKS = [name for name, task in mteb.TASKS.items() if task.category == "Retrieval"]
WEIGHTS = (0, 0.1, 0.2, 0.3, 0.5, 0.75, 1)  # of the second encoder's cosine, fixed before any was measured


def candidates(first: BiEncoder, second: BiEncoder, task: str, run_dir: str | Path) -> pd.DataFrame:
    """The first 100 documents that `first` retrieves for each query of a task, without the query itself: id (of the query),
    document (its id), first, second (cosines). They are kept beside the second's scores, and found again there."""
    file = _file(first.name, second.name, task, run_dir)
    made_from = {"first": first.fingerprint, "second": second.fingerprint}
    if file.is_file() and artefacts.about(file).get("made_from") == made_from:
        return artefacts.read_table(file)
    queries, documents = (corpora.load(name, "test") for name in mteb.TASKS[task].corpora[:2])
    texts = (documents.title.fillna("") + " " + documents.text).str.strip()  # as mteb joins them
    found = fusion.search(queries.text, texts, first.encoder, second.encoder, weight=0, depth=101)
    found = found.assign(id=queries.id.to_numpy()[found["query"]], document=documents.id.to_numpy()[found.document])
    found = found.loc[found.id != found.document, ["id", "document", "first", "second"]]  # as mteb does for ArguAna
    found = found.groupby("id", sort=False).head(100).reset_index(drop=True)
    artefacts.write_table(found, file, about={"made_from": made_from})
    return found


def load(first: str, second: str, task: str, run_dir: str | Path) -> pd.DataFrame:
    """The candidates that were kept; empty where there are none."""
    file = _file(first, second, task, run_dir)
    return artefacts.read_table(file) if file.is_file() else pd.DataFrame()


def _file(first: str, second: str, task: str, run_dir: str | Path) -> Path:
    return scoring.folder_of(run_dir, second) / f"{task}_after_{first}.parquet"


def ndcg(found: pd.DataFrame, task: str, weight: float) -> pd.Series:
    """nDCG@10 of each query (0 to 1) where candidates are ordered by (1 − weight) · first + weight · second."""
    from pytrec_eval import RelevanceEvaluator  # as mteb computes it

    judged = corpora.load(mteb.TASKS[task].corpora[2], "test")
    relevant = {
        query: dict(zip(part.doc_id, part.relevance.astype(int), strict=True))
        for query, part in judged.groupby("query_id", sort=False)
    }
    scores = found.assign(score=(1 - weight) * found["first"] + weight * found.second)
    run = {query: dict(zip(part.document, part.score, strict=True)) for query, part in scores.groupby("id", sort=False)}
    by_query = RelevanceEvaluator(relevant, {"ndcg_cut.10"}).evaluate(run)
    return pd.Series({query: values["ndcg_cut_10"] for query, values in by_query.items()}, dtype=float)
