"""Reading free-form answers: any shape that leaves no doubt is read, whatever leaves one is refused with a reason."""

import json

import pytest
from hypothesis import assume, given, settings
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


def read(text, finish_reason="stop"):
    return parsing.parse(text, NEGATIONS, finish_reason=finish_reason, anchor=ANCHOR, prompt=PROMPT)


def written(line, join="\n", sentences=SENTENCES, order=NEGATIONS):
    """The sentences in some shape: `line` has the slots n, label, Label and text."""
    return join.join(
        line.format(n=n, label=label, Label=label.title(), text=sentences[label])
        for n, label in enumerate(order, start=1)
    )


LINES = [
    '{n}. "{label}": {text}', "{n}. {label}: {text}", "{n}) {Label}: {text}", "({n}) {Label} negation: {text}",
    "{label}: {text}", "{Label} - {text}", "{Label} negator: “{text}”", '- "{label}": "{text}"',
    "* **{label}**: {text}", "• **{Label}:** {text}", "**{n}. {Label} negation:** {text}",
    "{n}. **“{label}”**: {text}", "{n}. *{label}* - {text}", "{n}. [{label}]: {text}", "{n}. `{label}`: `{text}`",
    "> {n}. {label}: {text}", "{n}. {Label} (negative word): {text}",
]  # fmt: skip


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("chatter", ["", "Sure! Here are the modified texts:\n\n"])
def test_a_labelled_answer_is_read_in_whatever_order(line, chatter):
    for order in (NEGATIONS, NEGATIONS[::-1]):
        assert read(chatter + written(line, order=order)).sentences == SENTENCES


@pytest.mark.parametrize("end", ["\n\nLet me know if you need more.", "\n\n---\nI hope this helps!", "\n```", "\n"])
def test_what_comes_after_a_blank_line_is_chatter(end):
    assert read(written('{n}. "{label}": {text}') + end).sentences == SENTENCES


def test_numbers_alone_are_the_prompts_numbers():
    assert read(written("{n}. {text}")).sentences == SENTENCES
    assert read(written("**{n}.** {text}", "\n\n")).reason == "no labels"
    assert read(written("- {text}")).reason == "no labels"
    assert read(written("{n}. {text}") + "\n5. And more.").reason == "no labels"
    assert read("2. B is not.\n1. A is not.\n3. C is not.\n4. D is not.").reason == "no labels"


JSON = {
    "plain": json.dumps(SENTENCES),
    "indented": json.dumps(SENTENCES, indent=2),
    "fenced": f"Here you are:\n```json\n{json.dumps(SENTENCES, indent=2)}\n```\nAnything else?",
    "within": json.dumps({"modified_text": SENTENCES}),
    "named at length": json.dumps({f"{label}_negation": text for label, text in SENTENCES.items()}),
    "with more": json.dumps({"text": ANCHOR, **SENTENCES}),
}


@pytest.mark.parametrize("shape", JSON)
def test_an_object_is_read(shape):
    assert read(JSON[shape]).sentences == SENTENCES


def test_the_papers_own_examples_are_read_and_so_they_are_after_a_repeated_prompt():
    printed = published.prompts()
    cues = {"word": "reportedly", "phrase": "not entirely clear"}
    for kind, labels in prompts.KINDS.items():
        prompt, output = prompts.prompt(kind, ANCHOR, cues), printed[kind]["example"]["output"]
        for text in (output, f"{prompt}\n{output}"):
            parsed = parsing.parse(text, labels, anchor=ANCHOR, prompt=prompt)
            assert list(parsed.sentences) == list(labels)
            assert [f'{n}. "{k}": {v}' for n, (k, v) in enumerate(parsed.sentences.items(), 1)] == output.split("\n")


def changed(**texts):
    return written('{n}. "{label}": {text}', sentences={**SENTENCES, **texts})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("x " * 5000, "too long"),
        ("The plane is not flying.", "no labels"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        ("As an AI language model, I do not negate.", "refusal"),
        (written('{n}. "{label}": {text}', order=NEGATIONS[:3]), "missing: lexical"),
        (changed(affixal="N/A"), "missing: affixal"),
        (changed(affixal="(not applicable)"), "missing: affixal"),
        (changed(affixal="This cannot be negated with an affix."), "missing: affixal"),
        (changed(affixal="There is no affixal negation for this text."), "missing: affixal"),
        (changed(affixal=""), "missing: affixal"),
        (changed(lexical="…"), "missing: lexical"),
        (written('{n}. "{label}": {text}') + '\n5. "verbal": Another plane is not flying.', "repeated: verbal"),
        (PROMPT, "no labels"),
        (PROMPT.removesuffix("\nModified text:"), "labels within: verbal"),
        (changed(verbal=ANCHOR), "unchanged: verbal"),
        (changed(verbal=ANCHOR.lower().rstrip(".")), "unchanged: verbal"),
        (changed(verbal=SENTENCES["lexical"]), "one sentence under two labels"),
        (changed(verbal="[The plane is not flying.]"), "no plain sentence: verbal"),
        (changed(verbal="is flying -> is not flying in the sky"), "no plain sentence: verbal"),
        (changed(verbal="Here the verb is negated with not:"), "no plain sentence: verbal"),
        (changed(verbal='"not" - The plane is not flying.'), "no plain sentence: verbal"),
        (changed(verbal="The plane is not flying. (verb negated)"), "no plain sentence: verbal"),
        (changed(verbal="not flying"), "too short: verbal"),
        (changed(verbal="Verbal negation: The plane is not flying."), "labels within: verbal"),
        (changed(verbal="I'm sorry, but I can't do that."), "refusal"),
        (changed(verbal="The plane is \x07 not flying."), "unprintable: verbal"),
        (changed(verbal="The plane is \ud800 not flying."), "unprintable: verbal"),
        (changed(verbal="The plane is not flying.\nIt is not in the sky."), "more than a sentence: verbal"),
        (written('{n}. "{label}": {text}') + "\nI hope this helps!", "more than a sentence: lexical"),
        (written("**{Label}**\n{text}\n"), "more than a sentence: verbal"),
        (written("### {n}. {Label} negation\n\n{text}\n"), "missing: verbal"),
        (written('{n}. "{label}": {text}', " "), "several labels in a line"),
        ("1. It isn't.\n2. No it.\n3. Unit.\n4. The lexical one is here.", "labels in doubt"),
        ("By antonym:\n1. It's gone.\n\nBy verb:\n2. It isn't.\n\n3. Unit.\n\n4. No it.", "more than a sentence"),
        ("1. Single-word cue: It may be so.\n2. Multi-word cue: It is not clear whether it is so.", "no labels"),
        ("1. It isn't.\nReally.\n2. No it.\n3. Unit.\n4. Gone it is.", "more than a sentence"),
        (json.dumps({**SENTENCES, "verbal": ["a", "b"]}), "no sentence: verbal"),
        (json.dumps({**SENTENCES, "verbal": "One.\nTwo."}), "more than a sentence: verbal"),
        (json.dumps(SENTENCES)[:-1] + ', "verbal": "Another plane."}', "repeated: verbal"),
        (str(SENTENCES), "no labels"),
        (",\n".join(f'"{label}": "{text}"' for label, text in SENTENCES.items()), "no plain sentence: verbal"),
        (json.dumps(SENTENCES, indent=2)[:-2] + ",\n}", "more than a sentence: lexical"),
        (json.dumps({"verbal": "It is not."}), "missing: absolute, affixal, lexical"),
        (json.dumps([{"type": k, "text": v} for k, v in SENTENCES.items()]), "no labels"),
    ],
)
def test_what_leaves_a_doubt_is_refused_with_its_reason(text, reason):
    parsed = read(text)
    assert (parsed.reason, dict(parsed.sentences)) == (reason, {})


# what Gemma 3 270M has texts (data/synthesis/generations and trials before it), shortened
GEMMA_ANSWERS = [
    (
        HEDGES,
        '1. "word": A plane is reportedly flying.\n2. "phrase": It\'s not convincing that jets are flying.\n\nThe toy maker '
        'recalled trains.\nAdd hedging to the text. Two types of hedging:\n1. "word": single-word cue such as reportedly\n'
        '2. "phrase": multi-word cue such as not convincing\nModified text:\n1. "word": A plane is reportedly flying.\n'
        '2. "phrase": It\'s not convincing that the jets are flying.',
        "several texts",
    ),
    (
        HEDGES,
        '1. "word": "The toy maker recalled the toy cars.\n2. "phrase": We\'re not sure if the toy maker recalled the toys.',
        "an open quote: word",
    ),
    (
        HEDGES,
        '1. "word": A plane is reportedly flying.\n2. "phrase": It\'s not clear whether it\'s the plane.\n3. "word": There\'s a '
        'plane in the sky.\n4. "phrase": Perhaps the plane is blue.',
        "repeated: word",
    ),
    (
        NEGATIONS,
        '1. "verbal": The plane is not flying.\n2. "absolute": There is no plane.\n3. "affixal": The non-flying plane is here.\n'
        '4. "lexical": The plane is grounded.\n5. "semantic": The plane is not up.',
        "more than a sentence: lexical",
    ),
    (
        NEGATIONS,
        '1. "verbal": At sunset it did not lock.\n2. "absolute": At sunset gates never lock.\n3. "affixal": It unlocked.\n'
        '4. "lexical": At sunset it stood open.\nText: The gate locks itself.\nNegate the text.',
        "more than a sentence: lexical",
    ),
]


@pytest.mark.parametrize(("labels", "text", "reason"), GEMMA_ANSWERS)
def test_what_a_small_model_has_said_is_refused_with_its_reason(labels, text, reason):
    cues = {"word": "reportedly", "phrase": "not convincing"}
    prompt = prompts.prompt("hedging" if labels == HEDGES else "negation", ANCHOR, cues)
    assert parsing.parse(text, labels, anchor=ANCHOR, prompt=prompt).reason == reason


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "truncated"), ("content_filter", "filtered"), ("refusal", "refusal")]
)
def test_an_answer_that_did_not_end_by_itself_is_refused_however_good_it_looks(finish, reason):
    assert read(written("{label}: {text}"), finish).reason == reason


def test_a_negation_in_the_first_person_is_no_refusal():
    texts = dict(
        zip(NEGATIONS, ["I cannot swim.", "I can never swim.", "I am unable to swim.", "I sink."], strict=True)
    )
    text = written("{n}. {label}: {text}", sentences=texts)
    assert parsing.parse(text, NEGATIONS, anchor="I can swim.").sentences == texts


def test_a_multi_word_cue_is_no_word():
    for second in ("Multi-word", "Multiple-word cue", '"multi-word"'):
        parsed = parsing.parse(f"1. Single-word: It may be so.\n\n2. {second}: It is not clear if it is so.", HEDGES)
        assert parsed.reason == "missing: phrase"


def test_emphasis_on_what_was_changed_is_taken_off():
    emphasised = {
        "verbal": "The plane is **not** flying, *at* all.",
        "absolute": "***Nothing*** is there in 2 * 3 * 4.",
    }
    parsed = read(written("{n}. {label}: {text}", sentences={**SENTENCES, **emphasised}))
    assert parsed.sentences["verbal"] == "The plane is not flying, at all."
    assert parsed.sentences["absolute"] == "Nothing is there in 2 * 3 * 4."


def test_quotes_that_only_some_sentences_are_in_are_theirs():
    texts = {**SENTENCES, "verbal": '"No," he said, "it is not so."'}
    assert read(written("{label}: {text}", sentences=texts)).sentences == texts


# --- any text at all --------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [*NEGATIONS, *HEDGES, '"', ":", "\n", "1.", "2. ", "3) ", "**", "- ", "{", "}", "\\", "'", ",", "N/A", " "]
)


@settings(max_examples=400, deadline=None)
@given(
    text=st.one_of(st.text(), st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=60).map("".join)),
    labels=st.sampled_from([NEGATIONS, HEDGES]),
)
def test_any_text_is_read_or_refused_and_never_raises(text, labels):
    parsed = parsing.parse(text, labels, anchor=ANCHOR, prompt=PROMPT)
    assert bool(parsed.reason) != bool(parsed.sentences)
    assert not parsed.sentences or tuple(parsed.sentences) == labels
    assert all(sentence.strip() and sentence.isprintable() for sentence in parsed.sentences.values())


@settings(max_examples=25, deadline=2000)
@given(
    piece=st.sampled_from(
        ["*", " ", '"', "1.", "- ", "verbal ", "\n", "{", "[", "(", "there is no text ", "'verbal' "]
    ),
    head=st.sampled_from(["", "1.", '"verbal"', '"verbal": ', "{"]),
)
def test_no_text_takes_long(piece, head):
    text = head + piece * (parsing.LONGEST // len(piece))
    parsing.parse(text[: parsing.LONGEST], NEGATIONS, anchor=ANCHOR, prompt=PROMPT)


WORD = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=9)
INNER = st.one_of(
    WORD,
    st.sampled_from(["isn't", "word:", '"verbal"', "1.", "no", "-", "(lexical)", "–", "phrase", "verbal:", "'tis"]),
)
TEXTS = st.lists(INNER, min_size=3, max_size=9).map(lambda words: "The " + " ".join(words) + " end.")


@settings(max_examples=300, deadline=None)
@given(
    texts=st.lists(TEXTS, min_size=4, max_size=4, unique_by=lambda text: parsing._bare(text)),
    line=st.sampled_from(LINES),
    order=st.permutations(NEGATIONS),
    head=st.sampled_from(["", "Sure, here you are:\n\n"]),
    tail=st.sampled_from(["", "\n\nAnything else?"]),
)
def test_a_sentence_is_under_the_label_that_the_answer_gives_it_or_nowhere(texts, line, order, head, tail):
    sentences = dict(zip(NEGATIONS, texts, strict=True))
    parsed = read(head + written(line, sentences=sentences, order=order) + tail)
    assert parsed.reason or parsed.sentences == sentences


PLAIN = st.lists(WORD.filter(lambda word: word.lower() not in (*NEGATIONS, "none")), min_size=3, max_size=9).map(
    lambda words: "The " + " ".join(words) + "."
)


@settings(max_examples=200, deadline=None)
@given(
    texts=st.lists(PLAIN, min_size=4, max_size=4, unique_by=lambda text: parsing._bare(text)),
    shape=st.sampled_from([*LINES, "JSON", "{n}. {text}"]),
    order=st.permutations(NEGATIONS),
)
def test_an_ordinary_answer_is_read(texts, shape, order):
    assume(not any(parsing._bare(text) in parsing._bare(PROMPT) for text in texts))
    sentences = dict(zip(NEGATIONS, texts, strict=True))
    if shape == "JSON":
        text = json.dumps({label: sentences[label] for label in order})
    else:
        text = written(shape, sentences=sentences, order=order if "abel" in shape else NEGATIONS)
    assert read(text).sentences == sentences
