"""Read labelled sentences out of a language model's answer, or give the reason why it is unusable.

The rule is never to put a sentence under a label that the answer doesn't give it. So only three shapes are read, lines with
labels, lines with the prompt's numbers, and a JSON object; any other answer gets a reason, and its question is asked again.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

LONGEST = 8_000  # characters; an answer that long is no list of sentences
_UNFINISHED = {"length": "truncated", "content_filter": "filtered", "refusal": "refusal"}  # finish_reason → reason

# Counts are bounded throughout: an answer of nothing but asterisks must not take minutes.
_BEFORE = (
    r"[\s>#*_\-•]{0,8}(?:\(?\d{1,2}[.):\]]\s{0,4})?[\s*_\-\[\"'“”‘’`]{0,8}"  # a label: bullet, number, emphasis, quote
)
_AFTER = (
    r"[\]\"'“”‘’`*_]{0,4}(?:[\s_-](?:negation|negator|hedge|hedging|cue)s?)?[\]\"'“”‘’`*_]{0,4}(?:\s?\([^()]{0,60}\))?"
)
_COLON = r"[*_]{0,3}(?:\s?[:：]|\s[-–—]\s|$)(?:[*_\"'”’]{1,3}(?=\s|$))?\s*"  # **verbal:** closes its emphasis after the colon
_NUMBERED = re.compile(r"[\s>*]{0,4}\(?(?P<number>\d{1,2})[.):\]]\s+(?P<text>\S.*)")
_FENCE = re.compile(r"\s*(?:```\w*|-{3,}|\*{3,})\s*")
_REFUSAL = (
    r"\bi['’]?m (?:very )?sorry|\bi (?:cannot|can['’]?t|am unable to|won['’]?t)\b|\bas an ai\b|\blanguage model\b"
)
_NOT_DONE = (
    r"\W*(?:n/?a|none|null|not (?:applicable|possible)|(?:this |it |the \w+ )?can(?:not|['’]t) be (?:negated|hedged)\b.*"
    r"|there (?:is|are) no (?:\w+ )?(?:negations?|negators?|antonyms?)\b.*)\W*"
    r"|i['’]?m (?:very )?sorry,? (?:but )?i (?:can|am|['’]m).*|as an ai\b.*"
)
# a placeholder, an arrow from the old to the new, the end of a string in almost JSON, a remark
_DECORATED = r"\[.*\]|<.*>|.*(?:->|→|=>).*|.*[\"”],|.*\([^()]{0,60}\b(?:negat|hedg|cue)\w*[^()]{0,60}\)\W*"
_NO_SENTENCE = re.compile(f"{_NOT_DONE}|{_DECORATED}", re.I)


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
    string for each label. What a model has thought before `</think>` is no part of its answer.

    Args:
        labels: in the order in which the prompt numbers them; lower case.
        finish_reason: the server's; a cut or filtered answer is unusable.
        anchor: the sentence to be modified, which no modification may equal.
        prompt: the question; a line of it is no answer.
    """
    answer = answer.rpartition("</think>")[2].strip()
    try:
        if finish_reason in _UNFINISHED:
            raise _UnusableError(_UNFINISHED[finish_reason])
        if not 0 < len(answer) <= LONGEST:
            raise _UnusableError("too long" if answer else "empty")
        found = _json_object(answer, labels) or _labelled_lines(answer, labels) or _numbered_lines(answer, labels)
        if not found:
            raise _UnusableError("refusal" if re.search(_REFUSAL, answer, re.I) else "no labels")
        if missing := [label for label in labels if label not in found]:
            raise _UnusableError(f"missing: {', '.join(missing)}")
        found = _unwrap({label: " ".join(found[label].split()) for label in labels}, anchor)
        _check(found, anchor, prompt)
    except _UnusableError as unusable:
        return Parsed(reason=str(unusable))
    return Parsed(found)


def _json_object(answer: str, labels: Sequence[str]) -> dict[str, str]:
    """The texts of the one object in an answer; none where no member is a label."""
    try:
        members = json.loads(answer[answer.find("{") : answer.rfind("}") + 1])
    except (ValueError, RecursionError):
        return {}
    label = re.compile(rf"({'|'.join(labels)})(?:[ _-](?:negation|negator|hedge|hedging))?", re.I)
    found = {match[1].lower(): text for name, text in members.items() if (match := label.fullmatch(name))}
    if any(not isinstance(text, str) or "\n" in text.strip() for text in found.values()):
        raise _UnusableError("more than a sentence")
    return found


def _labelled_lines(answer: str, labels: Sequence[str]) -> dict[str, str]:
    """The text of each line that begins with a label."""
    head = re.compile(rf"{_BEFORE}(?:single[\s-])?(?P<label>{'|'.join(labels)}){_AFTER}{_COLON}", re.I)
    *before, answer = re.split(r"^[ *#]*modified text:[ *#]*$", answer, flags=re.I | re.M)
    if any(head.match(line) for part in before for line in part.splitlines()):
        raise _UnusableError("several texts")  # it went on to ask about another one
    found: dict[str, str] = {}
    label = ""  # of the line before; none after a blank line, where chatter may follow
    for line in answer.splitlines():
        if match := head.match(line):
            label = match["label"].lower()
            if label in found:
                raise _UnusableError(f"repeated: {label}")
            found[label] = line[match.end() :]
        elif not line.strip():
            label = ""
        elif label and not _FENCE.fullmatch(line):  # the rest of the sentence, another version, or a remark?
            raise _UnusableError(f"more than a sentence: {label}")
    return found


def _numbered_lines(answer: str, labels: Sequence[str]) -> dict[str, str]:
    """The text of lines numbered 1 to n, where exactly these are numbered: the prompt's numbers are its labels."""
    lines = answer.splitlines()
    places = [(place, match) for place, line in enumerate(lines) if (match := _NUMBERED.match(line))]
    if [int(match["number"]) for _, match in places] != list(range(1, len(labels) + 1)):
        return {}
    block = lines[places[0][0] : places[-1][0] + 2]
    if any(line.strip() and not _NUMBERED.match(line) and not _FENCE.fullmatch(line) for line in block):
        raise _UnusableError("more than a sentence")
    if any(re.search(rf"\b(?:{'|'.join(labels)})\b", match["text"], re.I) for _, match in places):
        raise _UnusableError("labels in doubt")  # a label after all, written in a way of its own
    return {label: match["text"] for label, (_, match) in zip(labels, places, strict=True)}


def _unwrap(found: dict[str, str], anchor: str) -> dict[str, str]:
    """Without emphasis, and without the quotes that all sentences are in; those that only some are in are their own."""
    if "*" not in anchor:  # models like to show what they have changed
        found = {label: re.sub(r"(\*{1,3})(?=\S)([^*]+)(?<=\S)\1", r"\2", text) for label, text in found.items()}
    for left, right in ('""', "“”", "``"):
        if all(len(text) > 2 and (text[0], text[-1]) == (left, right) for text in found.values()):
            found = {label: text[1:-1].strip() for label, text in found.items()}
    return found


def _check(found: Mapping[str, str], anchor: str, prompt: str) -> None:
    """Refuse texts that can't be the modified sentence."""
    labelled = re.compile(rf"{_BEFORE}(?:{'|'.join(found)}){_AFTER}\s?[:：]", re.I)
    question = _bare(prompt.replace(anchor, " ") if anchor else prompt)
    for label, text in found.items():
        short = len(text.split()) < 3 < len(anchor.split())
        cut = text.count('"') % 2 > anchor.count('"') % 2 or (text.endswith(":") and not anchor.endswith(":"))
        whole = _bare(text) and text.isprintable() and not (_NO_SENTENCE.fullmatch(text) or labelled.match(text))
        if short or cut or not whole:
            raise _UnusableError(f"no sentence: {label}")
        if _bare(text) == _bare(anchor):
            raise _UnusableError(f"unchanged: {label}")
        if _bare(text) in question:
            raise _UnusableError("repeats the prompt")
    if len(set(map(_bare, found.values()))) < len(found):
        raise _UnusableError("one sentence under two labels")


def _bare(text: str) -> str:
    """For comparison: words alone."""
    return " ".join(re.findall(r"\w+", text.lower()))
