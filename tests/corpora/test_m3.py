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
    assert derive("Aspirin reduces the risk of stroke. ").iloc[0].to_dict() == {
        "id": "level2/0",
        "claim": "Aspirin reduces the risk of stroke.",
        "negation": "Aspirin doesn't reduce the risk of stroke.",
        "no_evidence": "There is no evidence that aspirin reduces the risk of stroke.",
        "hedged": "Aspirin might reduce the risk of stroke.",
    }
    acronym = derive("IOP decreased after surgery.").no_evidence.item()
    assert acronym == "There is no evidence that IOP decreased after surgery."


def test_other_statements_are_left_out():
    assert derive(
        "Aspirin may reduce the risk of stroke.",
        "Aspirin did not reduce the risk of stroke.",
        "Our results show that aspirin reduces the risk of stroke.",
        "Aspirin reduces the risk. It is safe.",
    ).empty


@pytest.mark.parametrize(("name", "claims"), [("m3_mini", 60), pytest.param("m3", 83, marks=pytest.mark.official)])
def test_every_claim_has_its_three_pairs(name, claims):
    pairs = m3.load(name)
    assert len(pairs) == 3 * claims and pairs.claim.nunique() == pairs.id.nunique() == claims
    assert pairs.groupby("kind").score.first().to_dict() == m3.SCORES
    assert (pairs.variant != pairs.claim).all()
