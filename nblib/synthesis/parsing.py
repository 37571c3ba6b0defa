"""Parse a language model's answer into labelled sentences, or give the reason why it is unusable.

The rule is never to put a sentence under a label that the answer doesn't give it. So only two shapes are parsed, lines with
labels or numbers and a JSON object; any other answer gets a reason, and its question is asked again.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

LONGEST = 8_000  # characters; an answer that long is no list of sentences

# Counts are bounded throughout: an answer of nothing but asterisks must not take minutes.
_MARK = r"[\s>#*_\-•–—+]{0,8}"  # bullets, headings, emphasis
_NUMBER = r"(?:\(?\d{1,2}\s{0,2}[.):\]]\s{0,4})?"
_QUOTE = "[\"'“”‘’`*_\\[\\]]{0,4}"
_KIND = r"(?:negation|negators?|negated|hedg(?:e|ing)|hedged|cues?|type|version|text|sentence)"
_REFUSAL = re.compile(
    r"\b(?:i['’]?m (?:very )?sorry|i (?:can ?not|can['’]?t|am unable|am not able|won['’]?t|will not|must decline)"
    r"|i['’]m (?:unable|not able)|as an ai|language model|unable to (?:assist|help|comply))\b",
    re.I,
)
# narrower: "I cannot swim." is a negation
_REFUSAL_UNDER_LABEL = re.compile(r"i['’]?m (?:very )?sorry, (?:but )?i (?:can|am)|as an ai\b", re.I)
_NONE = re.compile(
    r"\W*(?:n/?a|none|null|nil|same|not (?:applicable|possible|available)|no (?:changes?|modification|negation|hedging)"
    r"|(?:this |it |the (?:text|sentence) )?(?:can ?not|can['’]t|could not) be (?:negated|hedged|modified)\b.*"
    r"|there (?:is|are) no (?:\w+ )?(?:negations?|negators?|antonym)\b.*)\W*",
    re.I,
)
# a placeholder, an arrow from the old to the new, the cue set before the sentence, or a string's end in almost JSON
_DECORATED = re.compile(
    r"^\[.*\]$|^<.*>$|^\{.*\}$|->|→|=>|^[\"“'(*`]{1,2}[^\"”')*`]{1,40}[\"”')*`]{1,2}\s?[-–—:]|[\"”],$"
)
_WRAPPERS = ('""', "“”", "‘’", "''", "``", "**", "__")


@dataclass(frozen=True)
class Parsed:
    """A sentence for every label, or else the reason why the answer is unusable."""

    sentences: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""


class _UnusableError(Exception):
    """Its text is the reason."""


def parse(
    answer: str, labels: Sequence[str], *, finish_reason: str = "stop", anchor: str = "", prompt: str = ""
) -> Parsed:
    """The sentences of an answer by label; never raises.

    Accepted, with any chatter around: lines that begin with a label and hold its sentence (numbered, bulleted, quoted, bold,
    in any order); lines numbered 1 to n without any label, as the prompt numbers them; a JSON object, alone or fenced, with a
    string for each label.

    Args:
        labels: in the order in which the prompt numbers them; lower case.
        finish_reason: the server's; a cut or filtered answer is unusable.
        anchor: the sentence to be modified, which no modification may equal.
        prompt: the question; a line of it is no answer.
    """
    try:
        if finish_reason in ("length", "content_filter", "refusal"):
            raise _UnusableError({"length": "truncated", "content_filter": "filtered"}.get(finish_reason, "refusal"))
        if not answer.strip():
            raise _UnusableError("empty")
        if len(answer) > LONGEST:
            raise _UnusableError("too long")
        found = _sentences(_without_prompt(answer, labels, prompt), labels)
        found = _unwrap({label: " ".join(text.split()) for label, text in found.items()}, anchor)
        _check(found, labels, anchor, prompt)
    except _UnusableError as unusable:
        return Parsed(reason=str(unusable))
    return Parsed({label: found[label] for label in labels})


def _sentences(answer: str, labels: Sequence[str]) -> dict[str, str]:
    """The text under each label; complete, or an error."""
    for parse_shape in (_json_object, _labelled_lines, _numbered_lines):
        found = parse_shape(answer, labels)
        if found:
            break
    else:
        raise _UnusableError("refusal" if _REFUSAL.search(answer) else "no labels")
    missing = [label for label in labels if label not in found]
    if missing:
        raise _UnusableError(f"missing: {', '.join(missing)}")
    return found


def _without_prompt(answer: str, labels: Sequence[str], prompt: str) -> str:
    """The answer without the prompt repeated before it; refused where the model went on to ask about another text."""
    lines = _lines(answer)
    echoes = [place for place, line in enumerate(lines) if line.strip(" *#").lower() == "modified text:"]
    if not echoes:
        return answer
    head, prompt_lines = _label_pattern(labels, end=_COLON), {_bare(line) for line in _lines(prompt)}
    if any(head.match(line) and _bare(line) not in prompt_lines for line in lines[: echoes[-1]]):
        raise _UnusableError("several texts")
    return "\n".join(lines[echoes[-1] + 1 :])


# --- a JSON object ----------------------------------------------------------------------------------------------------


def _json_object(answer: str, labels: Sequence[str]) -> dict[str, str]:
    """The texts of the one object in an answer, or of the one object in that; none where no member is a label."""
    start, end = answer.find("{"), answer.rfind("}")
    try:
        members = json.loads(answer[start : end + 1], object_pairs_hook=_Members, strict=False)
    except (ValueError, RecursionError):
        return {}
    if isinstance(members, _Members) and len(members) == 1 and isinstance(members[0][1], _Members):
        members = members[0][1]  # {"modified_text": {…}}
    pattern = _label_pattern(labels, end=r"\s*")
    found: dict[str, str] = {}
    for name, value in members if isinstance(members, _Members) else ():
        if not (match := pattern.fullmatch(name)):
            continue
        label = match["label"].lower()
        if not isinstance(value, str):
            raise _UnusableError(f"no sentence: {label}")
        if label in found:
            raise _UnusableError(f"repeated: {label}")
        if "\n" in value.strip():
            raise _UnusableError(f"more than a sentence: {label}")
        found[label] = value
    return found


class _Members(list):
    """An object's members as (name, value), repeated names too."""


# --- lines ------------------------------------------------------------------------------------------------------------


def _label_pattern(labels: Sequence[str], end: str) -> re.Pattern[str]:
    """The head of a line that gives a label: `2. **"absolute"** (negator):` and its like."""
    names = "|".join(map(re.escape, labels))
    single = r"(?:single[\s-])?"  # not "multi-word", which is the prompt's other name for a phrase
    return re.compile(
        rf"{_MARK}{_NUMBER}{_MARK}{_QUOTE}{single}(?P<label>{names}){_QUOTE}(?:[\s_-]+{_KIND}){{0,2}}\s{{0,2}}{_QUOTE}\s{{0,2}}"
        rf"(?:\([^()\n]{{0,60}}\)\s{{0,2}}{_QUOTE}\s{{0,2}})?{end}",
        re.I,
    )


def _labelled_lines(answer: str, labels: Sequence[str]) -> dict[str, str]:
    """The text of each line that begins with a label."""
    head = _label_pattern(labels, end=_COLON)
    within = re.compile(rf"(?:\d[.)]|[\"“*`])\s{{0,3}}(?:{'|'.join(labels)})(?:\s+{_KIND})?[\s\"”*`]{{0,3}}:", re.I)
    found: dict[str, str] = {}
    label = ""  # of the line before; none after a blank line, where chatter may follow
    for line in _lines(answer):
        if _FENCE.fullmatch(line):
            continue
        if match := head.match(line):
            label, text = match["label"].lower(), line[match.end() :].strip()
            if label in found:
                raise _UnusableError(f"repeated: {label}")
            if within.search(text):
                raise _UnusableError("several labels in a line")
            found[label] = text
        elif not line.strip():
            label = ""
        elif label:  # a second line: the rest of the sentence, another version, or a remark?
            raise _UnusableError(f"more than a sentence: {label}")
    return found


def _numbered_lines(answer: str, labels: Sequence[str]) -> dict[str, str]:
    """The text of lines numbered 1 to n, where exactly these are numbered: the prompt's numbers are its labels."""
    lines = _lines(answer)
    places = [(place, match) for place, line in enumerate(lines) if (match := _NUMBERED.match(line))]
    if [int(match["number"]) for _, match in places] != list(range(1, len(labels) + 1)):
        return {}
    first, last = places[0][0], places[-1][0]
    others = [line for line in lines[first : last + 2] if line.strip() and not _NUMBERED.match(line)]
    if any(not _FENCE.fullmatch(line) for line in others):  # second lines, or headings with other labels
        raise _UnusableError("more than a sentence")
    name = re.compile(rf"\b(?:{'|'.join(labels)})\b", re.I)
    if any(name.search(match["text"]) for _, match in places):  # a label after all, written in a way of its own
        raise _UnusableError("labels in doubt")
    return {label: match["text"].strip() for label, (_, match) in zip(labels, places, strict=True)}


_COLON = r"(?:[:：]|\s[-–—]\s|$)(?:[*_\"'”’]{1,3}(?=\s|$))?\s*"  # **verbal:** closes its emphasis after the colon
_FENCE = re.compile(r"\s*(?:```\w*|~~~\w*|-{3,}|\*{3,}|_{3,})\s*")
_NUMBERED = re.compile(rf"{_MARK}\(?(?P<number>\d{{1,2}})[.):\]]\s+(?P<text>\S.*)")


def _lines(answer: str) -> list[str]:
    return re.split(r"\r\n|\r|\n", answer)


# --- the sentences ----------------------------------------------------------------------------------------------------


def _unwrap(found: dict[str, str], anchor: str) -> dict[str, str]:
    """Without emphasis, and without the quotes that all sentences are in; those that only some are in are their own."""
    if "*" not in anchor:  # models like to show what they have changed
        found = {label: re.sub(r"(\*{1,3})(?=\S)([^*]+)(?<=\S)\1", r"\2", text) for label, text in found.items()}
    for left, right in _WRAPPERS * 3:
        wrapped = all(len(text) > 2 and text[0] == left and text[-1] == right for text in found.values())
        if wrapped and not (anchor.startswith(left) and anchor.endswith(right)):
            found = {label: text[1:-1].strip() for label, text in found.items()}
    return found


def _check(found: Mapping[str, str], labels: Sequence[str], anchor: str, prompt: str) -> None:
    """Refuse texts that can't be the modified sentence."""
    labelled = _label_pattern(labels, end=r"[:：]")
    remark = re.compile(rf"\([^()]*\b(?:{'|'.join(labels)}|negat\w+|hedg\w+|cue)\b[^()]*\)\W*$", re.I)
    question = _bare(prompt.replace(anchor, " ") if anchor else prompt)
    for label in labels:
        text = found[label]
        if not any(sign.isalpha() for sign in text) or _NONE.fullmatch(text):
            raise _UnusableError(f"missing: {label}")
        if not text.isprintable():
            raise _UnusableError(f"unprintable: {label}")
        if _DECORATED.search(text) or remark.search(text) or (text.endswith(":") and not anchor.endswith(":")):
            raise _UnusableError(f"no plain sentence: {label}")
        if len(text.split()) < 3 < len(anchor.split()):
            raise _UnusableError(f"too short: {label}")
        if text.count('"') % 2 and not anchor.count('"') % 2:
            raise _UnusableError(f"an open quote: {label}")
        if labelled.match(text):
            raise _UnusableError(f"labels within: {label}")
        if _REFUSAL_UNDER_LABEL.match(text):
            raise _UnusableError("refusal")
        if _bare(text) == _bare(anchor):
            raise _UnusableError(f"unchanged: {label}")
        if _bare(text) in question:
            raise _UnusableError("repeats the prompt")
    if len({_bare(found[label]) for label in labels}) < len(labels):
        raise _UnusableError("one sentence under two labels")


def _bare(text: str) -> str:
    """For comparison: words alone."""
    return " ".join(re.findall(r"\w+", text.lower()))
