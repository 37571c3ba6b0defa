"""Encoders that only mteb knows how to load: APIs, models with code of their own, mteb's baselines.

mteb's registry has a pinned revision and a loader for each. What the loader gives chooses its prompt by task and side;
here a role stands for one task (`_TASKS`), so that a text has one vector per role and the cache can keep it.
"""

import hashlib
import inspect
import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mteb.models import ModelMeta
    from mteb.types import PromptType
    from sentence_transformers import SentenceTransformer

# The task and side a role is taken for: a model with instructions by task gets those it has for this one.
_TASKS = {"symmetric": ("STSBenchmark", None), "query": ("MSMARCO", "query"), "document": ("MSMARCO", "document")}


def find(name: str) -> "ModelMeta | None":
    """mteb's entry for a name, None where it has none (its names all look like `organisation/model`)."""
    if name.count("/") != 1:
        return None
    import mteb  # takes seconds

    try:
        return mteb.get_model_meta(name)
    except KeyError:
        return None


def runs_remote_code(meta: "ModelMeta") -> bool:
    """Whether mteb lets the model run code from the hub: its entry or loader names the option, or the loader has no source."""
    if meta.loader_kwargs.get("trust_remote_code"):
        return True
    try:
        return "trust_remote_code" in inspect.getsource(getattr(meta.loader, "func", meta.loader))
    except (OSError, TypeError):
        return True


def unsuitable(meta: "ModelMeta") -> str:
    """Why the model gives no vectors to compare by cosine or dot product; empty where it may."""
    if meta.loader is None:
        return "mteb has its scores, but no way to load it"
    if not {"dense", "sparse"} & set(meta.model_type):
        return f"a {' and '.join(meta.model_type)} model doesn't give one vector per text"
    if similarity(meta) not in (None, "cosine", "dot"):
        return f"its similarity is {similarity(meta)}, not cosine or dot product"
    return ""


def similarity(meta: "ModelMeta") -> str | None:
    """The similarity the entry names."""
    return meta.similarity_fn_name.value if meta.similarity_fn_name else None


def fingerprint(meta: "ModelMeta") -> str:
    """A proxy for the weights, which we can't see: name, pinned revision, and the version of mteb that has the loader."""
    identity = ["mteb", version("mteb"), meta.name, meta.revision]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()


def inside(loaded: Any) -> "tuple[SentenceTransformer, dict[str, str]] | None":
    """The SentenceTransformer in what mteb loaded and its prompt by role, where mteb does nothing beyond calling it."""
    from mteb.models.instruct_wrapper import InstructSentenceTransformerModel
    from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper
    from sentence_transformers import SentenceTransformer

    encode = getattr(type(loaded), "encode", None)
    known = (SentenceTransformerEncoderWrapper.encode, InstructSentenceTransformerModel.encode)
    if encode not in known or not isinstance(loaded.model, SentenceTransformer):
        return None
    prompts = {}
    for role in _TASKS:
        task, side = _task(role)
        if encode is SentenceTransformerEncoderWrapper.encode:
            prompts[role] = (loaded.model_prompts or {}).get(loaded.get_prompt_name(task, side))
        elif role != "document" or loaded.apply_instruction_to_passages:
            prompts[role] = loaded.get_task_instruction(task, side)
    return loaded.model, {f"{role}_prompt": prompts.get(role) or "" for role in _TASKS}


class MtebModel:
    """What mteb loaded, with as much of a SentenceTransformer's interface as is used here.

    Attributes:
        tokenizer: None; what the model reads of a text isn't known.
        max_seq_length: from mteb's entry.
    """

    tokenizer = None

    def __init__(self, loaded: Any, meta: "ModelMeta") -> None:
        self.loaded = loaded
        self.max_seq_length = int(meta.max_tokens) if meta.max_tokens and np.isfinite(meta.max_tokens) else None

    def encode(self, texts: Sequence[str], *, prompt: str, batch_size: int = 64, **_: object) -> np.ndarray:
        """Embeddings, float32 [number of texts, dimension].

        Args:
            prompt: a role; the model puts its own prompt for it before each text.
        """
        import torch
        from datasets import Dataset
        from torch.utils.data import DataLoader

        task, side = _task(prompt)
        batches = DataLoader(Dataset.from_dict({"text": list(texts)}), batch_size=batch_size)
        vectors = self.loaded.encode(
            batches, task_metadata=task, hf_split="test", hf_subset="default", prompt_type=side,
            batch_size=batch_size, show_progress_bar=False,
        )  # fmt: skip
        if isinstance(vectors, torch.Tensor):
            vectors = (vectors.to_dense() if vectors.is_sparse else vectors).detach().cpu().float().numpy()
        return np.asarray(vectors, dtype=np.float32)


def _task(role: str) -> "tuple[Any, PromptType | None]":
    import mteb
    from mteb.types import PromptType

    task, side = _TASKS[role]
    return mteb.get_task(task).metadata, PromptType(side) if side else None
