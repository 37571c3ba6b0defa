"""The rule that rebuilds M3-Counterfactual."""

import pandas as pd
import pytest

from nblib.corpora import m3, negator


@pytest.mark.parametrize(
    ("sentence", "hedged"),
    [
        ("Aspirin reduces the risk of stroke.", "Aspirin might reduce the risk of stroke."),
        ("Aspirin reduced the risk of stroke.", "Aspirin might have reduced the risk of stroke."),
        ("The drug is associated with pain.", "The drug might be associated with pain."),
        ("The drug was associated with pain.", "The drug might have been associated with pain."),
        ("The drug has reduced pain.", "The drug might have reduced pain."),
        ("The drug will reduce pain.", None),
    ],
)
def test_the_hedge_goes_into_the_finite_verb(sentence, hedged):
    assert m3.hedge(negator.parse(sentence)) == hedged


def derive(*statements):
    docids = [str(k) for k in range(len(statements))]
    return m3.derive(pd.DataFrame({"docid": docids, "target_text": statements, "split": "level2"}))


def test_a_plain_claim_gets_its_three_variants():
    row = derive("Aspirin reduces the risk of stroke. ").iloc[0]
    assert row.tolist() == [
        "level2/0", "Aspirin reduces the risk of stroke.", "Aspirin doesn't reduce the risk of stroke.",
        "There is no evidence that aspirin reduces the risk of stroke.", "Aspirin might reduce the risk of stroke.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "statement",
    [
        "Aspirin may reduce the risk of stroke.",
        "There is evidence of a benefit.",
        "Aspirin did not reduce the risk of stroke.",
        "However, aspirin reduces the risk of stroke.",
        "Our results show that aspirin reduces the risk of stroke.",
        "Aspirin reduces the risk. It is safe.",
    ],
)
def test_other_statements_are_left_out(statement):
    assert derive(statement).empty


def test_an_acronym_keeps_its_capitals():
    sentence = derive("IOP decreased after surgery.").no_evidence.item()
    assert sentence == "There is no evidence that IOP decreased after surgery."


def test_the_miniature_has_the_same_shape():
    pairs = m3.load("m3_mini")
    assert len(pairs) == 180 and pairs.groupby("kind").score.first().to_dict() == m3.SCORES


@pytest.mark.official
def test_the_official_statements_give_83_claims():
    pairs = m3.load()
    assert pairs.claim.nunique() == 83 and len(pairs) == 249 and pairs.id.nunique() == 83
    assert (pairs.variant != pairs.claim).all()
