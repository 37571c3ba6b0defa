"""Rankers of every architecture Weller compares (§4.2) that has no single vector per text, under one interface.

Chance, TF-IDF, sparse, late-interaction and cross-encoder models: each says how well a document answers a query. (Encoders
rank through `nblib.tasks` itself, DPR with its two towers among them.) `load(name)` takes a name in
`data/registries/rankers.yaml`, a folder that sentence-transformers saved, or `maxsim:` before any encoder's name.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from nblib import models, paths
from nblib.rankers.base import Ranker, RankerError
from nblib.rankers.cross import Cross, MonoT5
from nblib.rankers.tokens import LateInteraction, token_maxsim
from nblib.rankers.words import Chance, Sparse, TfIdf

MAXSIM = "maxsim:"


@dataclass(frozen=True)
class RankerSpec:
    """A registered ranker.

    Attributes:
        kind: chance, tf-idf, sparse, late-interaction, cross-encoder, monot5, or paddle (can't be loaded here).
        hub, revision: where its weights are.
        parameters: in millions, as the paper prints them.
    """

    name: str
    kind: str
    hub: str | None = None
    revision: str | None = None
    parameters: float | None = None


@cache
def registry() -> dict[str, RankerSpec]:
    """All registered rankers by name."""
    declared = yaml.safe_load((paths.DATA / "registries" / "rankers.yaml").read_text(encoding="utf-8"))
    return {name: RankerSpec(name=name, **entry) for name, entry in declared.items()}


KINDS = {"SparseEncoder": "sparse", "MultiVectorEncoder": "late-interaction", "CrossEncoder": "cross-encoder"}


def load(name: str, *, device: str | None = None) -> Ranker:
    """Load a ranker, its weights in float32.

    Args:
        name: a registered ranker, the folder of a sparse, multi-vector or cross-encoder, or `maxsim:` and an encoder's name
            (as `models.load` takes it).
        device: None takes a GPU where there is one.

    Raises:
        RankerError: nothing of that name can be loaded.
        ModelError: as `models.load`, for the encoder after `maxsim:`.
    """
    from safetensors import SafetensorError

    if name.startswith(MAXSIM):
        return token_maxsim(models.load(name.removeprefix(MAXSIM), device=device))
    spec, folder = registry().get(name), paths.resolve(name)
    if spec is None and folder.is_dir():
        spec = RankerSpec(name=folder.name, kind=_kind_of(folder), hub=str(folder))
    if spec is None:
        raise RankerError(
            f"No ranker called {name!r}. Registered: {', '.join(registry())}. Else: a folder, or {MAXSIM} and an encoder."
        )
    if spec.kind == "paddle":
        raise RankerError(f"{name}: its weights were published for PaddlePaddle alone, which this study doesn't use.")
    try:
        return _LOADERS[spec.kind](spec, device)
    except RankerError:
        raise
    except (OSError, ValueError, KeyError, ImportError, SafetensorError) as error:
        why = str(error).splitlines()[0] if str(error) else ""
        raise RankerError(f"{name} could not be loaded from {spec.hub} ({type(error).__name__}: {why}).") from error


def _kind_of(folder: Path) -> str:
    """What sentence-transformers saved in a folder."""
    about = folder / "config_sentence_transformers.json"
    saved = json.loads(about.read_text(encoding="utf-8")).get("model_type") if about.is_file() else None
    if saved not in KINDS:
        raise RankerError(
            f"{folder} holds {f'a {saved}' if saved else 'no model of sentence-transformers'}, not one of {', '.join(KINDS)}. "
            f"An encoder's tokens rank under {MAXSIM}{folder.name}."
        )
    return KINDS[saved]


def _sentence_transformers(spec: RankerSpec, device: str | None) -> Ranker:
    import sentence_transformers

    kind, ranker = {
        "sparse": ("SparseEncoder", Sparse),
        "late-interaction": ("MultiVectorEncoder", LateInteraction),
        "cross-encoder": ("CrossEncoder", Cross),
    }[spec.kind]
    if spec.kind == "late-interaction":
        _check_projection(spec)
    options = {"revision": spec.revision, "device": device, "model_kwargs": {"dtype": "float32"}}
    model = getattr(sentence_transformers, kind)(spec.hub, **options)
    return ranker(model.eval(), spec.name, _source(spec))


def _check_projection(spec: RankerSpec) -> None:
    """To any other model sentence-transformers adds a random projection, and its scores would be noise.

    Raises:
        RankerError: the weights are not those of a late-interaction model it knows.
    """
    from sentence_transformers.util import load_file_path

    marks = [("config_sentence_transformers.json", "model_type"), ("config.json", "architectures")]
    for file, key in marks:
        path = load_file_path(spec.hub, file, revision=spec.revision)
        saved = json.loads(Path(path).read_text(encoding="utf-8")).get(key) if path else None
        if {"MultiVectorEncoder", "ColBERT", "HF_ColBERT"} & {*([saved] if isinstance(saved, str) else saved or [])}:
            return
    raise RankerError(f"{spec.name}: {spec.hub} holds no late-interaction model that sentence-transformers can read.")


def _monot5(spec: RankerSpec, device: str | None) -> Ranker:
    from sentence_transformers.util import get_device_name
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    model = AutoModelForSeq2SeqLM.from_pretrained(spec.hub, revision=spec.revision, dtype="float32")
    tokenizer = AutoTokenizer.from_pretrained(spec.hub, revision=spec.revision)
    return MonoT5(model.to(device or get_device_name()).eval(), tokenizer, spec.name, _source(spec))


def _source(spec: RankerSpec) -> str:
    """Where the weights are: the hub's name and revision, or the folder, told from the project's root (no machine's paths)."""
    if spec.revision:
        return f"{spec.hub}@{spec.revision}"
    return str(spec.hub).removeprefix(f"{paths.PROJECT_ROOT}/")


_LOADERS = {
    "chance": lambda spec, device: Chance(spec.name),
    "tf-idf": lambda spec, device: TfIdf(spec.name),
    **dict.fromkeys(KINDS.values(), _sentence_transformers),
    "monot5": _monot5,
}
