"""Which trainings a configuration asks for."""

import pytest

from nblib.workflow import sweeps

CONFIG = {
    "04": {
        "trainings": {"single": {"base": "A", "size": 3, "score": "mini", "adapter": True}, "unscored": {"base": "A"}},
        "sweep": {
            "common": {"base": "B", "epochs": 1, "score": "sample"},
            "seeds": [0, 1],
            "variants": {"both": {}, "between": {"epochs": 2, "interpolations": [0.25, 0.5], "seeds": [7]}},
        },
    },
    "07": {"common": {"data": "mini"}},
    "09": {"trainings": {"reranker": {"architecture": "cross-encoder", "data": "nevir", "learning_rate": 1e-4, "score": "mini"}}},
    "10": {"trainings": {"family": {"architecture": "bi-encoder", "data": "nli", "seed": 0}}},
}  # fmt: skip


def test_variants_are_multiplied_by_seeds_and_take_what_is_common():
    found = sweeps.trainings(CONFIG)
    assert list(found) == ["single", "unscored", "both-s0", "both-s1", "between-s7"]
    assert found["both-s1"] == {"base": "B", "epochs": 1, "seed": 1}
    assert found["between-s7"] == {"base": "B", "epochs": 2, "interpolations": [0.25, 0.5], "seed": 7}
    assert found["single"] == {"base": "A", "size": 3}


def test_a_variant_of_a_mixture_changes_adds_or_takes_out_a_kind():
    common = {"base": "B", "kinds": {"statements": {"loss": "x", "repeats": 2}, "contrast": {"loss": "y"}}}
    variants = {
        "plain": {},
        "weighted": {"kinds": {"statements": {"repeats": 1, "weight": 0.5}}},
        "without": {"kinds": {"contrast": None}},
        "more": {"kinds": {"exclusions": {"loss": "z"}}},
    }
    config = {"04": {"mixtures": {"common": common, "seeds": [0], "variants": variants}}}
    found = {name: settings["kinds"] for name, settings in sweeps.trainings(config).items()}
    assert found["plain-s0"] == common["kinds"]
    assert found["weighted-s0"] == {
        "statements": {"loss": "x", "repeats": 1, "weight": 0.5},
        "contrast": {"loss": "y"},
    }
    assert found["without-s0"] == {"statements": {"loss": "x", "repeats": 2}}
    assert found["more-s0"] == {**common["kinds"], "exclusions": {"loss": "z"}}


def test_interpolations_are_scored_as_encoders_of_their_training():
    assert sweeps.scored(CONFIG) == {
        "single": "single", "both-s0": "both-s0", "both-s1": "both-s1", "between-s7": "between-s7",
        "between-s7-a025": "between-s7", "between-s7-a050": "between-s7",
    }  # fmt: skip
    assert sweeps.data(CONFIG, "both-s0") == "sample"


def test_an_intervention_is_named_and_scored_like_its_base():
    assert sweeps.interventions(CONFIG, "A") == ["single"]
    assert sweeps.interventions(CONFIG, "B") == []


def test_a_merged_encoder_is_of_record_where_it_is_scored():
    ways = {"soup": {"way": "mean", "loras": ["single", "unscored"], "score": "mini"}}
    ways["tried"] = {"way": "sum", "loras": ["both-s0", "both-s1"]}
    config = CONFIG | {"04": CONFIG["04"] | {"merged": ways}}
    assert {name: settings["base"] for name, settings in sweeps.merged(config).items()} == {"soup": "A", "tried": "B"}
    assert list(sweeps.of_record(config)) == ["single", "unscored", "soup"]
    assert sweeps.scored(config) == sweeps.scored(CONFIG) | {"soup": "soup"}
    assert sweeps.data(config, "soup") == "mini"
    assert sweeps.interventions(config, "A") == ["single", "soup"]


def test_mixtures_on_a_larger_base_are_those_of_record_that_are_not_on_the_sweeps():
    kinds = {"statements": {"loss": "symmetric-supcon"}}
    mixed = {"large": {"base": "L", "kinds": kinds}, "small": {"base": "S", "kinds": kinds}, "plain": {"base": "L"}}
    merged = {"soup": {"way": "mean", "loras": ["large", "plain"], "score": "mini"}}
    config = {"04": {"trainings": mixed, "mixtures": {"common": {"base": "S"}, "seeds": [0]}, "merged": merged}}
    assert sweeps.larger_mixtures(config) == ["large", "soup"]
    assert sweeps.larger_mixtures({}) == []


def test_an_adapter_is_fitted_for_what_asks_for_it():
    assert sweeps.adapted(CONFIG) == ["single"]


def test_a_configuration_without_trainings_asks_for_none():
    assert sweeps.trainings({}) == {} == sweeps.scored({})
    assert sweeps.adapted({}) == []


def test_a_training_by_command_is_told_by_its_options():
    found = sweeps.by_command(CONFIG)
    assert list(found) == ["reranker", "family"]
    assert sweeps.options(found["reranker"]) == [
        "--architecture", "cross-encoder", "--data", "nevir", "--learning-rate", "0.0001",
    ]  # fmt: skip
    assert sweeps.options(found["family"])[-2:] == ["--seed", "0"]


@pytest.mark.parametrize(
    ("read", "config", "message"),
    [
        (sweeps.by_command, {"09": CONFIG["09"], "10": CONFIG["09"]}, "Two trainings are called reranker"),
        (sweeps.by_command, {"09": {"trainings": {"x": {"data": "nevir"}}}}, "x needs an architecture and data"),
        (sweeps.trainings, {"04": {"trainings": {"x": {"size": 3}}}}, "x has no base"),
        (sweeps.merged, {"04": {"trainings": {"x": {"base": "A"}}, "merged": {"x": {}}}}, "are called x"),
        (sweeps.merged, {"04": {"merged": {"m": {"loras": ["x"]}}}}, "m is merged of x, which is no training"),
        (sweeps.trainings, {"04": CONFIG["04"] | {"trainings": {"both-s0": {"base": "A"}}}}, "are called both-s0"),
    ],
)
def test_an_impossible_configuration_is_refused(read, config, message):
    with pytest.raises(sweeps.SweepError, match=message):
        read(config)
