"""Reading free-form answers: a shape that leaves no doubt is read, whatever leaves one is refused with a reason."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nblib.corpora.authored import HEDGES, NEGATIONS
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
    '{n}. "{label}": {text}',
    "{Label} - {text}",
    "{Label} negator: “{text}”",
    '- "{label}": "{text}"',
    "**{n}. {Label} negation:** {text}",
    "{n}. `{label}`: `{text}`",
    "> {n}. {Label} (negative word): {text}",
]


def read(text, finish_reason="stop", labels=NEGATIONS):
    return parsing.parse(text, labels, finish_reason, ANCHOR, PROMPT)


def written(line='{n}. "{label}": {text}', join="\n", order=NEGATIONS, **texts):
    """The sentences in some shape: `line` has the slots n, label, Label and text."""
    return join.join(
        line.format(n=n, label=label, Label=label.title(), text=texts.get(label, SENTENCES[label]))
        for n, label in enumerate(order, start=1)
    )


@pytest.mark.parametrize("line", LINES)
def test_a_labelled_answer_is_read_in_whatever_order_with_chatter_around(line):
    for order in (NEGATIONS, NEGATIONS[::-1]):
        assert read("Modified text:\n" + written(line, order=order)).sentences == SENTENCES
    for end in ("\n\nLet me know if you need more.", "\n```", "\n"):
        assert read("Sure! Here are they:\n\n" + written(line) + end).sentences == SENTENCES


def test_numbers_alone_are_the_prompts_numbers():
    assert read(written("{n}. {text}")).sentences == SENTENCES
    for other in (written("- {text}"), written("{n}. {text}") + "\n5. And.", "2. No B.\n1. No A.\n3. No C.\n4. D."):
        assert read(other).reason == "no labels"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<think>", "</think>\n\n"),
        ("", "</think>"),
        ("<Thinking>", "</Thinking>"),
        ("[THINK]", "[/THINK]"),
        ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ],
)
def test_reasoning_is_no_part_of_an_answer(before, after):
    thought = before + written(verbal="Perhaps like this.") + "\nWait.\n" * parsing.LONGEST
    assert read(f"{thought}{after}{written()}<|im_end|>").sentences == SENTENCES
    assert read(f"{thought}{after}").reason == "empty"
    assert not before or read(before + written(), "").reason == "reasoning alone"


PAIRS = [{"label": label.title(), "sentence": text} for label, text in SENTENCES.items()]


@pytest.mark.parametrize(
    "value",
    [
        SENTENCES,
        {"text": ANCHOR, "modified": {f"{label}_negation": text for label, text in SENTENCES.items()}},
        {label: {"text": text} for label, text in SENTENCES.items()},
        PAIRS,
        {"n": 4, "all": [{"id": 1, **dict([*pair.items()][::-1])} for pair in PAIRS]},
        [{label: text} for label, text in SENTENCES.items()],
    ],
)
def test_json_with_a_text_for_each_label_is_read(value):
    text = json.dumps(value, indent=1)
    for whole in (text, json.dumps(value), f"Here:\n```json\n{text}\n```\nAnything else?"):
        assert read(whole).sentences == SENTENCES
    assert read(f"{text}\n{text}").reason, "one after another"


@pytest.mark.parametrize(("kind", "labels"), prompts.LABELS.items())
def test_the_papers_own_examples_are_read(kind, labels):
    printed = published.prompts()[kind]["example"]["output"]
    sentences = read(printed, labels=labels).sentences
    assert "\n".join(f'{n}. "{label}": {text}' for n, (label, text) in enumerate(sentences.items(), 1)) == printed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (" \n\t", "empty"),
        ("x " * 5000, "too long"),
        ("The plane is not flying.", "no labels"),
        (written(order=NEGATIONS[:3]), "missing: lexical"),
        (written() + '\n5. "verbal": Another plane is not flying.', "repeated: verbal"),
        (written(verbal=ANCHOR.lower().rstrip(".")), "unchanged: verbal"),
        (written(verbal=SENTENCES["lexical"]), "one sentence under two labels"),
        (written(verbal="Negate the text"), "repeats the prompt"),
        (f"{PROMPT}\n{written()}", "several texts"),
        (written(verbal="The plane is not flying.\nIt is not in the sky."), "more than a sentence: verbal"),
        (written("**{Label}**\n{text}\n"), "more than a sentence: verbal"),
        (written(join=" "), "missing: absolute, affixal, lexical"),
        ("1. It isn't.\n2. No it.\n3. Unit.\n4. The lexical one is here.", "labels in doubt"),
        ("By antonym:\n1. It's gone.\n\nBy verb:\n2. It isn't.\n\n3. Unit.\n\n4. No it.", "more than a sentence"),
        (",\n".join(f'"{label}": "{text}"' for label, text in SENTENCES.items()), "no sentence: verbal"),  # JSON
        (json.dumps({**SENTENCES, "verbal": "One is not.\nTwo is not."}), "more than a sentence: verbal"),
        (json.dumps({**SENTENCES, "verbal": {"negator": "not", "text": "It is not."}}), "no sentence: verbal"),
        (json.dumps(SENTENCES)[:-1] + ', "Verbal": "It is not."}', "more than a sentence: verbal"),
        (json.dumps(SENTENCES) + "\nverbal: Another plane is not flying.", "several texts"),
    ],
)
def test_what_leaves_a_doubt_is_refused_with_its_reason(text, reason):
    parsed = read(text)
    assert (parsed.reason, parsed.sentences) == (reason, {})


@pytest.mark.parametrize(
    "text",
    [
        "N/A",
        "This cannot be negated with an affix.",
        "is flying -> is not flying in it",
        "The plane is not flying. (verb negated)",
        "The plane is \x07 not flying.",
        '"The plane is not flying.',
    ],
)
def test_what_is_no_sentence_is_refused(text):
    assert read(written(verbal=text)).reason == "no sentence: verbal"


def test_an_answer_that_did_not_end_by_itself_is_refused_however_good_it_looks():
    reasons = dict.fromkeys(["length", "MAX_TOKENS"], "truncated")
    reasons |= {"content_filter": "filtered", "refusal": "refused", "": ""}
    assert {end: read(written(), end).reason for end in reasons} == reasons


def test_a_sentence_keeps_what_is_its_own():
    texts = {"verbal": '"No," he said, "it is not so."', "absolute": "I cannot swim, and never could."}
    texts |= {"affixal": "I am unable to swim.", "lexical": "I only sink."}
    assert read(written(**texts)).sentences == texts
    bold = {"verbal": "The plane is **not** flying, *at* all.", "absolute": "***Nothing*** is 2 * 3 * 4."}
    sentences = read(written(**bold)).sentences
    assert (sentences["verbal"], sentences["absolute"]) == ("The plane is not flying, at all.", "Nothing is 2 * 3 * 4.")


PIECES = st.sampled_from([*NEGATIONS, *HEDGES, '"', ":", "\n", "1.", "2. ", "3) ", "**", "- ", "'", ",", "N/A", " "])


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES | st.text(max_size=8), max_size=60).map("".join), st.sampled_from([NEGATIONS, HEDGES]))
def test_any_text_is_read_or_refused_and_never_raises(text, labels):
    parsed = read(text, labels=labels)
    assert bool(parsed.reason) != bool(parsed.sentences)
    assert not parsed.sentences or tuple(parsed.sentences) == labels


WORD = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=9)
INNER = WORD | st.sampled_from(["isn't", "word:", '"verbal"', "1.", "no", "-", "(lexical)", "–", "phrase", "verbal:"])
TEXT = st.lists(INNER, min_size=3, max_size=9).map(lambda words: "The " + " ".join(words) + " end.")


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXT, min_size=4, max_size=4, unique=True), st.sampled_from(LINES), st.permutations(NEGATIONS))
def test_a_sentence_is_under_the_label_that_the_answer_gives_it_or_nowhere(texts, line, order):
    sentences = dict(zip(NEGATIONS, texts, strict=True))
    parsed = read(written(line, order=order, **sentences) + "\n\nAnything else?")
    assert parsed.reason or parsed.sentences == sentences
