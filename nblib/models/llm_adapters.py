"""What fine-tuning a language model leaves: a LoRA in a folder of its own, with a card, to be put on its base again."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from nblib import artefacts, paths
from nblib.errors import StudyError
from nblib.models import completeness, folders, language_models, weights
from nblib.models.folders import ADAPTER_CONFIG, FinetuningError
from nblib.models.language_models import Dtype, LanguageModel

if TYPE_CHECKING:
    from peft import PeftConfig, PeftModel
    from transformers import PreTrainedModel


class LoraError(FinetuningError):
    """A LoRA that can't be trained, or doesn't fit."""


def load(
    base: str, adapter: str | Path | None = None, *, dtype: Dtype = "bfloat16", device: str | None = None
) -> LanguageModel:
    """A language model (names as in `language_models.load`), with the LoRA of a folder and under that folder's name if one
    is given.

    Raises:
        LoraError: there is no adapter, or it is one for another base.
        StudyError: its folder lacks something, or is not as this study wrote it.
        LanguageModelError: see `language_models.load`.
    """
    if adapter is None:
        return language_models.load(base, dtype=dtype, device=device)
    folder = paths.resolve(adapter)
    if not (folder / ADAPTER_CONFIG).is_file():
        raise LoraError(f"No adapter at {folder}: it has no {ADAPTER_CONFIG}. Make one: nblib run 05 out.ipynb")
    completeness.check_folder(folder)
    try:
        trained_on = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))["base_model_name_or_path"]
    except (ValueError, TypeError, KeyError):
        trained_on = None
    if not isinstance(trained_on, str):
        raise LoraError(f"{folder / ADAPTER_CONFIG} names no base_model_name_or_path. Write the base's name there.")
    if not _same(trained_on, base):
        raise LoraError(
            f"The adapter in {folder} was trained on {trained_on}, not on {base}. Set base to {trained_on}."
        )
    loaded = language_models.load(base, dtype=dtype, device=device)
    from peft import PeftModel

    try:
        model = PeftModel.from_pretrained(loaded.model, str(folder))
        completeness.check_lora(model, folder)
    except StudyError:
        raise
    except Exception as error:  # peft, safetensors and transformers each have their own
        reason = next(iter(str(error).strip().splitlines()), "")
        raise LoraError(
            f"The adapter in {folder} doesn't fit {base} ({type(error).__name__}: {reason}): it was trained on other weights of "
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
    with folders.model_folder(folder, card, {"base": base, **about}) as draft:
        # Otherwise peft asks the hub whether the base's vocabulary is the original one
        trained.model.save_pretrained(str(draft), save_embedding_layers=False)
        folders.edit_adapter_config(draft, base)
    return paths.resolve(folder)


@contextmanager
def exact_logits(model: "PreTrainedModel | PeftModel", tokens: Sequence[int] = ()) -> Iterator[None]:
    """Within the block, logits are computed in float32 whatever the weights are: the vocabulary's, or those of some tokens alone.

    In bfloat16 they come in steps of an eighth, and two answers are often as likely as each other. With a LoRA, torch also
    takes fifty times as long for them on a CPU. For inference alone. A block within such a block changes nothing.

    Args:
        tokens: whose logits a model then gives, in this order; none named: all of the vocabulary.
    """
    from torch.nn.functional import linear

    from nblib.models.onednn import PackedLinear, can_pack

    head = model.get_output_embeddings()
    if "forward" in vars(head):
        yield
        return
    rows = list(tokens) or slice(None)
    weight, bias = head.weight[rows].float(), None if head.bias is None else head.bias[rows].float()
    if can_pack(weight):  # few places by a large vocabulary: a fifth of the time
        packed = PackedLinear(weight, bias)
        head.forward = lambda hidden: packed(hidden.float())
    else:
        head.forward = lambda hidden: linear(hidden.float(), weight, bias)
    try:
        yield
    finally:
        del head.forward


def fingerprint(language_model: LanguageModel) -> str:
    """SHA-256 of everything that shapes an answer: weights in their precision, the LoRA's too, and the tokenizer."""
    config = getattr(language_model.model, "peft_config", {})
    settings = json.dumps({name: _settings(one) for name, one in config.items()})
    tokenizer = language_model.tokenizer
    described = f"{settings}\n{tokenizer.chat_template}", tokenizer.backend_tokenizer.to_str()
    return weights.fingerprint(language_model.model, *described)


def _settings(config: "PeftConfig") -> list[tuple[str, str]]:
    """An adapter's settings in an order that every process gives them: a set's is another in each."""
    known = config.to_dict().items()
    return sorted((key, str(sorted(value) if isinstance(value, set) else value)) for key, value in known)


def model_card(name: str, settings: Mapping[str, Any], data: str, scored: pd.DataFrame, seconds: float) -> str:
    """A card: what it is, from which data and settings, its dev scores and the base's.

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

**Provenance.** {artefacts.provenance_line()}; {artefacts.BESIDE}.

**Use.** `PeftModel.from_pretrained(base, folder)`, or `nblib.models.llm_adapters.load(base, folder)`.

**Limits.** English; training data of a single author; one question was taught, so what it does with others must be measured
(notebook 11).
"""
