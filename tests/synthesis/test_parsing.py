"""Reading free-form answers: a shape that leaves no doubt is read, whatever leaves one is refused with a reason."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nblib.corpora.hedgetriple import HEDGES, NEGATIONS
from nblib.results import published
from nblib.synthesis import parsing, prompts

ANCHOR = "A yellow and black plane is flying in the clouds and blue sky."
SENTENCES = {
    "verbal": "The yellow plane isn't flying in the clouds and blue sky.",
    "absolute": "There is no yellow and black plane flying in the clouds: none at all.",
    "affixal": 'The "non-flying" plane is not in the clouds and blue sky.',
    "lexical": "The yellow plane is grounded - for good.",
}
PROMPT = prompts.prompt("negation", ANCHOR, {})
LINES = [
    '{n}. "{label}": {text}', "{n}) {Label}: {text}", "({n}) {Label} negation: {text}", "{Label} - {text}",
    "{Label} negator: “{text}”", '- "{label}": "{text}"', "* **{label}**: {text}", "• **{Label}:** {text}",
    "**{n}. {Label} negation:** {text}", "{n}. **“{label}”**: {text}", "{n}. [{label}]: {text}", "{n}. `{label}`: `{text}`",
    "> {n}. {label}: {text}", "{n}. {Label} (negative word): {text}",
]  # fmt: skip


def read(text, finish_reason="stop", labels=NEGATIONS):
    return parsing.parse(text, labels, finish_reason=finish_reason, anchor=ANCHOR, prompt=PROMPT)


def written(line='{n}. "{label}": {text}', join="\n", order=NEGATIONS, **texts):
    """The sentences in some shape: `line` has the slots n, label, Label and text."""
    return join.join(
        line.format(n=n, label=label, Label=label.title(), text=texts.get(label, SENTENCES[label]))
        for n, label in enumerate(order, start=1)
    )


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("chatter", ["", "Sure! Here are the modified texts:\n\n", "Modified text:\n"])
def test_a_labelled_answer_is_read_in_whatever_order(line, chatter):
    for order in (NEGATIONS, NEGATIONS[::-1]):
        assert read(chatter + written(line, order=order)).sentences == SENTENCES


@pytest.mark.parametrize("end", ["\n\nLet me know if you need more.", "\n\n---\nI hope this helps!", "\n```", "\n"])
def test_what_comes_after_a_blank_line_is_chatter(end):
    assert read(written() + end).sentences == SENTENCES


def test_numbers_alone_are_the_prompts_numbers():
    assert read(written("{n}. {text}")).sentences == SENTENCES
    for other in (
        written("- {text}"),
        written("{n}. {text}") + "\n5. And more.",
        "2. No B.\n1. No A.\n3. No C.\n4. No D.",
    ):
        assert read(other).reason == "no labels"


def test_an_object_is_read_alone_or_fenced():
    assert read(json.dumps(SENTENCES)).sentences == SENTENCES
    assert read(f"Here:\n```json\n{json.dumps(SENTENCES, indent=2)}\n```\nMore?").sentences == SENTENCES
    named = {"text": ANCHOR, **{f"{label}_negation": text for label, text in SENTENCES.items()}}
    assert read(json.dumps(named)).sentences == SENTENCES
    hedges = {"word": "It is reportedly so.", "word_cue": "reportedly", "phrase": "It is not clear that it is so."}
    assert read(json.dumps(hedges), labels=HEDGES).sentences["word"] == hedges["word"]


def test_reasoning_is_no_part_of_an_answer():
    thought = written(verbal="Perhaps like this.") + "\nWait.\n" * parsing.LONGEST
    assert read(f"<think>{thought}</think>\n\n{written()}").sentences == SENTENCES
    assert read(f"{thought}</think>{written()}").sentences == SENTENCES, "some servers send the end alone"
    assert read(f"<think>{thought}</think>").reason == "empty"


@pytest.mark.parametrize("kind", prompts.KINDS)
def test_the_papers_own_examples_are_read(kind):
    printed = published.prompts()[kind]["example"]["output"]
    parsed = read(printed, labels=prompts.KINDS[kind])
    assert [f'{n}. "{label}": {text}' for n, (label, text) in enumerate(parsed.sentences.items(), 1)] == printed.split(
        "\n"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (" \n\t", "empty"),
        ("x " * 5000, "too long"),
        ("The plane is not flying.", "no labels"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        (written(order=NEGATIONS[:3]), "missing: lexical"),
        (written() + '\n5. "verbal": Another plane is not flying.', "repeated: verbal"),
        (written(verbal=ANCHOR.lower().rstrip(".")), "unchanged: verbal"),
        (written(verbal=SENTENCES["lexical"]), "one sentence under two labels"),
        (written(verbal="Negate the text"), "repeats the prompt"),
        (f"{PROMPT}\n{written()}", "several texts"),
        (written(verbal="The plane is not flying.\nIt is not in the sky."), "more than a sentence: verbal"),
        (written() + "\nI hope this helps!", "more than a sentence: lexical"),
        (written("**{Label}**\n{text}\n"), "more than a sentence: verbal"),
        (written(join=" "), "missing: absolute, affixal, lexical"),
        ("1. It isn't.\n2. No it.\n3. Unit.\n4. The lexical one is here.", "labels in doubt"),
        ("By antonym:\n1. It's gone.\n\nBy verb:\n2. It isn't.\n\n3. Unit.\n\n4. No it.", "more than a sentence"),
        (json.dumps({**SENTENCES, "verbal": ["a", "b"]}), "more than a sentence"),
        (json.dumps({"verbal": "It is not."}), "missing: absolute, affixal, lexical"),
        (",\n".join(f'"{label}": "{text}"' for label, text in SENTENCES.items()), "no sentence: verbal"),
        *((written(verbal=text), "no sentence: verbal") for text in [
            "", "…", "N/A", "(not applicable)", "This cannot be negated with an affix.", "I'm sorry, but I can't do that.",
            "There is no affixal negation for this text.", "[The plane is not flying.]", "is flying -> is not flying in it",
            "Here the verb is negated with not:", "The plane is not flying. (verb negated)", "not flying",
            "Verbal negation: The plane is not flying.", "The plane is \x07 not flying.", "The plane is \ud800 not flying.",
            '"The plane is not flying.',
        ]),
    ],
)  # fmt: skip
def test_what_leaves_a_doubt_is_refused_with_its_reason(text, reason):
    parsed = read(text)
    assert (parsed.reason, parsed.sentences) == (reason, {})


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "truncated"), ("content_filter", "filtered"), ("refusal", "refusal")]
)
def test_an_answer_that_did_not_end_by_itself_is_refused_however_good_it_looks(finish, reason):
    assert read(written(), finish).reason == reason


def test_a_sentence_keeps_what_is_its_own():
    texts = {"verbal": '"No," he said, "it is not so."', "absolute": "I cannot swim, and never could.",
             "affixal": "I am unable to swim.", "lexical": "I only sink."}  # fmt: skip
    assert read(written(**texts)).sentences == texts
    bold = read(
        written(verbal="The plane is **not** flying, *at* all.", absolute="***Nothing*** is 2 * 3 * 4.")
    ).sentences
    assert (bold["verbal"], bold["absolute"]) == ("The plane is not flying, at all.", "Nothing is 2 * 3 * 4.")


def test_a_multi_word_cue_is_no_word():
    assert (
        read("1. Single-word: It may be so.\n\n2. Multi-word: It is not clear.", labels=HEDGES).reason
        == "missing: phrase"
    )


PIECES = st.sampled_from(
    [*NEGATIONS, *HEDGES, '"', ":", "\n", "1.", "2. ", "3) ", "**", "- ", "{", "}", "\\", "'", ",", "N/A", " "]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES | st.text(max_size=8), max_size=60).map("".join), st.sampled_from([NEGATIONS, HEDGES]))
def test_any_text_is_read_or_refused_and_never_raises(text, labels):
    parsed = read(text, labels=labels)
    assert bool(parsed.reason) != bool(parsed.sentences)
    assert not parsed.sentences or tuple(parsed.sentences) == labels


@pytest.mark.parametrize("head", ["", "1.", '"verbal": ', "{"])
@pytest.mark.parametrize("piece", ["*", " ", '"', "1.", "- ", "verbal ", "\n", "{", "(", "there is no ", "(a ", "_["])
def test_no_text_takes_long(head, piece):
    started = time.process_time()
    read((head + piece * parsing.LONGEST)[: parsing.LONGEST])
    assert time.process_time() - started < 2


WORD = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=9)
INNER = WORD | st.sampled_from(
    ["isn't", "word:", '"verbal"', "1.", "no", "-", "(lexical)", "–", "phrase", "verbal:", "'tis"]
)
TEXT = st.lists(INNER, min_size=3, max_size=9).map(lambda words: "The " + " ".join(words) + " end.")


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXT, min_size=4, max_size=4, unique=True), st.sampled_from(LINES), st.permutations(NEGATIONS))
def test_a_sentence_is_under_the_label_that_the_answer_gives_it_or_nowhere(texts, line, order):
    sentences = dict(zip(NEGATIONS, texts, strict=True))
    parsed = read(written(line, order=order, **sentences) + "\n\nAnything else?")
    assert parsed.reason or parsed.sentences == sentences
