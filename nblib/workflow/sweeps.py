"""The trainings of a configuration: its section `trainings`, in which a training stands by name, or many as variants × seeds.

    trainings:
      hedge-mpnet: {base: all-mpnet-base-v2, method: lora, score: official, adapter: true}
      sweep:                         # gives both-s0, both-s1, only-hedging-s0
        common: {base: all-MiniLM-L6-v2, score: mini}
        seeds: [0, 1]
        variants: {both: {}, only-hedging: {training_data: hedging, seeds: [0]}}   # variant → what differs, also in its `kinds`

What a training says beside notebook 04's parameters: `OWN_KEYS`.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from nblib import paths
from nblib.errors import StudyError

USUAL = {"architecture": "bi-encoder", "training_data": "both", "evaluate_every_epoch": True}  # notebook 04's defaults
# For the workflow: the form of the benchmarks that it is scored on, which, how, and which of MTEB's tasks; whether notebook 07
# shows its scores and 06 fits an adapter for it; the folder of one that ships; the sweep that it belongs to; of a language
# model's LoRA the tasks asked
OWN_KEYS = ("score", "benchmarks", "brief", "general", "adapter", "shipped", "of", "seeds", "asked")


def declared(config: Mapping) -> dict[str, dict]:
    """Every training: name → all its settings, and `of`, the sweep that it belongs to ("" for one by name); a StudyError where
    two have one name, or one has no base."""
    trainings: dict[str, dict] = {}
    for key, entry in config.get("trainings", {}).items():
        for name, settings in (_variants(entry) if "variants" in entry else {key: entry}).items():
            if name in trainings or "base" not in settings:
                raise StudyError(f"The training {name} has no base, or another training has its name.")
            trainings[name] = {**settings, "of": key if "variants" in entry else ""}
    return trainings


def _variants(sweep: Mapping) -> dict[str, dict]:
    common, trainings = sweep["common"], {}
    for variant, own in sweep["variants"].items():
        kinds = dict(common.get("kinds", {}))
        for name, settings in own.get("kinds", {}).items():
            kinds[name] = {**kinds.get(name, {}), **(settings or {})}
            if settings is None:  # takes the kind out
                del kinds[name]
        mixed = {"kinds": kinds} if kinds else {}
        for seed in own.get("seeds", sweep["seeds"]):
            trainings[f"{variant}-s{seed}"] = {**common, **own, "variant": variant, "seed": seed, **mixed}
    return trainings


def parameters(settings: Mapping) -> dict:
    """The parameters of notebook 04 in a training's settings."""
    return {key: value for key, value in settings.items() if key not in OWN_KEYS}


def which(trainings: Mapping[str, Mapping], **wanted: object) -> list[str]:
    """The names of those trainings whose settings are as wanted."""
    return [name for name, own in trainings.items() if wanted.items() <= {**USUAL, **own}.items()]


def by_file_name(systems: Iterable[str]) -> dict[str, str]:
    """Systems as their files are named → as the configuration names them: a folder has its last part's name, and
    maxsim:<encoder> no colon."""
    names = {}
    for given in systems:
        prefix, _, model = given.rpartition(":")
        name = Path(model).name if paths.resolve(model).is_dir() else model.replace("/", "__")
        names["-".join(filter(None, [prefix, name]))] = given
    return names
