"""The trainings of a configuration: single ones by name, and sweeps as variants × seeds.

    "04":
      trainings:                     # name → notebook 04's parameters, `score`: the data it is scored on, and
        hedge-mpnet: {base: all-mpnet-base-v2, method: lora, score: official, adapter: true}  # whether notebook 06 adapts it
      sweep:
        common: {base: all-MiniLM-L6-v2, score: mini}  # and `benchmarks`, if not all of these data
        seeds: [0, 1, 2]
        variants:                    # variant → what differs; each with its own seeds where it says so
          both: {}
          size-100: {size: 100}
          alpha: {interpolations: [0.5], seeds: [0]}
      mixtures:                      # another sweep, of trainings on several kinds of batches
        common: {base: all-MiniLM-L6-v2, kinds: {statements: {loss: symmetric-supcon}, contrast: {loss: twins}}}
        seeds: [0]
        variants:                    # of `kinds` too a variant says what differs; null takes a kind out
          margin: {kinds: {contrast: {loss: "twins, margin"}}}
          no-contrast: {kinds: {contrast: null}}
      merged:                        # LoRAs of several trainings as one; scored, it is of record as the trainings are
        soup: {way: mean, weights: [0.2, 0.8], loras: [hedge-mpnet, margin-s0], score: official}

gives the trainings hedge-mpnet, both-s0, both-s1, …, size-100-s2, alpha-s0, margin-s0, no-contrast-s0, and the interpolated
encoder alpha-s0-a050.
"09" and "10" have the trainings of other architectures and families, for `nblib train` and `nblib score`.
"""

from collections.abc import Mapping

from nblib.errors import StudyError

OWN_KEYS = ("score", "benchmarks", "seeds", "adapter")  # for the workflow, not for notebook 04
SWEEPS = ("sweep", "mixtures")  # sections of "04"
OPTIONS = ("architecture", "data", "base", "epochs", "learning_rate", "size", "seed", "curve")  # of `nblib train`


class SweepError(StudyError):
    """A configuration of trainings that can't be carried out."""


def section(config: Mapping, number: str, name: str) -> dict:
    """A section of a notebook's configuration; empty where there is none."""
    return config.get(number, {}).get(name, {})


def declared(config: Mapping) -> dict[str, dict]:
    """Every training of notebook 04: name → all its settings.

    Raises:
        SweepError: two have one name, or one has no base.
    """
    found = {name: dict(settings) for name, settings in section(config, "04", "trainings").items()}
    for sweep in (section(config, "04", name) for name in SWEEPS):
        for variant, own in sweep.get("variants", {}).items():
            for seed in own.get("seeds", sweep["seeds"]):
                name = f"{variant}-s{seed}"
                if name in found:
                    raise SweepError(f"Two trainings are called {name}. Rename one.")
                found[name] = {**sweep["common"], **own, "seed": seed}
                if kinds := _kinds(sweep["common"].get("kinds", {}), own.get("kinds", {})):
                    found[name]["kinds"] = kinds
    for name, settings in found.items():
        if "base" not in settings:
            raise SweepError(f"The training {name} has no base. Add e.g. base: all-MiniLM-L6-v2.")
    return found


def _kinds(common: Mapping, own: Mapping) -> dict[str, dict]:
    """The kinds of batches of a variant: the common ones with what it changes, less those it sets to null."""
    together = {name: {**common.get(name, {}), **(own.get(name) or {})} for name in {**common, **own}}
    return {name: settings for name, settings in together.items() if own.get(name, settings) is not None}


def trainings(config: Mapping) -> dict[str, dict]:
    """name → the parameters of notebook 04."""
    return {
        name: {key: value for key, value in settings.items() if key not in OWN_KEYS}
        for name, settings in declared(config).items()
    }


def merged(config: Mapping) -> dict[str, dict]:
    """The encoders with LoRAs of several trainings merged: name → their way, weights, loras, base, and score if they are scored.

    Raises:
        SweepError: one is merged of LoRAs that no training leaves, or has a training's name.
    """
    found, trained = {}, declared(config)
    for name, settings in section(config, "04", "merged").items():
        if name in trained:
            raise SweepError(f"A training and a merged encoder are called {name}. Rename one.")
        if unknown := [lora for lora in settings["loras"] if lora not in trained]:
            raise SweepError(f"{name} is merged of {unknown[0]}, which is no training. Add it, or take another.")
        found[name] = {"base": trained[settings["loras"][0]]["base"], **settings}
    return found


def of_record(config: Mapping) -> dict[str, dict]:
    """The encoders trained or merged by name, not for a sweep's comparison: name → settings."""
    scored_merges = {name: settings for name, settings in merged(config).items() if "score" in settings}
    return section(config, "04", "trainings") | scored_merges


def scored(config: Mapping) -> dict[str, str]:
    """The tuned encoders that are scored: name → its training (itself, or the one whose weights it interpolates)."""
    found = {}
    for name, settings in declared(config).items():
        if "score" in settings:
            between = [f"{name}-a{100 * alpha:03.0f}" for alpha in settings.get("interpolations", [])]
            found |= dict.fromkeys([name, *between], name)
    return found | {name: name for name, settings in merged(config).items() if "score" in settings}


def mixtures(config: Mapping) -> list[str]:
    """The trainings of notebook 04 on several kinds of batches that are a sweep's."""
    single = section(config, "04", "trainings")
    return [name for name, settings in declared(config).items() if "kinds" in settings and name not in single]


def larger_mixtures(config: Mapping) -> list[str]:
    """The encoders of record that learnt from several kinds of batches, or are merged, on another base than the sweep's."""
    base = section(config, "04", "mixtures").get("common", {}).get("base")
    return [
        name
        for name, settings in of_record(config).items()
        if settings.keys() & {"kinds", "loras"} and settings["base"] != base
    ]


def data(config: Mapping, training: str) -> str:
    """The data on which a training's encoders are scored: mini, official or sample."""
    return (declared(config) | merged(config))[training]["score"]


def adapted(config: Mapping) -> list[str]:
    """The single trainings whose encoder also gets an adapter by notebook 06."""
    single = section(config, "04", "trainings")
    return [name for name, settings in single.items() if settings.get("adapter")]


def interventions(config: Mapping, encoder: str) -> list[str]:
    """The encoders of record that start from an encoder and are scored on the same data."""
    on = config["07"]["common"]["data"]
    return [
        name
        for name, settings in of_record(config).items()
        if settings["base"] == encoder and settings.get("score") == on
    ]


def by_command(config: Mapping) -> dict[str, dict]:
    """The trainings of `nblib train`: name → settings.

    Raises:
        SweepError: two have one name, or one has no architecture or data.
    """
    nevir, families = (section(config, number, "trainings") for number in ("09", "10"))
    if both := nevir.keys() & families.keys():
        raise SweepError(f"Two trainings are called {min(both)}. Rename one.")
    found = {**nevir, **families}
    for name, settings in found.items():
        if not {"architecture", "data"} <= settings.keys():
            raise SweepError(f"The training {name} needs an architecture and data.")
    return found


def options(settings: Mapping) -> list[str]:
    """The options of `nblib train` for such a training's settings."""
    return [word for key in OPTIONS if key in settings for word in (f"--{key.replace('_', '-')}", str(settings[key]))]
