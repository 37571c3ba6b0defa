"""Which trainings a configuration asks for: single ones by name, and sweeps as variants × seeds.

    trainings:                       # name → notebook 04's parameters, `score`: what notebook 07 scores it on, and
      hedge-mpnet: {base: all-mpnet-base-v2, method: lora, score: official, adapter: true}  # whether notebook 06 adapts it
    sweep:
      common: {base: all-MiniLM-L6-v2, score: sample}
      seeds: [0, 1, 2]
      variants:                      # variant → what differs; each with its own seeds where it says so
        both: {}
        size-100: {size: 100}
        blends: {blends: [0.5], seeds: [0]}

gives the trainings hedge-mpnet, both-s0, both-s1, …, size-100-s2, blends-s0; and of the last the encoder blends-s0-a050 too.
"""

from collections.abc import Mapping

OWN_KEYS = ("score", "seeds", "adapter")  # what a training says to the workflow, not to notebook 04


class SweepError(ValueError):
    """A configuration of trainings that can't be carried out."""


def declared(config: Mapping) -> dict[str, dict]:
    """Every training the configuration asks for, with everything it says: name → settings.

    Raises:
        SweepError: two have one name, or one has no base.
    """
    found = {name: dict(settings) for name, settings in config.get("trainings", {}).items()}
    sweep = config.get("sweep", {})
    for variant, own in sweep.get("variants", {}).items():
        for seed in own.get("seeds", sweep["seeds"]):
            name = f"{variant}-s{seed}"
            if name in found:
                raise SweepError(f"Two trainings are called {name}. Rename one.")
            found[name] = {**sweep["common"], **own, "seed": seed}
    for name, settings in found.items():
        if "base" not in settings:
            raise SweepError(f"The training {name} says no base. Add e.g. base: all-MiniLM-L6-v2.")
    return found


def trainings(config: Mapping) -> dict[str, dict]:
    """name → the parameters of notebook 04."""
    return {
        name: {key: value for key, value in settings.items() if key not in OWN_KEYS}
        for name, settings in declared(config).items()
    }


def scored(config: Mapping) -> dict[str, str]:
    """The tuned encoders that notebook 07 scores: name → the training it comes from (itself, or the one it is a blend of)."""
    found = {}
    for name, settings in declared(config).items():
        if "score" in settings:
            blends = [f"{name}-a{100 * alpha:03.0f}" for alpha in settings.get("blends", [])]
            found |= dict.fromkeys([name, *blends], name)
    return found


def benchmarks(config: Mapping, training: str) -> str:
    """What notebook 07 scores a training's encoders on: mini, official or sample."""
    return declared(config)[training]["score"]


def adapted(config: Mapping) -> list[str]:
    """The trainings by name (not of the sweep) whose encoder notebook 06 fits an adapter for: both cures at once."""
    return [name for name, settings in config.get("trainings", {}).items() if settings.get("adapter")]


def cures(config: Mapping, encoder: str) -> list[str]:
    """The trainings whose encoder cures this one: named (not of the sweep), made from it, scored on what it is scored on."""
    on = config["encoder_benchmarks"]["benchmarks"]
    single = config.get("trainings", {})
    return [name for name in single if single[name]["base"] == encoder and single[name].get("score") == on]
