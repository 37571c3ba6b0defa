"""The words for people of what measurements hold as keys: benchmarks, systems, items and training data."""

import math
import re
from collections.abc import Mapping

from nblib import corpora

LABELS = {  # of what is no registered corpus
    "figure_1": "Figure 1 sentences",
    "figure_1_cao": "Figure 1 sentences (Cao)",
    "gsm8k_errors": "GSM8K errors",
    "semantoneg_errors": "SemAntoNeg errors",
    "negation_average": "negation average",
    "lora": "LoRA settings",
    "synthesis": "Synthesis",
}
TRAINING = {  # in words; of other training data the key
    "negation": "authored negations",
    "hedging": "authored hedges against verbal negations",
    "both": "authored negations and hedges",
    "mixture": "a mixture of authored negations, hedges, passages and exclusions",
    "snli_classes": "SNLI's three classes",
    "nli": "entailed and contradicting sentences of SNLI",
    "stsb": "STSB train",
    "paraphrases": "captions of one picture, compressed and rewritten sentences",
    "cannot": "CANNOT's paraphrases and negations",
}
PAIRS = {"snli_classes", "nli", "stsb", "paraphrases", "cannot"}  # of other training data anchors are counted
SAMPLED = {"nevir": "pairs", "excluir": "pairs", "gsm8k": "problems"}  # of other corpora rows


def benchmark(key: str, corpus: str = "") -> str:
    """A benchmark's label, with "(mini)" on data of our own; mteb's tasks have their own names."""
    if key in LABELS:
        return LABELS[key] + " (mini)" * corpus.endswith("_mini")
    known = corpora.entries().get(corpus)
    return known.label if known else key


def metric(key: str) -> str:
    """A printed metric: accuracy_w_anto_200 is "accuracy with weights from 200 items"."""
    words = re.sub(r"_w_anto_(\d+)$", r" with weights from \1 items", key)
    return words.replace("_w_sts", " with weights from STSB").replace("_", " ")


def system(row: Mapping) -> str:
    """A measurement's system: "all-MiniLM-L6-v2 + both", "all-mpnet-base-v2 + adapter (weighted cosine, K = 1000)"."""
    base, variant, adapter = row["base"], row["variant"], row["adapter"].replace("_", " ")
    if row["system"] != base or not variant:
        return row["system"]
    if adapter:
        fitted = f"K = {variant[1:]}" if variant[1:].isdecimal() else f"a by {variant}"
        return f"{base} + adapter ({adapter}, {fitted.replace('_', '-')})"
    return f"{base} + {variant}"


def items(row: Mapping) -> str:
    """A measurement's items: "nevir test, a sample of 100 pairs"."""
    part, protocol = row["part"].replace("_", " "), row["protocol"].replace("_", " ")
    where = f"{row['corpus']} {row['split']}".strip()
    return ", ".join(filter(None, [where, part, sample(row["corpus"], row["sample"]), protocol]))


def sample(corpus: str, number: str) -> str:
    """A sample of a corpus: "a sample of 100 pairs"; "" where there is none."""
    return f"a sample of {int(number):,} {SAMPLED.get(corpus, 'rows')}" if number else ""


def training(trained_on: str, number: float = math.nan) -> str:
    """Training data by key and number: "authored negations and hedges, 1,600 anchors"; "" for a published model. The kinds of a
    mixture have numbers of their own, so it has none."""
    if trained_on == "nevir":
        return "NevIR's training pairs" if math.isnan(number) else f"{number:,.0f} of NevIR's training pairs"
    text, unit = TRAINING.get(trained_on, trained_on.replace("_", " ")), "pairs" if trained_on in PAIRS else "anchors"
    return text if math.isnan(number) or trained_on in ("", "mixture") else f"{text}, {number:,.0f} {unit}"
