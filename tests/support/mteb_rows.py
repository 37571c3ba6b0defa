"""A few written-down rows for each of MTEB's tasks, in place of the official files."""

import pandas as pd

WORDS = ["the boat is red", "a boat is blue", "night and day", "the night is blue", "a red boat", "day is not night"]
BEIR = {
    "corpus": pd.DataFrame({
        "id": ["q1", "d1", "d2", "d3"], "title": ["", "boat", "", "day"],
        "text": ["the boat is red", "is not blue", "night and day", "is the night"],
    }),
    "queries": pd.DataFrame({"id": ["q1", "q2"], "text": ["the boat is red", "night"]}),
    "qrels": pd.DataFrame({"query_id": ["q1", "q2", "q2"], "doc_id": ["d1", "d2", "d3"], "relevance": [1, 1, 1]}),
}  # fmt: skip


def load(name: str, *splits: str) -> pd.DataFrame:
    """Rows in the form of `corpora.load`."""
    (split,) = splits
    corpus, _, part = name.partition("_")
    if part in BEIR:
        table = BEIR[part]
    elif name == "summeval":
        table = pd.DataFrame({
            "id": ["a", "b", "c"], "text": ["night", "day", "boat"], "human_summaries": [WORDS[:2]] * 3,
            "machine_summaries": [WORDS[1:4], WORDS[2:5], WORDS[3:6]],
            "relevance": [[1.0, 2.0, 4.0], [3.0, 3.0, 3.0], [5.0, 1.0, 2.0]],
        })  # fmt: skip
    elif name == "twitter_url":
        pairs = {"sentence1": [word.title() for word in WORDS], "sentence2": WORDS[::-1]}
        table = pd.DataFrame({"idx": range(6), "label": [0, 1, 0, 1, 0, 1], "part": "train", **pairs})
    elif corpus in ("sick", "biosses", "stsb") or corpus.startswith("sts"):
        tokenised = "_tok" if corpus in ("sts12", "sts13", "sts14", "sts15", "sts16") else ""
        sides = {f"sentence1{tokenised}": WORDS, f"sentence2{tokenised}": WORDS[::-1]}
        table = pd.DataFrame({"idx": range(6), "score": [4.0, 1.0, 0.5, 5.0, 3.0, 2.0], **sides})
        named = {"pair_id": range(6), "genre": "x", "file": "x", "year": "x", "index": [str(k) for k in range(6)]}
        table = table.assign(**named)
    else:  # classification
        rows = 3 * WORDS if split == "train" else WORDS[:4]
        table = pd.DataFrame({"idx": range(len(rows)), "text": rows, "label": [int("boat" in text) for text in rows]})
    return table.assign(split=split)
