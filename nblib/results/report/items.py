"""The items of every benchmark with each system's answers, for the page that compares two systems item by item.

A page that is opened from the file system may load scripts but not read files. So each table is a script with one call, which
the page loads when it is asked for: `items/index.js` (which systems answered which benchmark), `items/<task>/items.js` (ids,
what they can be filtered by, texts), `items/<task>/<number>.js` (the answers of a system).
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from nblib import corpora, paths
from nblib.corpora.nevir import EDITS
from nblib.results import published_mteb

FOLDER = "items"
PROFILE = "negation_profile"  # of the held-out anchors of HedgeTriple
FILTERS = ("negation", "hedge", "edit", "part", "subject")  # columns of predictions
RIGHT = 0.5  # from this share of repetitions on an answer counts as right


def write(run: Path, site: Path) -> list[dict[str, object]]:
    """Write the scripts of a run's predictions into a site; return the index: task, label, n, kind, systems.

    Texts are those of authored corpora alone. Official texts are not ours to show: `nblib items` prints them. Tasks of general
    ability aren't on the site, which would be half as large again: their predictions are in the archive.
    """
    general = set(published_mteb.load().task)
    found: dict[str, dict[str, Path]] = {}
    for file in sorted((run / "scores").glob("*/*_test.parquet")):
        task = file.stem.removesuffix("_test")
        whole = task.removesuffix("_sample")  # a sample's items are among those of the whole
        if whole in general:
            continue
        if task == whole or not file.with_name(f"{whole}_test.parquet").is_file():
            found.setdefault(whole, {})[file.parent.name.replace("__", "/")] = file
    index = [_write_task(task, files, site / FOLDER / task) for task, files in sorted(found.items())]
    if index:
        script(site / FOLDER / "index.js", "listTasks", index)
    return index


def _write_task(task: str, files: dict[str, Path], folder: Path) -> dict[str, object]:
    tables = {name: pd.read_parquet(file).astype({"id": str}).set_index("id") for name, file in files.items()}
    ids = max(tables.values(), key=len).index
    first = next(iter(tables.values())).reindex(ids)
    about = {
        "ids": list(ids), "gold": _numbers(first["score"], 1) if "score" in first else None,
        "filters": {name: column.tolist() for name, column in _filters(task, first)}, **_texts(task, ids),
    }  # fmt: skip
    script(folder / "items.js", "addItems", [task, about])
    for number, table in enumerate(tables.values()):
        script(folder / f"{number}.js", "addAnswers", [task, number, _answers(table.reindex(ids))])
    kind = "similarity" if "similarity" in first else "choice" if "correct" in first else "value"
    return {"task": task, "label": _label(task), "n": len(ids), "kind": kind, "systems": list(tables)}


def _label(task: str) -> str:
    corpus = corpora.entries().get(task.removeprefix("llm_"))
    label = "Negation profile (held-out anchors)" if task == PROFILE else corpus.label if corpus else task
    return f"{label}, asked as a prompt" if task.startswith("llm_") else label


def _filters(task: str, table: pd.DataFrame) -> Iterator[tuple[str, pd.Series]]:
    if task.removeprefix("llm_") == "nevir":
        table = table.assign(edit=table.index.str.rpartition("-").get_level_values(2).map(EDITS))
    for name in FILTERS:
        if name in table and table[name].nunique() > 1:
            yield name, table[name].fillna("")


def _answers(table: pd.DataFrame) -> dict[str, object]:
    """Right (1, 0, blank where not asked), and a number for each item: the margin, the similarity, or the share right."""
    right = None
    if "correct" in table:
        share = table.correct.astype(float)
        right = "".join(" " if one != one else str(int(one >= RIGHT)) for one in share)
    number = next((name for name in ("margin", "similarity", "value") if name in table), None)
    if number is None and table.correct.nunique() > 2:
        number = "correct"
    return {"right": right, "number": number, "values": _numbers(table[number], 3) if number else None}


def _numbers(column: pd.Series, digits: int) -> list[float | int | None]:
    rounded = column.astype(float).round(digits)
    return [None if one != one else int(one) if one == int(one) else one for one in rounded]


def _texts(task: str, ids: pd.Index) -> dict[str, object]:
    """The texts of authored items, each row of the corpus once, and each item's row; nothing for any other."""
    corpus = corpora.entries().get("hedgetriple" if task == PROFILE else task.removeprefix("llm_"))
    if corpus is None or corpus.official:
        return {}
    table = corpora.load(corpus.name).astype(dict.fromkeys(corpus.key, str)).set_index(corpus.key[0])
    keys = [key if key in table.index else key.split("/")[0] for key in ids]  # of several items of one row: row/item
    rows = table.loc[table.index.isin(keys), [name for name, kind in corpus.columns.items() if kind in ("str", "list")
                                              and name not in corpus.key]]  # fmt: skip
    place = {key: number for number, key in enumerate(rows.index)}
    return {"columns": list(rows), "texts": rows.to_numpy().tolist(), "rows": [place.get(key) for key in keys]}


def script(file: Path, function: str, arguments: Sequence[object]) -> None:
    """Write a script that calls a function of the page with these arguments."""
    said = json.dumps(arguments, ensure_ascii=True, separators=(",", ":"))
    paths.writable_folder(file.parent)
    file.write_text(f"{function}(...{said});\n", encoding="utf-8")
