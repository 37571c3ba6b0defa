"""Systems of every architecture Weller compares (§4.2) that has no single vector per text: chance, TF-IDF, sparse,
late-interaction and cross-encoder models.

`load(name)` takes a name in `data/registries/rankers.yaml`, a folder that sentence-transformers saved, or `maxsim:` before any
encoder's name. `nblib.models.systems` loads these and encoders alike.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nblib import paths, shipped
from nblib.errors import StudyError
from nblib.models import completeness, encoders
from nblib.models.ranker_architectures.base import Ranker, RankerError
from nblib.models.ranker_architectures.cross_encoder import Cross, MonoT5
from nblib.models.ranker_architectures.late_interaction import LateInteraction, token_maxsim
from nblib.models.ranker_architectures.lexical import Chance, Sparse, TfIdf

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
def entries() -> dict[str, RankerSpec]:
    """All registered rankers by name."""
    return shipped.read_registry("rankers.yaml", RankerSpec)


CLASSES = {"SparseEncoder": Sparse, "MultiVectorEncoder": LateInteraction, "CrossEncoder": Cross}  # its class → ours


def load(name: str, *, allow_remote_code: bool = False, device: str | None = None) -> Ranker:
    """Load a ranker, its weights in float32.

    Args:
        name: a registered ranker, the folder of a sparse, multi-vector or cross-encoder, or `maxsim:` and an encoder's name
            (as `encoders.load` takes it).
        allow_remote_code, device: as `encoders.load`.

    Raises:
        RankerError: nothing of that name can be loaded.
        ModelError: as `encoders.load`, for the encoder after `maxsim:`.
    """
    if name.startswith(MAXSIM):
        base = encoders.load(name.removeprefix(MAXSIM), allow_remote_code=allow_remote_code, device=device)
        return token_maxsim(base)
    spec, folder = entries().get(name), paths.resolve(name)
    if local := spec is None and folder.is_dir():
        completeness.check_folder(folder)
        spec = RankerSpec(name=folder.name, kind=_kind_of(folder), hub=str(folder))
    if spec is None:
        raise RankerError(
            f"There is no ranker called {name!r}. Registered: {', '.join(entries())}. You can also give a folder, or {MAXSIM} "
            "before an encoder's name."
        )
    if spec.kind == "paddle":
        raise RankerError(
            f"{name} can't be loaded: its weights exist only for PaddlePaddle, which this study doesn't use."
        )
    try:
        ranker = _LOADERS[spec.kind](spec, device)
        if local:
            completeness.check_weights(ranker.model, folder)
    except StudyError:
        raise
    except Exception as error:  # of half a dozen libraries, each with its own
        why = str(error).splitlines()[0] if str(error) else ""
        raise RankerError(f"{name} could not be loaded from {spec.hub} ({type(error).__name__}: {why}).") from error
    return ranker


def saved_in(folder: Path) -> str | None:
    """What sentence-transformers saved in a folder, as it calls it; None where it saved nothing."""
    about = folder / "config_sentence_transformers.json"
    return json.loads(about.read_text(encoding="utf-8")).get("model_type") if about.is_file() else None


def _kind_of(folder: Path) -> str:
    saved = saved_in(folder)
    if saved not in CLASSES:
        raise RankerError(
            f"{folder} holds {f'a {saved}' if saved else 'no model of sentence-transformers'}, not one of {', '.join(CLASSES)}. "
            f"To rank by the token vectors of an encoder, give {MAXSIM} before its name: {MAXSIM}{folder.name}."
        )
    return CLASSES[saved].kind


def _sentence_transformers(spec: RankerSpec, device: str | None) -> Ranker:
    import sentence_transformers

    if spec.kind == "late-interaction":
        _check_projection(spec)
    name, ranker = next((name, ranker) for name, ranker in CLASSES.items() if ranker.kind == spec.kind)
    options = {"revision": spec.revision, "device": device, "model_kwargs": {"dtype": "float32"}}
    model = getattr(sentence_transformers, name)(spec.hub, **options)
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
    """Where the weights are: the hub's name and revision, or the folder, relative to the project's root."""
    if spec.revision:
        return f"{spec.hub}@{spec.revision}"
    return str(spec.hub).removeprefix(f"{paths.PROJECT_ROOT}/")


_LOADERS = {
    "chance": lambda spec, device: Chance(spec.name),
    "tf-idf": lambda spec, device: TfIdf(spec.name),
    **{ranker.kind: _sentence_transformers for ranker in CLASSES.values()},
    "monot5": _monot5,
}
