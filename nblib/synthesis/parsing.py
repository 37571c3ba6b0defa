"""Read labelled sentences out of a language model's answer, or give the reason why it is unusable.

No sentence may get under a label that the answer doesn't give it. So only JSON with labels, and lines with labels or with the
prompt's numbers, are read; after any other answer its question is asked again.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

LONGEST = 8_000  # characters
_UNFINISHED = {"content_filter": "filtered", "safety": "filtered", "refusal": "refused"}  # finish_reason → reason
_CUT = ("length", "max_tokens", "model_length", "error", "insufficient_system_resource")
_UNFINISHED |= dict.fromkeys(_CUT, "truncated")
_THINK = r"(?:\w+:)?(?:think|thinking|thoughts?|reasoning)"  # tags around what is no answer; those of Mistral, Kimi and gpt-oss
_THOUGHT = re.compile(rf"<{_THINK}>|\[THINK\]|◁think▷|<\|channel\|>", re.I)
_ANSWER = re.compile(rf"</{_THINK}>|\[/THINK\]|◁/think▷|<\|channel\|>final.{{0,30}}?<\|message\|>", re.I)
_END = re.compile(r"(?:(?:<\|\w+\|>|</s>|<end_of_turn>)\s{0,4})+$")  # tokens that a server should have taken away

# Bounded counts: an answer of nothing but asterisks must not take minutes
_BEFORE = r"[\s>#*_\-•]{0,8}(?:\(?\d{1,2}[.):\]]\s{0,4})?[\s*_\-\[\"“`]{0,8}"  # bullet, number, emphasis, quote
_AFTER = r"[\]\"”`*_]{0,4}(?:[\s_-](?:negat\w{1,4}|hedg\w{1,3}))?[\]\"”`*_]{0,4}(?:\s?\([^()]{0,60}\))?"
_COLON = r"[*_]{0,3}(?:\s?:|\s[-–—]\s|$)(?:[*_\"”]{1,3}(?=\s|$))?\s*"  # also as in **verbal:**
_NUMBERED = re.compile(r"[\s>*]{0,4}\(?(?P<number>\d{1,2})[.):\]]\s+(?P<text>\S.*)")
_FENCE = re.compile(r"\s*(?:```\w*|-{3,}|\*{3,})\s*")
_NO_SENTENCE = re.compile(  # a placeholder; an arrow from old to new; the end of a string in JSON; a remark
    r"\[.*\]|<.*>|.*(?:->|→|=>).*|.*[\"”],|.*\([^()]{0,60}\b(?:negat|hedg|cue)\w*[^()]{0,60}\)\W*"
    r"|.{0,20}can(?:not|['’]t) be (?:negated|hedged)\b.*|there (?:is|are) no (?:\w+ )?(?:negations?|antonyms?)\b.*"
    r"|i['’]?m (?:very )?sorry\b.*|as an ai\b.*|.*<\|.*",
    re.I,
)


@dataclass(frozen=True)
class Parsed:
    """A sentence for every label, or else the reason why the answer is unusable."""

    sentences: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""


class _UnusableError(Exception):
    """Its text is the reason."""


def parse(answer: str, labels: Sequence[str], finish_reason: str, anchor: str, prompt: str) -> Parsed:
    """The sentences of an answer by label; never raises.

    Read, with any chatter around: a JSON value with a text for each label; lines that begin with a label (in any order and
    markup), or are numbered 1 to n. What a model thought before `</think>` is skipped.

    Args:
        labels: in the order in which the prompt numbers them; lower case.
        anchor, prompt: which no modification may equal.
    """
    answer = _END.sub("", _ANSWER.split(answer)[-1].strip()).strip()
    head = re.compile(rf"{_BEFORE}(?:single[\s-])?(?P<label>{'|'.join(labels)}){_AFTER}{_COLON}", re.I)
    try:
        if reason := _UNFINISHED.get(finish_reason.lower()):
            raise _UnusableError(reason)
        if _THOUGHT.search(answer):
            raise _UnusableError("reasoning alone")
        if not 0 < len(answer) <= LONGEST:
            raise _UnusableError("too long" if answer else "empty")
        texts = _json_texts(answer, head) or _labelled_lines(answer, head) or _numbered_lines(answer, labels)
        if not texts:
            raise _UnusableError("no labels")
        if missing := [label for label in labels if label not in texts]:
            raise _UnusableError(f"missing: {', '.join(missing)}")
        texts = _unwrap({label: " ".join(texts[label].split()) for label in labels}, anchor)
        _check(texts, head, anchor, prompt)
    except _UnusableError as unusable:
        return Parsed(reason=str(unusable))
    return Parsed(texts)


def _json_texts(answer: str, head: re.Pattern) -> dict[str, str]:
    """The texts of the one JSON value in an answer, at any depth, as {label: text} or as an object of these two alone."""
    texts: dict[str, str] = {}

    def collect(pairs: list[tuple[str, object]]) -> str:
        members = [(name, value) for name, value in pairs if isinstance(value, str)]
        if len(members) == 2:  # perhaps {"label": "verbal", "text": …}
            (_, one), (_, other) = members
            members += [(one, other), (other, one)]
        for name, text in members:
            if match := head.fullmatch(name + ":"):
                label = match["label"].lower()
                if label in texts or "\n" in text.strip():
                    raise _UnusableError(f"more than a sentence: {label}")
                texts[label] = text
        return members[0][1] if len(members) == 1 == len(pairs) else ""  # {"verbal": {"text": …}}

    start, end = re.search(r"[\[{]|$", answer).start(), max(answer.rfind("]"), answer.rfind("}")) + 1
    try:
        json.loads(answer[start:end], strict=False, object_pairs_hook=collect)
    except (ValueError, RecursionError):
        return {}
    if texts and any(map(head.match, (answer[:start] + answer[end:]).splitlines())):
        raise _UnusableError("several texts")
    return texts


def _labelled_lines(answer: str, head: re.Pattern) -> dict[str, str]:
    """The text of each line that begins with a label."""
    *before, answer = re.split(r"^[ *#]*modified text:[ *#]*$", answer, flags=re.I | re.M)
    if any(head.match(line) for part in before for line in part.splitlines()):
        raise _UnusableError("several texts")
    texts: dict[str, str] = {}
    label = ""  # of the line before; none after a blank line
    for line in answer.splitlines():
        if match := head.match(line):
            label = match["label"].lower()
            if label in texts:
                raise _UnusableError(f"repeated: {label}")
            texts[label] = line[match.end() :]
        elif not line.strip():
            label = ""
        elif label and not _FENCE.fullmatch(line):
            raise _UnusableError(f"more than a sentence: {label}")
    return texts


def _numbered_lines(answer: str, labels: Sequence[str]) -> dict[str, str]:
    """The text of lines numbered 1 to n, the prompt's numbers, where exactly these are numbered."""
    lines = answer.splitlines()
    matches = {index: match for index, line in enumerate(lines) if (match := _NUMBERED.match(line))}
    if [int(match["number"]) for match in matches.values()] != list(range(1, len(labels) + 1)):
        return {}
    block = lines[min(matches) : max(matches) + 2]
    if any(line.strip() and not _NUMBERED.match(line) and not _FENCE.fullmatch(line) for line in block):
        raise _UnusableError("more than a sentence")
    if any(re.search(rf"\b(?:{'|'.join(labels)})\b", match["text"], re.I) for match in matches.values()):
        raise _UnusableError("labels in doubt")  # a label after all, written in a way of its own
    return {label: match["text"] for label, match in zip(labels, matches.values(), strict=True)}


def _unwrap(texts: dict[str, str], anchor: str) -> dict[str, str]:
    """Without emphasis, and without quotes that all sentences are in."""
    if "*" not in anchor:  # models like to show what they have changed
        texts = {label: re.sub(r"(\*{1,3})(?=\S)([^*]+)(?<=\S)\1", r"\2", text) for label, text in texts.items()}
    for left, right in ('""', "“”", "``"):
        if all(len(text) > 2 and (text[0], text[-1]) == (left, right) for text in texts.values()):
            texts = {label: text[1:-1].strip() for label, text in texts.items()}
    return texts


def _check(texts: Mapping[str, str], head: re.Pattern, anchor: str, prompt: str) -> None:
    """Refuse texts that can't be a modified sentence."""
    question = _bare(prompt.replace(anchor, " "))
    for label, text in texts.items():
        short = len(text.split()) < 3 < len(anchor.split())
        cut = text.count('"') % 2 > anchor.count('"') % 2 or (text.endswith(":") and not anchor.endswith(":"))
        if short or cut or not (_bare(text) and text.isprintable()) or _NO_SENTENCE.fullmatch(text) or head.match(text):
            raise _UnusableError(f"no sentence: {label}")
        if _bare(text) == _bare(anchor):
            raise _UnusableError(f"unchanged: {label}")
        if _bare(text) in question:
            raise _UnusableError("repeats the prompt")
    if len(set(map(_bare, texts.values()))) < len(texts):
        raise _UnusableError("one sentence under two labels")


def _bare(text: str) -> str:
    """For comparison: words alone."""
    return " ".join(re.findall(r"\w+", text.lower()))
