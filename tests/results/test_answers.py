"""The declared mapping: it names only what is printed, and every picture what is shown."""

import pytest
import yaml

from nblib.results import ResultsError, answers, comparison, published
from nblib.results.answers import Answer, Picture

WANTED = comparison.expected()
EXHIBITS = set(published.exhibits()[["paper", "exhibit"]].itertuples(index=False, name=None))
SHOWN = set(WANTED[WANTED.metric == comparison.SHOWN][["paper", "exhibit"]].itertuples(index=False, name=None))
STAND_INS = yaml.safe_load(answers.FILE.read_text(encoding="utf-8"))["systems"]


@pytest.fixture
def given(tmp_path, monkeypatch):
    """A mapping of one's own in place of the study's."""

    def give(content):
        file = tmp_path / "answers.yaml"
        file.write_text(yaml.safe_dump({"cells": [], "systems": [], "pictures": []} | content), encoding="utf-8")
        monkeypatch.setattr(answers, "FILE", file)
        for cached in (answers._file, answers.cells, answers.pictures):
            cached.cache_clear()

    yield give
    for cached in (answers._file, answers.cells, answers.pictures):
        cached.cache_clear()


@pytest.mark.parametrize("answer", answers.cells(), ids=lambda one: f"{one.paper} {one.benchmark} {one.metric}".strip())
def test_an_answer_is_to_something_printed(answer):
    fits = (WANTED.paper == answer.paper) & (WANTED.benchmark == answer.benchmark) & (WANTED.metric == answer.metric)
    printed = set(WANTED[fits].exhibit)
    assert printed, "no paper prints it"
    assert set(answer.exhibits) <= printed


def test_a_printed_cell_has_one_answer_at_most():
    cells = [
        (answer.paper, exhibit, answer.benchmark, answer.metric)
        for answer in answers.cells()
        for exhibit in answer.exhibits or set(WANTED[WANTED.paper == answer.paper].exhibit)
    ]
    assert len(cells) == len(set(cells))


@pytest.mark.parametrize("entry", STAND_INS, ids=lambda entry: f"{entry['paper']} {entry['printed'][0]}")
def test_a_stand_in_is_for_a_printed_system(entry):
    for exhibit in entry.get("exhibits", [None]):
        fits = (WANTED.paper == entry["paper"]) & (WANTED.exhibit.eq(exhibit) if exhibit else True)
        assert set(entry["printed"]) <= set(WANTED[fits].system)
    assert entry["stand_ins"], "nothing stands in"
    assert not set(entry["stand_ins"]) & set(entry["printed"])


@pytest.mark.parametrize("picture", answers.pictures(), ids=lambda one: f"{one.paper} {one.exhibit}")
def test_a_picture_is_of_an_exhibit_and_says_how_nearly(picture):
    assert (picture.paper, picture.exhibit) in EXHIBITS
    assert picture.measured in comparison.MEASURED[:-1]
    assert picture.measured == "full" or picture.note, "what differs from the paper's isn't said"
    assert picture.file.startswith(f"{picture.notebook}_")


def test_every_exhibit_without_numbers_has_one_picture_and_no_other_has():
    assert sorted((one.paper, one.exhibit) for one in answers.pictures()) == sorted(SHOWN)


def test_a_cell_is_answered_by_its_exhibits_entry_or_by_none():
    table1 = answers.of("cao", "Table 1", "STSB", "accuracy")
    assert (table1.measured, table1.n, table1.suffix) == ("accuracy", 550, "")
    assert answers.of("cao", "Table 2", "STSB", "accuracy") is None
    assert answers.of("truong", "Table 1", "MTEB-STS", "mteb_category_average") is None
    tuned = answers.of("cao", "Table 3", "SemAntoNeg", "accuracy_w_anto_500")
    assert tuned.suffix.endswith("K = 500)") and tuned.n == 2152


def test_truongs_cannot_is_answered_by_pearsons_r_and_says_why():
    for exhibit in ("Table 1", "Table 2", "Table 3"):
        answer = answers.of("truong", exhibit, "Cannot", "spearman")
        assert answer.measured == "pearson" and "fits Pearson" in answer.protocol


def test_excluirs_protocol_is_called_unstated():
    assert "doesn't state its protocol" in answers.of("truong", "Table 1", "ExcluIR", "right_rank").note


def test_a_printed_system_is_sought_under_its_own_name_first():
    assert answers.candidates("truong", "Table 1", "MPNet") == [("all-mpnet-base-v2", False)]
    assert answers.candidates("truong", "Figure 1", "H-MPNet") == [
        ("H-MPNet", False), ("hedge-mpnet", True), ("hedge-minilm", True),
    ]  # fmt: skip
    assert answers.candidates("weller", "Table 2", "TF-IDF") == [("TF-IDF", False)]


def test_a_system_of_two_tables_has_the_stand_in_of_each():
    encoder, llm = (answers.candidates("truong", table, "Only negation")[1:] for table in ("Table 2", "Table 3"))
    assert encoder == [("all-MiniLM-L6-v2 + only-negation", True)]
    assert llm == [("hedge-gemma-negation", True)]


def test_the_papers_that_print_a_benchmark_are_found_by_its_official_items():
    assert {one.paper for one in answers.of_benchmark("NevIR", "nevir test")} == {"truong", "weller"}
    assert [one.metric for one in answers.of_benchmark("NevIR", "nevir test") if not one.compared] == []
    assert answers.of_benchmark("STSB", "stsb test") == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"cells": [{"paper": "cao", "colour": "red"}]}, r"an entry of answers can't be read .*colour.*'paper': 'cao'"),
        ({"cells": [{"paper": "cao"}]}, r"an entry of answers can't be read .*missing"),
    ],
)
def test_an_answer_that_cannot_be_read_is_refused_with_its_file(given, content, message):
    given(content)
    with pytest.raises(ResultsError, match=f"answers.yaml: {message}"):
        answers.cells()


def test_a_picture_that_cannot_be_read_is_refused_with_its_file(given):
    given({"pictures": [{"paper": "cao", "exhibit": "Figure 1"}]})
    with pytest.raises(ResultsError, match=r"answers.yaml: an entry of pictures can't be read .*missing"):
        answers.pictures()


def test_a_list_in_the_file_is_a_tuple_and_what_is_absent_has_its_default(given):
    given(
        {"cells": [{"paper": "a", "benchmark": "b", "metric": "c", "label": "d", "measured": "e", "exhibits": ["f"]}]}
    )
    assert answers.cells() == (Answer("a", "b", "c", "d", "e", exhibits=("f",)),)
    assert answers.pictures() == ()
    assert Picture("a", "b", "01", "c", "full").note == ""
