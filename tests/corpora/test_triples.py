"""Anchors to triples: what passes the filter, what a training_data pairs with what, and what must never be trained on."""

import pandas as pd
import pytest

from nblib import artefacts, corpora
from nblib.corpora import triples
from nblib.corpora.authored import HEDGES, NEGATIONS, held_out_anchors, held_out_ids
from nblib.errors import StudyError

VARIANTS = [*NEGATIONS, *HEDGES]


def anchors(n=3, **changed):
    """Anchors whose variants are the anchor and one more word, so their distances are that word's length and a space."""
    rows = [
        {"id": f"t-{k}", "anchor": f"The door of house {k} is red.", "entailment": f"House {k} has a red door."}
        | {name: f"The door of house {k} is red. {name}" for name in VARIANTS}
        for k in range(n)
    ]
    return pd.DataFrame(rows).assign(**changed)


@pytest.mark.parametrize(("length", "kept"), [(60, 2), (61, 1)])
def test_a_variant_at_the_threshold_itself_passes(length, kept):
    table = anchors(2)
    table.loc[0, "phrase"] = table.anchor[0] + "x" * length
    assert triples.filtered(table, 60).id.tolist() == ["t-0", "t-1"][-kept:]


@pytest.fixture(scope="module")
def authored():
    return corpora.load("authored_triples").drop(columns="split")


@pytest.fixture(scope="module")
def apart(authored):
    return triples.split(authored, dev=100, seed=0)


def test_a_held_out_anchor_is_in_no_part_to_train_or_choose_on(authored, apart):
    assert apart.split.value_counts().to_dict() == {"train": len(authored) - 400, "held out": 300, "dev": 100}
    assert set(apart.id[apart.split == "held out"]) == set(held_out_ids())
    assert sorted(apart.id) == sorted(authored.id), "every anchor is in exactly one part"


@pytest.mark.parametrize("dev", [3, -1])
def test_a_dev_part_that_leaves_nothing_to_train_on_or_is_negative_is_refused(dev):
    with pytest.raises(StudyError, match=f"{dev} for dev"):
        triples.split(anchors(3), dev=dev)


def test_smaller_subsets_lie_within_larger_ones(apart):
    train = apart[apart.split == "train"]
    sizes = [10, 100, 1000]
    nested = [set(triples.subset(train, size).id) for size in sizes]
    assert [len(ids) for ids in nested] == sizes
    assert nested[0] < nested[1] < nested[2]
    for size in (0, -1, len(train) + 1):
        with pytest.raises(StudyError, match=f"{size} of {len(train)} anchors"):
            triples.subset(train, size)


@pytest.mark.parametrize(
    ("training_data", "positives", "negatives"),
    [
        ("both", HEDGES, NEGATIONS),
        ("negation", ["entailment"], NEGATIONS),
        ("hedging", HEDGES, ["verbal"]),
        ("affixal", HEDGES, ["affixal"]),
    ],
)
def test_a_training_data_pairs_every_positive_with_every_negative(training_data, positives, negatives):
    table = anchors().set_index("id")
    built = triples.build(anchors(), training_data)
    assert list(built.columns) == triples.COLUMNS
    expected = [(key, hedge, negation) for key in table.index for hedge in positives for negation in negatives]
    assert list(built[["id", "hedge", "negation"]].itertuples(index=False, name=None)) == expected
    for row in built.itertuples():
        texts = table.loc[row.id]
        assert (row.anchor, row.positive, row.negative) == (texts.anchor, texts[row.hedge], texts[row.negation])


def test_mixed_draws_a_type_for_each_hedge_by_its_seed():
    built = triples.build(anchors(40), "mixed", seed=3)
    pd.testing.assert_frame_equal(built, triples.build(anchors(40), "mixed", seed=3))
    assert built.groupby("id").hedge.agg(list).map(tuple).unique().tolist() == [HEDGES]
    assert set(built.negation) == set(NEGATIONS)
    assert not built.equals(triples.build(anchors(40), "mixed", seed=4))


def test_rule_based_uses_the_tools_negation_and_leaves_out_what_it_cannot_negate():
    table = anchors(3, anchor=["The horse is white.", "All men are mortal.", "A man is playing the piano."])
    built = triples.build(table, "rule_based")
    assert built.id.tolist() == ["t-0", "t-0", "t-2", "t-2"]
    assert built.negative.unique().tolist() == ["The horse isn't white.", "A man isn't playing the piano."]
    assert built.hedge.tolist() == [*HEDGES, *HEDGES]
    assert set(built.negation) == {"rule"}


def test_both_sides_of_a_nevir_pair_are_triples_and_the_last_ten_pairs_are_not_trained_on(monkeypatch):
    rows = [
        {"id": f"n-{k}", "q1": f"who {k}?", "q2": f"who not {k}?", "doc1": "he did", "doc2": "he didn't"}
        for k in range(13)
    ]
    monkeypatch.setattr(corpora, "load", lambda *_: pd.DataFrame(rows))
    built = triples.training_set(anchors(), "nevir")
    assert built.id.tolist() == ["n-0", "n-1", "n-2"] * 2
    first, twin = built[built.id == "n-0"][["anchor", "positive", "negative"]].to_numpy().tolist()
    assert (first, twin) == (["who 0?", "he did", "he didn't"], ["who not 0?", "he didn't", "he did"])
    assert len(triples.training_set(anchors(), "nevir", size=2)) == 4
    with pytest.raises(StudyError, match="13 of 3 anchors"):
        triples.training_set(anchors(), "nevir", size=13)


@pytest.mark.parametrize(
    ("column", "text", "faulty"),
    [
        ("phrase", None, 4),
        ("verbal", "The door of house 1 is red.", 2),
        ("word", "The door of house 1 is red. affixal", 1),
    ],
)
def test_an_unusable_text_is_refused_with_its_anchor(column, text, faulty):
    table = anchors()
    table.loc[1, column] = text
    with pytest.raises(StudyError, match=f"{faulty} of 24 triples .*; the first: .*t-1"):
        triples.build(table)
    with pytest.raises(StudyError, match="There are no triples"):
        triples.build(anchors(1, anchor="All men are mortal."), "rule_based")


def put(table, folder):
    return artefacts.write_table(table, folder / "triples" / "anchors.parquet")


def test_anchors_that_cannot_be_used_are_refused_with_what_makes_them(tmp_path):
    make = "Make it: nblib run 03"
    with pytest.raises(StudyError, match=f"anchors.parquet isn't there. {make}"):
        triples.load_anchors(tmp_path / "anchors.parquet")
    table = triples.split(anchors(), dev=1)
    file = put(table, tmp_path)
    pd.testing.assert_frame_equal(triples.load_anchors(file)[table.columns], table)
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(StudyError, match=r"anchors.parquet can't be read, it is damaged"):
        triples.load_anchors(file)


def test_anchors_with_a_held_out_one_among_those_in_use_are_refused(tmp_path):
    table = held_out_anchors().head(3).assign(split=["held out", "train", "held out"])
    with pytest.raises(StudyError, match=f"would train on 1 held-out anchors, the first of them {table.id[1]}"):
        triples.load_anchors(put(table, tmp_path))
    with pytest.raises(StudyError, match=r"split \(.*row 2\) called 'test'"):
        triples.load_anchors(put(anchors().assign(split=["train", "test", "dev"]), tmp_path))


def test_variants_of_ones_own_are_used_as_they_are_and_need_neither_cues_nor_entailment(tmp_path):
    own = pd.concat([anchors(4), held_out_anchors().head(1)]).drop(columns=["entailment", "register"])
    own.to_csv(tmp_path / "own.csv", index=False)
    given = triples.load_variants(tmp_path / "own.csv")
    pd.testing.assert_frame_equal(given[own.columns], own.reset_index(drop=True))
    assert given[["entailment", "word_cue", "phrase_cue"]].isna().all(axis=None)
    split = triples.split(given, dev=1)
    assert split.split.value_counts().to_dict() == {"train": 3, "dev": 1, "held out": 1}
    assert len(triples.load_anchors(put(split, tmp_path))) == 5
    assert triples.load_variants("authored").equals(corpora.load("authored_triples"))


HELD = held_out_anchors().iloc[0]


@pytest.mark.parametrize(
    ("column", "text"), [("anchor", HELD.anchor), ("id", HELD.id), ("anchor", anchors().anchor[0])]
)
def test_variants_that_share_an_anchor_or_a_held_out_id_are_refused_with_their_line(column, text, tmp_path):
    own = anchors()
    own.loc[1, column] = text
    own.to_json(tmp_path / "own.jsonl", orient="records", lines=True)
    with pytest.raises(StudyError, match=r"own.jsonl, line 2: "):
        triples.load_variants(tmp_path / "own.jsonl")


def test_exported_triples_load_in_one_line(tmp_path, monkeypatch):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")
    parts = {"train": triples.build(anchors(4)), "dev": triples.build(anchors(2), "mixed")}
    folder = triples.save(tmp_path / "authored_triples", parts, 60, 0, "authored", 86)
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "hf"))
    assert list(loaded) == ["train", "dev"]
    for name, part in parts.items():
        pd.testing.assert_frame_equal(loaded[name].to_pandas(), part, check_dtype=False)
    card = (folder / "README.md").read_text()
    assert "Train: 32 of 4 anchors; dev: 4 of 2 anchors" in card and "not the authors' HedgeTriple" in card
