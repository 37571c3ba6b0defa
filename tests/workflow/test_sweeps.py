"""Which trainings a configuration asks for."""

import pytest

from nblib.errors import StudyError
from nblib.workflow import sweeps

SWEEP = {
    "common": {"base": "B", "epochs": 1, "score": "mini"},
    "seeds": [0, 1],
    "variants": {"both": {}, "longer": {"epochs": 2, "seeds": [7]}},
}
SINGLE = {"base": "A", "size": 3, "score": "mini", "adapter": True}
CONFIG = {"trainings": {"single": SINGLE, "unscored": {"base": "A"}, "sweep": SWEEP}}


def test_variants_are_multiplied_by_seeds_and_take_what_is_common():
    found = {name: sweeps.parameters(settings) for name, settings in sweeps.declared(CONFIG).items()}
    assert list(found) == ["single", "unscored", "both-s0", "both-s1", "longer-s7"]
    assert found["both-s1"] == {"base": "B", "epochs": 1, "variant": "both", "seed": 1}
    assert found["longer-s7"] == {"base": "B", "epochs": 2, "variant": "longer", "seed": 7}
    assert found["single"] == {"base": "A", "size": 3}
    assert sweeps.declared({}) == {}


def test_a_variant_of_a_mixture_changes_adds_or_takes_out_a_kind():
    common = {"base": "B", "kinds": {"statements": {"loss": "x", "repeats": 2}, "contrast": {"loss": "y"}}}
    variants = {
        "plain": {},
        "weighted": {"kinds": {"statements": {"repeats": 1, "weight": 0.5}}},
        "without": {"kinds": {"contrast": None}},
        "more": {"kinds": {"exclusions": {"loss": "z"}}},
    }
    config = {"trainings": {"ablation": {"common": common, "seeds": [0], "variants": variants}}}
    found = {name: settings["kinds"] for name, settings in sweeps.declared(config).items()}
    statements, contrast = common["kinds"].values()
    assert found["plain-s0"] == common["kinds"]
    assert found["weighted-s0"] == {"statements": {"loss": "x", "repeats": 1, "weight": 0.5}, "contrast": contrast}
    assert found["without-s0"] == {"statements": statements}
    assert found["more-s0"] == {**common["kinds"], "exclusions": {"loss": "z"}}


def test_trainings_are_told_apart_by_their_settings_and_the_usual_ones():
    declared = sweeps.declared(CONFIG)
    assert sweeps.which(declared, of="") == ["single", "unscored"]
    assert sweeps.which(declared, architecture="bi-encoder", base="B", epochs=2) == ["longer-s7"]


def test_files_are_named_after_the_last_part_of_a_folder_and_without_a_colon():
    given = ["all-MiniLM-L6-v2", "data/adapters/hedge-mpnet", "maxsim:org/model"]
    assert list(sweeps.by_file_name(given)) == ["all-MiniLM-L6-v2", "hedge-mpnet", "maxsim-org__model"]


@pytest.mark.parametrize("more", [{"x": {"size": 3}}, {"both-s0": {"base": "A"}}])
def test_an_impossible_configuration_is_refused(more):
    with pytest.raises(StudyError, match=f"The training {'x' if 'x' in more else 'both-s0'} has no base, or another"):
        sweeps.declared({"trainings": {**more, **CONFIG["trainings"]}})
