"""Tables in files that people bring or edit: read as they stand, with the place of each row, so that an error can name it."""

import csv
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from nblib import paths
from nblib.errors import StudyError, readable

REMEDY = "Correct it there, or restore the file."
_Filled = Annotated[str, Field(pattern=r"\S")]
TYPES = {  # of a column: what its cells must be, in Python and in words
    "str": (_Filled, "a text (not empty, in JSON in quotes)"),
    "text": (str, "a text (in JSON in quotes)"),
    "optional": (str | None, "a text (in JSON in quotes) or nothing"),
    "int": (int, "a whole number"),
    "float": (FiniteFloat, "a number"),
    "list": (Annotated[list[_Filled], Field(min_length=1)], "a list of texts"),
    "numbers": (Annotated[list[FiniteFloat], Field(min_length=1)], "a list of numbers"),
}


def table(
    path: str | Path, texts: Sequence[str], optional: Sequence[str] = (), key: Sequence[str] = ("id",)
) -> pd.DataFrame:
    """Columns of texts by place of the row, and optional ones, missing where empty. StudyError: see `read` and `check`."""
    columns = {**dict.fromkeys(texts, "str"), **dict.fromkeys(optional, "optional")}
    return check(read(path), columns, key, str(path)).replace("", None)


def read(path: str | Path) -> dict[str, dict]:
    """The rows of a file by place ("line 3"): CSV or TSV, whose cells are texts; JSON lines, a JSON array, or Parquet.

    Text files may be gzipped, and empty lines are skipped. StudyError: no such file, another kind, not UTF-8, or damaged.
    """
    file = paths.resolve(path)
    if not file.is_file():
        raise StudyError(f"There is no file {file}.")
    match Path(file.name.lower().removesuffix(".gz")).suffix:
        case ".csv" | ".tsv":
            return _cells(_text(file), file)
        case ".jsonl" | ".ndjson" | ".json":
            return objects(_text(file), file)
        case ".parquet":
            from pyarrow import parquet

            with readable(file, REMEDY):
                rows = parquet.read_table(file, page_checksum_verification=True).to_pylist()
            return {f"row {number}": row for number, row in enumerate(rows, start=1)}
    raise StudyError(f"{file} must be .csv, .tsv, .jsonl, .json or .parquet. Save it so (in a spreadsheet: CSV UTF-8).")


def _text(file: Path) -> str:
    raw = file.read_bytes()
    with readable(file, REMEDY):
        raw = gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
    try:
        return raw.replace(b"\0", b"\xff").decode("utf-8-sig")  # of UTF-16, every other byte is 0
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise StudyError(f"{file}, line {line} isn't UTF-8. Save it as UTF-8 (in a spreadsheet: CSV UTF-8).") from error


def objects(text: str, where: str | Path) -> dict[str, dict]:
    """The rows of JSON lines or of a JSON array by place. StudyError: other text, from `where`."""
    if text.lstrip().startswith("["):
        with readable(where, REMEDY):
            return {f"row {number}": {**row} for number, row in enumerate(json.loads(text), start=1)}
    rows = {}
    for number, line in enumerate(text.split("\n"), start=1):  # splitlines would split at U+2028 in a text
        if line.strip():
            with readable(f"{where}, line {number}", REMEDY):
                rows[f"line {number}"] = {**json.loads(line)}
    return rows


def _cells(text: str, file: Path) -> dict[str, dict]:
    separator = max(",;\t", key=next(filter(str.strip, text.split("\n")), "").count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
    rows, names, end = {}, [], 0
    remedy = f"Put a text with {separator!r}, a line break or a quote (doubled) in quotes, and keep empty cells."
    try:
        for cells in reader:
            place, end = f"line {end + 1}", reader.line_num  # a text may have several lines
            if not names:
                names = [name.strip().lower() for name in cells]
                if len(set(names)) < len(names):
                    raise StudyError(
                        f"{file}, {place}: two columns have one name ({', '.join(names)}). Rename or remove one."
                    )
            elif any(map(str.strip, cells)):
                rows[place] = dict(zip(names, cells, strict=False))
                if not len(rows[place]) == len(cells) == len(names):
                    raise StudyError(f"{file}, {place}: {len(cells)} cells in the columns {', '.join(names)}. {remedy}")
    except csv.Error as error:
        raise StudyError(f"{file}, line {end + 1} can't be read ({error}). {remedy}") from error
    return rows


def check(rows: Mapping[str, dict], columns: Mapping[str, str], key: Sequence[str], where: str) -> pd.DataFrame:
    """Some columns (name → one of `TYPES`) of rows, by their place.

    Raises:
        StudyError: no rows, a missing column, a cell of another type, or a key of an earlier row; names `where` they are from.
    """
    there = {name for row in rows.values() for name in row}
    if missing := [name for name, kind in columns.items() if kind != "optional" and name not in there]:
        has = f"the columns {', '.join(sorted(there))}"[:200] if rows else "no rows"
        raise StudyError(f"{where} has {has}, and needs rows with {', '.join(missing)}.")
    for name, kind in columns.items():
        form, words = TYPES[kind]
        try:
            TypeAdapter(list[form]).validate_python([row.get(name) for row in rows.values()], strict=True)
        except ValidationError as error:
            place, row = list(rows.items())[error.errors()[0]["loc"][0]]
            found = repr(row[name])[:60] if name in row else "missing"
            raise StudyError(f"{where}, {place}: {name} must be {words}, and is {found}. {REMEDY}") from error
    checked = pd.DataFrame(list(rows.values()), columns=list(columns), index=list(rows))
    if (repeated := checked.duplicated(list(key))).any():
        names, place = ", ".join(key), repeated.idxmax()
        values = ", ".join(map(repr, checked.loc[place, list(key)]))
        raise StudyError(f"{where}, {place} repeats a key ({names}: {values}). Give each row its own, or remove one.")
    return checked
