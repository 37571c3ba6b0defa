"""What is asked, and what a file of generations yields."""

from collections import Counter
from dataclasses import asdict

import pandas as pd
import pytest
from support.llm_server import anchors, good

from nblib import paths
from nblib.corpora import triples
from nblib.errors import StudyError
from nblib.results import published
from nblib.synthesis import generations, outcomes, prompts
from nblib.synthesis.client import Server
from nblib.synthesis.generations import Generation

SERVER = Server("toy", sampling={"seed": 7})
EQUAL = '1. "word": House number 1 has a red door, labrev.\n2. "phrase": House number 1 probably has a red door.'


def fill(file, n, answers=None, model="toy"):
    """A file with an answer to each question, a good one if `answers` has none for (number of the anchor, kind)."""
    for question in prompts.questions(anchors(n), model, SERVER.sampling):
        text = good(prompts.prompt(question.kind, question.anchor, question.cues))
        for attempt, answer in enumerate((answers or {}).get((int(question.id[1:]), question.kind), [text])):
            asked = {**asdict(question), "attempt": attempt, "model": model, "sampling": {"seed": 7 + attempt}}
            given = {"answer": answer, "finish_reason": "stop", "answered_by": "toy"}
            generations.append(Generation(**asked, **given, input_tokens=50, output_tokens=30), file)
    return file


@pytest.fixture
def file(tmp_path):
    return tmp_path / "generations.jsonl"


def test_the_prompts_are_the_papers_to_the_letter():
    text = prompts.prompt("hedging", "A {b} c.", {"word": "reportedly", "phrase": "not entirely clear"})
    slots = {"{text}": "A {b} c.", "{word_cue}": "reportedly", "{phrase_cue}": "not entirely clear"}
    for slot, filled in slots.items():
        assert filled in text and slot not in text
        text = text.replace(filled, slot)
    assert text == published.prompts()["hedging"]["template"]


def test_cues_are_taken_from_the_papers_list_evenly_and_always_the_same():
    for hedge, cues in published.hedge_cues().items():
        counts = Counter(prompts.cue(f"a{k}", hedge) for k in range(20_000))
        assert set(counts) == set(cues)
        assert max(counts.values()) < 1.6 * 20_000 / len(cues)
    assert (prompts.cue("a1", "word"), prompts.cue("a1", "phrase")) == ("say", "not exactly sure")  # for ever


def test_a_question_is_another_one_with_another_model_sampling_or_seed():
    def keys(model="toy", temperature=1.0, seed=0):
        return [question.key for question in prompts.questions(anchors(9), model, {"temperature": temperature}, seed)]

    assert len(set(keys())) == 18
    assert not set(keys()) & {*keys(model="other"), *keys(temperature=0.5)}
    assert keys()[::2] == keys(seed=1)[::2], "a negation has no cue"
    assert not set(keys()[1::2]) & set(keys(seed=1)[1::2])


def test_usable_anchors_become_triples(file):
    with_entailment = anchors(3).assign(entailment=[f"Door {k} is red." for k in range(3)])
    file = fill(file, 3, {(0, "negation"): ["no"], (2, "hedging"): ["no", EQUAL]})
    found = outcomes.results(with_entailment, SERVER, file)
    table = outcomes.variants(with_entailment, found)
    assert table.id.tolist() == ["a1", "a2"]
    first = table.iloc[0]
    assert first[["verbal", "phrase"]].str[-7:].tolist() == ["labrev.", "esarhp."]
    assert (first.word_cue, first.phrase_cue, first.entailment) == ("say", "not exactly sure", "Door 1 is red.")
    assert (len(triples.build(table)), len(triples.build(table, "negation"))) == (16, 8)
    with pytest.raises(StudyError, match="8 triples have an empty text"):
        triples.build(outcomes.variants(anchors(3), found), "negation")


def test_yields_count_every_question_by_its_reason(file):
    answers = {(1, "hedging"): [EQUAL], **{(number, "negation"): ["no"] for number in (2, 3, 4)}}
    found = outcomes.results(anchors(10), SERVER, fill(file, 8, answers))
    assert found.attempts.sum() == 16
    table = outcomes.yields(found)
    assert table.asked.eq(10).all() and table.share.eq(10 * table.n).all()
    said = "; ".join(" ".join(map(str, row)) for row in table[["kind", "reason", "n"]].to_numpy())
    assert said == (
        "negation usable 5; negation no labels 3; negation not answered 2; hedging usable 8; hedging not answered 2; "
        "anchor usable 4; anchor a question without a usable answer 5; anchor a hedge that equals a negation 1"
    )


def test_a_recording_is_read_again_without_a_server(file):
    fill(file, 3, {(2, "negation"): ["no", "no"]})
    asked, server = outcomes.load_recording(file)
    pd.testing.assert_frame_equal(asked, anchors(3))
    assert (server.model, server.sampling) == ("toy", {"seed": 7})
    assert outcomes.results(asked, server, file).attempts.tolist() == [1, 1, 1, 1, 2, 1]


def test_a_recording_that_can_not_be_used_ends_with_a_sentence(file):
    with pytest.raises(StudyError, match="it has: none"):
        outcomes.load_recording(file)
    fill(file, 1, {(0, "negation"): ["no"]})
    found = outcomes.results(anchors(1), SERVER, file)
    assert outcomes.yields(found).query("reason == 'usable'").n.tolist() == [0, 1, 0]
    with pytest.raises(StudyError, match=r"None of 1 anchors has all six variants.*no labels \(1\)"):
        outcomes.variants(anchors(1), found)
    with pytest.raises(StudyError, match="no answer of other"):
        outcomes.results(anchors(1), Server("other"), file)
    fill(file, 1, model="other")
    with pytest.raises(StudyError, match=r"it has: other .*; toy"):
        outcomes.load_recording(file)


def test_the_committed_recordings_are_read_as_on_record():
    folder = paths.DATA / "synthesis" / "generations"
    reasons = {
        name: Counter(prompts.parse(generation).reason for generation in generations.read(folder / f"{name}.jsonl"))
        for name in ("claude", "gemma-3-270m-q4")
    }
    assert reasons["claude"] == {"": 120}
    assert reasons["gemma-3-270m-q4"] == {"truncated": 7, "more than a sentence: phrase": 1, "several texts": 1}
