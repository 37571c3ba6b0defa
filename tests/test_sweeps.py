"""Which trainings a configuration asks for."""

import pytest

from nblib import sweeps

CONFIG = {
    "encoder_benchmarks": {"benchmarks": "mini"},
    "trainings": {"single": {"base": "A", "size": 3, "score": "mini", "adapter": True}, "unscored": {"base": "A"}},
    "sweep": {
        "common": {"base": "B", "epochs": 1, "score": "sample"},
        "seeds": [0, 1],
        "variants": {"both": {}, "blended": {"epochs": 2, "blends": [0.25, 0.5], "seeds": [7]}},
    },
}


def test_variants_are_multiplied_by_seeds_and_take_what_is_common():
    found = sweeps.trainings(CONFIG)
    assert list(found) == ["single", "unscored", "both-s0", "both-s1", "blended-s7"]
    assert found["both-s1"] == {"base": "B", "epochs": 1, "seed": 1}
    assert found["blended-s7"] == {"base": "B", "epochs": 2, "blends": [0.25, 0.5], "seed": 7}
    assert found["single"] == {"base": "A", "size": 3}


def test_blends_are_scored_as_encoders_of_their_training():
    assert sweeps.scored(CONFIG) == {
        "single": "single", "both-s0": "both-s0", "both-s1": "both-s1", "blended-s7": "blended-s7",
        "blended-s7-a025": "blended-s7", "blended-s7-a050": "blended-s7",
    }  # fmt: skip
    assert sweeps.benchmarks(CONFIG, "both-s0") == "sample"


def test_a_cure_is_named_and_scored_like_its_base():
    assert sweeps.cures(CONFIG, "A") == ["single"]
    assert sweeps.cures(CONFIG, "B") == []


def test_an_adapter_is_fitted_for_what_asks_for_it():
    assert sweeps.adapted(CONFIG) == ["single"]


def test_a_configuration_without_trainings_asks_for_none():
    assert sweeps.trainings({}) == {} == sweeps.scored({})
    assert sweeps.adapted({}) == []


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"trainings": {"x": {"size": 3}}}, "x says no base"),
        ({"trainings": {"both-s0": {"base": "A"}}, "sweep": CONFIG["sweep"]}, "Two trainings are called both-s0"),
    ],
)
def test_what_cant_be_carried_out_says_why(config, said):
    with pytest.raises(sweeps.SweepError, match=said):
        sweeps.trainings(config)
