"""Tables that people bring: whatever they were saved as, they are read as they stand, or refused with file, place and remedy."""

import gzip
import json

import pandas as pd
import pytest

from nblib.corpora import files
from nblib.errors import StudyError

ROWS = [
    {"id": "007", "text": "None", "note": "nan"},
    {"id": "1e5", "text": "Käse – „NA“,\nnull; a\u2028b", "note": None},
]


def as_csv(separator=",", end="\n"):
    return pd.DataFrame(ROWS).to_csv(index=False, sep=separator, lineterminator=end)


LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
READ = {
    "plain.csv": as_csv().encode(),
    "semicolons.csv": as_csv(";").encode("utf-8-sig"),
    "tabs.csv": as_csv("\t").encode(),
    "a.tsv": as_csv("\t", "\r\n").encode(),
    "spaces.CSV": as_csv().replace("id,text", '" Id ",TEXT').replace(",", ", ", 4).encode(),
    "blank lines.csv": b"\r\n" + as_csv(end="\r\n\r\n").encode() + b",,\r\n",
    "numbered.csv": pd.DataFrame(ROWS).to_csv().encode(),
    "packed.csv.gz": gzip.compress(as_csv().encode()),
    "a.jsonl": LINES.replace("\n", "\r\n \r\n").encode("utf-8-sig"),
    "packed.jsonl": gzip.compress(LINES.encode()),
    "array.json": json.dumps(ROWS, indent=1).encode(),
    "lines.json": LINES.encode(),
}


@pytest.mark.parametrize("name", [*READ, "a.parquet"])
def test_a_table_is_read_as_it_stands(name, tmp_path):
    file = tmp_path / name
    file.write_bytes(READ[name]) if name in READ else pd.DataFrame(ROWS).to_parquet(file)
    table = files.table(file, ("id", "text"), ("note", "absent"))
    found = table.astype(object).where(table.notna(), None).to_dict("records")
    assert found == [{**row, "absent": None} for row in ROWS]


HEADER, LINE = "id,text\n", '{"id": "a", "text": "b"}\n'
REFUSED = {
    "cp1252.csv": ((HEADER + "a,b\nb,Käse").encode("cp1252"), "line 3 isn't UTF-8"),
    "utf16.csv": ((HEADER + "a,b").encode("utf-16"), "line 1 isn't UTF-8"),
    "utf16.jsonl": (LINE.encode("utf-16-le"), "line 1 isn't UTF-8"),
    "empty.csv": (b"", "no rows, and needs rows with id, text"),
    "header.csv": (HEADER.encode(), "no rows, and needs rows with id, text"),
    "no header.csv": (b"a,b\nc,d", "columns a, b, and needs rows with id, text"),
    "missing column.csv": (b"id,txt\na,b", "columns id, txt, and needs rows with text"),
    "two columns.csv": (b"id,text,Text\na,b,c", "line 1: two columns have one name \\(id, text, text\\)"),
    "missing cell.csv": (b"id,text\n\na", "line 3: 1 cells in the columns id, text"),
    "further cell.csv": (b"id,text\na,Yes, he did", "line 2: 3 cells in the columns id, text"),
    "empty cell.csv": (b'id,text\n"a","b\nc"\nb, ', "line 4: text must be a text"),
    "open quote.csv": (b'id,text\na,b\nb,"c\nc,d\n', "line 3 can't be read"),
    "text after a quote.csv": (b'id,text\na,"Yes," he said', "line 2 can't be read"),
    "repeated.csv": (b"id,text\na,b\n007,c\n007,d", r"line 4 repeats a key \(id: '007'\)"),
    "number.jsonl": (LINE.encode() + b'{"id": 7, "text": "b"}', "line 2: id must be a text .*in quotes.* is 7"),
    "list.jsonl": (b'{"id": "a", "text": ["b"]}', r"line 1: text must be a text .* is \['b'\]"),
    "null.jsonl": (b'\n{"id": "a", "text": null}', "line 2: text must be a text .* is None"),
    "nan.json": (b'[{"id": "a", "text": NaN}]', "row 1: text must be a text .* is nan"),
    "number in a note.jsonl": (b'{"id": "a", "text": "b", "note": 1}', "line 1: note must be a text .* or nothing"),
    "missing key.jsonl": (LINE.encode() + b'{"id": "b"}', "line 2: text must be a text .* is missing"),
    "no object.jsonl": (LINE.encode() + b'"a"', "line 2 can't be read"),
    "cut.jsonl": (LINE.encode() + b'{"id": "b', "line 2 can't be read"),
    "nested.json": (b"[" * 100_000, "can't be read"),
    "half.jsonl.gz": (gzip.compress(LINE.encode())[:-9], "can't be read"),
    "no table.parquet": (b"PAR1", "can't be read"),
    "a.xlsx": (b"PK", "must be .csv"),
    "renamed.csv": (b"PK\3\4\x14\0\6\0", "line 1 isn't UTF-8"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_used_is_refused_with_its_place(name, tmp_path):
    content, message = REFUSED[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StudyError, match=message) as error:
        files.table(tmp_path / name, ("id", "text"), ("note",))
    assert str(tmp_path / name) in str(error.value) and "\n" not in str(error.value)


def test_a_folder_or_nothing_is_no_file_and_a_number_in_parquet_no_text(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    for name in ("folder.csv", "none.csv"):
        with pytest.raises(StudyError, match=f"no file .*{name}"):
            files.read(tmp_path / name)
    pd.DataFrame({"id": [7], "text": "a"}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(StudyError, match=r"a.parquet, row 1: id must be a text .* is 7"):
        files.table(tmp_path / "a.parquet", ("id", "text"))
