"""Bad input of drawn content: names, parameters, files that people write, answers of models, hostile markup."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

from campaign import Kind, Step
from support import faults
from support.hostile_html import PIECES as MARKUP
from support.hostile_html import active

from nblib import artefacts, corpora, paths, shipped
from nblib.analysis.gsm8k import arithmetic, labels
from nblib.corpora import registry
from nblib.results import measurements, published
from nblib.results.report import markup
from nblib.synthesis import generations, prompts
from nblib.workflow import run_notebook

PIECES = [
    "a", "hedge", "..", ".", "/", "\\", "\0", "\n", " ", "é", "😀", "\ud800", "%00", "~", "x" * 90, "-", "CON", "\x1b[0m",
]  # fmt: skip
YAML = [
    "a", "seed", ": ", "1", "-1", "[", "]", "{", "}", ", ", "\n", "!!timestamp x", "2001-99-99", "!!int", "1e5", ".nan", "null",
    "&a", "*a", "'", '"', "#", "true", "~", "!!python/object/apply:os.system", "\t", "? ", "|",
]  # fmt: skip
SUMS = [
    "3", "1/2", "3 1/2", "½", "1½", "\n", "=", "+", "-", "*", "/", "×", "÷", "(", ")", "<<", ">>", "%", "$", "####", " eggs",
    " and ", ".", ",", "1,000", "^", "of", "x", "\\frac{1}{2}", "0", "9" * 40, "{", "}", "e", "−",
]  # fmt: skip
ANSWERS = [
    "1. ", "2. ", '"verbal"', "verbal", ": ", "It is not red.", "\n", "```", "```json\n", "{", "}", '"', "absolute", "affixal",
    "lexical", "**", "- ", "Text: ", "\0", "\ud800", "é", "It is red.", "[", "]", ",", "\u2028", "x" * 500,
]  # fmt: skip


def drawn(pieces: list[str], chance: random.Random, most: int = 8) -> str:
    return "".join(chance.choices(pieces, k=chance.randrange(most)))


def spoilt(content: bytes, chance: random.Random) -> bytes:
    """With up to two bytes replaced by up to two others, or cut."""
    place = chance.randrange(len(content))
    if chance.random() < 0.2:
        return content[:place]
    other = bytes([chance.choice([*b'\0\xff,"\nx:-[{&*!', chance.randrange(256)])]) * chance.randrange(3)
    return content[:place] + other + content[place + chance.randrange(3) :]


def refusal(read: Callable[[], object]) -> tuple[str, str]:
    """Of input there is no one right reading: it is taken, refused in a sentence, or raw."""
    found, said = faults.outcome(lambda: (read(), True)[1], True, Path("x"))
    if found == "UNCLEAR" and said and "\n" not in said:
        found = "named"
    return {"harmless": "whole"}.get(found, found), said


def names(folder: Path) -> Step:
    def step(chance: random.Random) -> tuple[str, str]:
        name, inside = drawn(PIECES, chance, 5), []
        found, said = refusal(lambda: inside.append(paths.inside(folder, name)))
        escaped = inside and (inside[0].parent != folder.resolve() or inside[0].name != name)
        return ("SILENT", repr(name)) if escaped else (found, said)

    return step


def texts(pieces: list[str], read: Callable[[str], object], folder: Path) -> Step:
    """Each is a text that is drawn from pieces."""

    def step(chance: random.Random) -> tuple[str, str]:
        text = drawn(pieces, chance, 12)
        found, said = refusal(lambda: read(text))
        return found, f"{text!r}: {said}"

    return step


def files(name: str, content: bytes, read: Callable[[Path], object], folder: Path) -> Step:
    """Each is a sound file, spoilt."""
    file = folder / name

    def step(chance: random.Random) -> tuple[str, str]:
        file.write_bytes(spoilt(content, chance))
        found, said = refusal(lambda: read(file))
        return found, said

    return step


def data(source: str, read: Callable[[], object], folder: Path) -> Step:
    """Each is a file of the project's data, spoilt."""
    target = folder / source
    target.parent.mkdir(parents=True)

    def of_copy(_: Path) -> object:
        with mock.patch.object(paths, "DATA", folder):
            return read()

    return files(source, (paths.DATA / source).read_bytes(), of_copy, folder)


def parameters(folder: Path) -> Step:
    notebooks = [run_notebook.find_notebook(f"{number:02}") for number in range(1, 14)]
    known = {notebook: run_notebook.check_parameters(notebook, {}) for notebook in notebooks}
    values = [
        None,
        True,
        -1,
        0,
        1.5,
        float("nan"),
        float("inf"),
        "",
        "x",
        [],
        [None],
        ["x"],
        [[1]],
        {},
        {"a": 1},
        10**400,
    ]

    def step(chance: random.Random) -> tuple[str, str]:
        notebook = chance.choice(notebooks)
        name, value = chance.choice([*known[notebook], "no such", ""]), chance.choice(values)
        found, said = refusal(lambda: run_notebook.check_parameters(notebook, {name: value}))
        return found, f"{notebook.stem}: {name} = {value!r}"[:200] + said

    return step


def gsm8k(text: str) -> None:
    arithmetic.wrong(text)
    arithmetic.calculations(text)
    arithmetic.without_answer(text)


def html(folder: Path) -> Step:
    gates = [markup.clean, markup.markdown, markup.inline, markup.code, markup.terminal, markup.breakable]

    def step(chance: random.Random) -> tuple[str, str]:
        text, gate = drawn(MARKUP, chance, 12), chance.choice(gates)
        shown: list[str] = []
        found, said = refusal(lambda: shown.append(str(gate(text))))
        survived = [part for page in shown for part in active(page)]
        return ("SILENT", f"{text!r}: {survived}") if survived else (found, said)

    return step


ANSWER = generations.Generation("k", 0, "a1", "It rains.", "negation", {}, "toy", {}, "1. x", "stop", "toy", 1, None)


def kept_answers(folder: Path) -> Step:
    """Lines of kept answers, spoilt: each that is read is as it was."""
    file = folder / "generations.jsonl"
    with generations.Store(file) as store:
        for number in range(3):
            store.append(replace(ANSWER, key=f"k{number}"))
    content, sound = file.read_bytes(), list(generations.read(file))

    def step(chance: random.Random) -> tuple[str, str]:
        file.write_bytes(spoilt(content, chance))
        read: list = []
        found, said = refusal(lambda: read.extend(generations.read(file)))
        return ("SILENT", file.read_text(errors="replace")) if any(one not in sound for one in read) else (found, said)

    return step


LABELS = b"id,solution,label,minute\na1,0123456789ab,undecided,2026-01-01T00:00Z\n"
RESULTS = f"{','.join(measurements.COLUMNS)}\ns,b,m,d,3,1.5,,,toy,,\n".encode()
LINES = "".join(json.dumps({"id": str(k), "sentence": "It is red."}) + "\n" for k in range(5)).encode()
SEALED = json.dumps({"a": 1, "checksum": artefacts._checksum({"a": 1})}).encode()

KINDS = [
    Kind("input", "names", 3000, names),
    Kind("input", "answers of a model", 2500, partial(
        texts, ANSWERS, lambda text: prompts.parse(replace(ANSWER, answer=text)))),
    Kind("input", "GSM8K solutions", 2500, partial(texts, SUMS, gsm8k)),
    Kind("input", "parameters in YAML", 2000, partial(
        texts, YAML, lambda text: run_notebook.read_parameters(text, [["seed", text]]))),
    Kind("input", "parameters of a notebook", 1000, parameters),
    Kind("input", "markup", 1500, html),
    Kind("input", "JSON files", 1500, partial(files, "x.json", SEALED, artefacts.read_json)),
    Kind("input", "kept answers", 1500, kept_answers),
    Kind("input", "corpora in JSON lines", 1000, partial(files, "x.jsonl", LINES, registry.read_jsonl)),
    Kind("input", "labels", 700, partial(files, "gsm8k_me_1.csv", LABELS, labels.read)),
    Kind("input", "tables of results", 500, partial(
        files, "07_x.csv", RESULTS, lambda file: measurements.validate(measurements.read(file), file.name))),
    Kind("input", "published numbers", 700, partial(
        data, "published/weller.csv", lambda: published.load("weller"))),
    Kind("input", "registries", 150, partial(
        data, "registries/corpora.yaml", lambda: shipped.read_registry("corpora.yaml", corpora.registry.Corpus))),
]  # fmt: skip
