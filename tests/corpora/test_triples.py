"""Anchors to triples: what passes the filter, what a training_data pairs with what, and what must never be trained on."""

import pandas as pd
import pytest

from nblib import artefacts, corpora
from nblib.corpora import hedgetriple, triples
from nblib.corpora.hedgetriple import HEDGES, NEGATIONS
from nblib.corpora.triples import TripleError
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


# --- the filter -------------------------------------------------------------------------------------------------------


def test_one_far_variant_drops_its_anchor_and_no_other():
    table = anchors()
    table.loc[1, "lexical"] += " and" * 20
    assert triples.filtered(table).id.tolist() == ["t-0", "t-2"]


@pytest.mark.parametrize(("length", "kept"), [(59, 2), (60, 2), (61, 1)])
def test_a_variant_at_the_threshold_itself_passes(length, kept):
    table = anchors(2)
    table.loc[0, "phrase"] = table.anchor[0] + "x" * length
    assert len(triples.filtered(table, 60)) == kept


def test_a_filter_that_leaves_nothing_is_an_error():
    with pytest.raises(TripleError, match="No anchor of 3 has all six variants within 4 characters"):
        triples.filtered(anchors(), 4)


# --- splits and subsets -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authored():
    return corpora.load("hedgetriple").drop(columns="split")


@pytest.fixture(scope="module")
def apart(authored):
    return triples.split(authored, dev=100, seed=0)


def test_a_held_out_anchor_is_in_no_part_to_train_or_choose_on(authored, apart):
    assert apart.split.value_counts().to_dict() == {"train": len(authored) - 400, "held out": 300, "dev": 100}
    assert set(apart.id[apart.split == "held out"]) == set(hedgetriple.held_out())
    assert sorted(apart.id) == sorted(authored.id), "every anchor is in exactly one part"


def test_the_seed_decides_the_split(authored, apart):
    pd.testing.assert_frame_equal(triples.split(authored, dev=100, seed=0), apart)
    other = triples.split(authored, dev=100, seed=1)
    assert set(other.id[other.split == "dev"]) != set(apart.id[apart.split == "dev"])


@pytest.mark.parametrize("dev", [3, 4, -1])
def test_a_dev_part_that_leaves_nothing_to_train_on_or_is_negative_is_refused(dev):
    with pytest.raises(TripleError, match=f"It is {dev}"):
        triples.split(anchors(3), dev=dev)


def test_smaller_subsets_lie_within_larger_ones(apart):
    train = apart[apart.split == "train"]
    sizes = [10, 100, 1000]
    nested = [set(triples.subset(train, size).id) for size in sizes]
    assert [len(ids) for ids in nested] == sizes
    assert nested[0] < nested[1] < nested[2]
    for size in (0, -1, len(train) + 1):
        with pytest.raises(TripleError, match=f"{size} of {len(train)} anchors"):
            triples.subset(train, size)


def test_a_training_set_holds_train_anchors_alone(apart):
    train = set(apart.id[apart.split == "train"])
    whole = triples.training_set(apart, "verbal")
    assert set(whole.id) == train
    part = triples.training_set(apart, "verbal", size=5)
    assert part.id.unique().tolist() == whole.id.unique().tolist()[:5]


# --- training_datas ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("training_data", "positives", "negatives"),
    [
        ("both", HEDGES, NEGATIONS),
        ("only negation", ["entailment"], NEGATIONS),
        ("only hedging", HEDGES, ["verbal"]),
        *((kind, HEDGES, [kind]) for kind in NEGATIONS),
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


@pytest.mark.parametrize(
    ("training_data", "each"),
    [("both", 8), ("only negation", 4), ("only hedging", 2), ("verbal", 2), ("affixal", 2), ("mixed", 2)],
)
def test_a_training_data_has_its_size(training_data, each):
    assert triples.build(anchors(5), training_data).groupby("id").size().tolist() == [each] * 5


def test_mixed_draws_a_type_for_each_hedge_by_its_seed():
    built = triples.build(anchors(40), "mixed", seed=3)
    pd.testing.assert_frame_equal(built, triples.build(anchors(40), "mixed", seed=3))
    assert built.groupby("id").hedge.agg(list).map(tuple).unique().tolist() == [HEDGES]
    assert set(built.negation) == set(NEGATIONS)
    assert not built.equals(triples.build(anchors(40), "mixed", seed=4))


def test_rule_based_uses_the_tools_negation_and_leaves_out_what_it_cannot_negate():
    table = anchors(3, anchor=["The horse is white.", "All men are mortal.", "A man is playing the piano."])
    built = triples.build(table, "rule-based")
    assert built.id.tolist() == ["t-0", "t-0", "t-2", "t-2"]
    assert built.negative.unique().tolist() == ["The horse isn't white.", "A man isn't playing the piano."]
    assert built.hedge.tolist() == [*HEDGES, *HEDGES]
    assert set(built.negation) == {"rule"}


def test_both_sides_of_a_nevir_pair_are_triples():
    pairs = pd.DataFrame([{"id": "n", "q1": "who?", "q2": "who not?", "doc1": "he did", "doc2": "he didn't"}])
    built = triples.nevir(pairs)[["anchor", "positive", "negative"]]
    assert built.values.tolist() == [["who?", "he did", "he didn't"], ["who not?", "he didn't", "he did"]]


@pytest.mark.official
def test_nevirs_last_ten_pairs_are_never_trained_on():
    pairs = corpora.load("nevir", "train_sample")
    built = triples.training_set(anchors(), "NevIR")
    assert len(built) == 2 * (len(pairs) - 10)
    assert set(built.id) == set(pairs.id[:-10])
    assert len(triples.training_set(anchors(), "NevIR", size=7)) == 14
    with pytest.raises(TripleError, match=f"{len(pairs)} of {len(pairs) - 10} anchors"):
        triples.training_set(anchors(), "NevIR", size=len(pairs))


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "text", "fault"),
    [
        ("verbal", "", "2 triples have an empty text"),
        ("word", " \n", "4 triples have an empty text"),
        ("phrase", None, "4 triples have an empty text"),
        ("verbal", "The door of house 1 is red.", "2 triples have two identical texts"),
        ("word", "The door of house 1 is red.", "4 triples have two identical texts"),
        ("word", "The door of house 1 is red. affixal", "1 triples have two identical texts"),
    ],
)
def test_an_unusable_text_is_refused_with_its_anchor(column, text, fault):
    table = anchors()
    table.loc[1, column] = text
    with pytest.raises(TripleError, match=f"{fault}; the first is anchor t-1, (word|phrase) / "):
        triples.build(table)


def test_triples_without_a_column_or_without_rows_are_refused():
    built = triples.build(anchors())
    with pytest.raises(TripleError, match="lack the columns positive, hedge"):
        triples.check(built.drop(columns=["positive", "hedge"]))
    with pytest.raises(TripleError, match="There are no triples"):
        triples.check(built.head(0))
    with pytest.raises(TripleError, match="There are no triples"):
        triples.build(anchors(1, anchor="All men are mortal."), "rule-based")


def test_an_unknown_training_data_lists_the_known_ones():
    with pytest.raises(TripleError, match="Unknown training data 'all'; known: both, only negation"):
        triples.build(anchors(), "all")


def put(table, folder):
    return artefacts.write_table(table, folder / "triples" / "anchors.parquet")


def test_anchors_come_back_as_they_were_left(tmp_path):
    table = triples.split(anchors(), dev=1)
    pd.testing.assert_frame_equal(triples.load_anchors(put(table, tmp_path)), table)


def test_anchors_that_cannot_be_used_are_refused_with_what_makes_them(tmp_path):
    make = "Make it: nblib run 03"
    with pytest.raises(TripleError, match=f"There are no anchors at .*anchors.parquet.*{make}"):
        triples.load_anchors(tmp_path / "anchors.parquet")
    table = triples.split(anchors(), dev=1)
    with pytest.raises(TripleError, match=f"has no column phrase, split.*{make}"):
        triples.load_anchors(put(table.drop(columns=["split", "phrase"]), tmp_path))
    file = put(table, tmp_path)
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(StudyError, match=r"anchors.parquet can't be read, it is damaged"):
        triples.load_anchors(file)


@pytest.mark.parametrize("part", ["train", "dev"])
def test_anchors_with_a_held_out_one_among_those_in_use_are_refused(part, tmp_path):
    leaked = hedgetriple.held_out()[7]
    table = anchors().assign(split=["held out", part, part], id=[hedgetriple.held_out()[0], leaked, "t-1"])
    with pytest.raises(TripleError, match=f"would use 1 held-out anchors .the first is {leaked}"):
        triples.load_anchors(put(table, tmp_path))


# --- export -----------------------------------------------------------------------------------------------------------


def test_exclusions_ask_both_ways_round():
    table = triples.exclusions()
    assert len(table) == 400
    query, twin = table[table.id == "ex-000"].to_dict("records")
    assert (query["positive"], query["negative"]) == (twin["negative"], twin["positive"])
    assert query["anchor"] != twin["anchor"]
    assert table.anchor.is_unique


def test_the_training_data_with_exclusions_is_both_and_they():
    apart = anchors(4).assign(split="train")
    table = triples.training_set(apart, "both + exclusions")
    assert len(table) == 32 + 400
    pd.testing.assert_frame_equal(table.head(32), triples.training_set(apart, "both"))


def test_exported_triples_load_in_one_line(tmp_path, monkeypatch):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")
    parts = {"train": triples.build(anchors(4)), "dev": triples.build(anchors(2), "mixed")}
    folder = triples.save(tmp_path / "hedgetriple", parts, triples.card(parts, 60, 0))
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "hf"))
    assert list(loaded) == ["train", "dev"]
    for name, part in parts.items():
        pd.testing.assert_frame_equal(loaded[name].to_pandas(), part, check_dtype=False)
    card = (folder / "README.md").read_text()
    assert card.startswith("---\nlicense: cc-by-4.0\n")
    assert "| train | 4 | 32 |\n| dev | 2 | 4 |" in card
    assert "this is not the authors' HedgeTriple" in card


def test_unusable_triples_are_not_exported(tmp_path):
    with pytest.raises(TripleError, match="empty text"):
        triples.save(tmp_path / "out", {"train": triples.build(anchors()).assign(negative=" ")}, "card")
    assert list((tmp_path / "out").iterdir()) == []
