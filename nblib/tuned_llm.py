"""What fine-tuning a language model leaves: a LoRA in a folder of its own, with a card, to be put on its base again."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
from safetensors import SafetensorError
from torch.nn.functional import linear

from nblib import checkpoints, language_models, paths, provenance
from nblib.checkpoints import FinetuningError
from nblib.language_models import Dtype, LanguageModel

if TYPE_CHECKING:
    from peft import PeftConfig, PeftModel
    from transformers import PreTrainedModel

ADAPTER = "adapter_config.json"


class LoraError(FinetuningError):
    """A LoRA that can't be trained, or doesn't fit."""


def load(
    base: str, adapter: str | Path | None = None, *, dtype: Dtype = "bfloat16", device: str | None = None
) -> LanguageModel:
    """A language model (names as in `language_models.load`), with the LoRA of a folder and under that folder's name if one
    is given.

    Raises:
        LoraError: there is no adapter, or it is one for another base.
        LanguageModelError: see `language_models.load`.
    """
    if adapter is None:
        return language_models.load(base, dtype=dtype, device=device)
    folder = paths.resolve(adapter)
    if not (folder / ADAPTER).is_file():
        raise LoraError(
            f"No adapter at {folder}: it has no {ADAPTER}. Make one: python -m nblib.execution 05 out.ipynb"
        )
    config = json.loads((folder / ADAPTER).read_text(encoding="utf-8"))
    trained_on = config.get("base_model_name_or_path") or "an unnamed model"
    if not _same(trained_on, base):
        raise LoraError(
            f"The adapter in {folder} was trained on {trained_on}, not on {base}. Set base to {trained_on}."
        )
    loaded = language_models.load(base, dtype=dtype, device=device)
    from peft import PeftModel

    try:
        model = PeftModel.from_pretrained(loaded.model, str(folder))
    except (RuntimeError, ValueError, OSError, SafetensorError) as error:
        said = str(error).strip().splitlines()[0]
        raise LoraError(
            f"The adapter in {folder} doesn't fit {base} ({type(error).__name__}: {said}): it was trained on other weights of "
            "that name, or is damaged. Train it anew with notebook 05."
        ) from error
    return replace(loaded, name=folder.name, folder=folder, model=model.eval())


def _same(first: str, second: str) -> bool:
    """Whether two names mean one model: as names, or as folders."""
    return first == second or paths.resolve(first) == paths.resolve(second)


def save(trained: LanguageModel, folder: str | Path, card: str, *, base: str, **about: Any) -> Path:
    """Leave the LoRA alone as a folder with a card and a provenance sidecar; nothing half-written is ever there.

    Args:
        card: what to say of it (`model_card`).
        base: what the adapter will say it belongs to.
        about: for the sidecar.
    """
    target = paths.resolve(folder)
    with checkpoints.drafted(target) as draft:
        # else peft asks the hub whether the base's vocabulary is the original one
        trained.model.save_pretrained(str(draft), save_embedding_layers=False)
        file = draft / ADAPTER
        config = {**json.loads(file.read_text(encoding="utf-8")), "base_model_name_or_path": base}
        file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        return checkpoints.in_place(draft, target, card, {"base": base, **about})


@contextmanager
def exact_logits(model: "PreTrainedModel | PeftModel") -> Iterator[None]:
    """Within the block, the vocabulary's logits are computed in float32 whatever the weights are. In bfloat16 they come in steps
    of an eighth, and two answers are often as likely as each other; with a LoRA torch takes fifty times as long for them on a
    CPU, too."""
    head = model.get_output_embeddings()
    weight, bias = head.weight.float(), None if head.bias is None else head.bias.float()
    head.forward = lambda hidden: linear(hidden.float(), weight, bias)
    try:
        yield
    finally:
        del head.forward


def fingerprint(language_model: LanguageModel) -> str:
    """SHA-256 of everything that shapes an answer: weights in their precision, the LoRA's too, and the tokenizer."""
    config = getattr(language_model.model, "peft_config", {})
    settings = json.dumps({name: _settings(one) for name, one in config.items()})
    digest = hashlib.sha256(f"{settings}\n{language_model.tokenizer.chat_template}".encode())
    digest.update(language_model.tokenizer.backend_tokenizer.to_str().encode())
    for key, tensor in sorted(language_model.model.state_dict().items()):
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _settings(config: "PeftConfig") -> list[tuple[str, str]]:
    """An adapter's settings in an order that every process gives them: a set's is another in each."""
    known = config.to_dict().items()
    return sorted((key, str(sorted(value) if isinstance(value, set) else value)) for key, value in known)


def model_card(name: str, settings: Mapping[str, Any], data: str, scored: pd.DataFrame, seconds: float) -> str:
    """A card: what it is, from which data and settings, its dev scores beside the base's.

    Args:
        settings: of the training, with the `base`.
        data: one line on the pairs.
        scored: kind, n, base, tuned (percent right).
    """
    rows = "\n".join(f"| {row.kind} | {row.n} | {row.base:.1f} | {row.tuned:.1f} |" for row in scored.itertuples())
    listed = "\n".join(f"| {key} | {value} |" for key, value in settings.items())
    return f"""---
base_model: {settings["base"]}
library_name: peft
license: other
---

# {name}

A LoRA for {settings["base"]}, fine-tuned to say whether two sentences have opposite meanings (Truong et al., *Learning Robust
Negation Text Representations*, §5.2 and Appendix B, with other data).

**Data.** {data}

**Dev pairs** (percent answered right; nothing here is a test score):

| pairs | n | {settings["base"]} | {name} |
|---|---|---|---|
{rows}

**Settings** (trained in {seconds:.0f} s):

| | |
|---|---|
{listed}

**Provenance.** {provenance.line()}; more in the `.json` beside the folder.

**Use.** `PeftModel.from_pretrained(base, folder)`, or `nblib.tuned_llm.load(base, folder)`. **Limits.** English; one voice of
training data; taught one question, so what it does with others is to be measured (notebook 09).
"""
