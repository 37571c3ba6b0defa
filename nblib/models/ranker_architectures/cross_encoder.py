"""Rankers that read query and document together: cross-encoders and monoT5."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from tqdm.auto import tqdm

from nblib.models.ranker_architectures.base import Ranker, RankerError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class Cross(Ranker):
    """A cross-encoder reads query and document together; its score is the logit before any activation (a sigmoid rounds
    nearly equal scores to a tie), or that of entailment where it chooses among classes."""

    kind = "cross-encoder"

    def score(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        from torch.nn import Identity

        pairs = list(zip(queries, documents, strict=True))
        logits = self.model.predict(pairs, activation_fn=Identity(), show_progress_bar=True)
        if logits.ndim == 1:
            return logits.astype(np.float64)
        classes = {label.lower(): place for place, label in self.model.config.id2label.items()}
        if "entailment" not in classes:
            raise RankerError(
                f"{self.name} has the classes {', '.join(classes)}, and it isn't known which of them means relevant."
            )
        return logits[:, classes["entailment"]].astype(np.float64)


class MonoT5(Ranker):
    """monoT5 (Nogueira et al. 2020): asked whether the document is relevant, by how much is "true" likelier than "false"?"""

    kind = "monot5"
    PROMPT = "Query: {query} Document: {document} Relevant:"

    BATCH = 16

    def __init__(self, model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", name: str, source: str) -> None:
        super().__init__(model, name, source)
        self.tokenizer = tokenizer
        vocabulary = tokenizer.get_vocab()
        if missing := [word for word in ("▁true", "▁false") if word not in vocabulary]:
            raise RankerError(f"{name} is no monoT5: its tokenizer has no {' and no '.join(missing)}.")
        self.answers = [vocabulary["▁true"], vocabulary["▁false"]]

    def score(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        import torch

        pairs = zip(queries, documents, strict=True)
        texts = [self.PROMPT.format(query=query, document=document) for query, document in pairs]
        order = np.argsort([len(text) for text in texts], kind="stable")
        scores = np.empty(len(texts))
        for start in tqdm(range(0, len(texts), self.BATCH), desc=self.name, unit="batch"):
            places = order[start : start + self.BATCH]
            batch = self.tokenizer(
                [texts[place] for place in places], padding=True, truncation=True, max_length=512, return_tensors="pt"
            ).to(self.model.device)
            first = torch.full((len(places), 1), self.model.config.decoder_start_token_id, device=self.model.device)
            with torch.inference_mode():
                logits = self.model(**batch, decoder_input_ids=first).logits[:, 0]
            true, false = logits[:, self.answers].double().cpu().numpy().T
            scores[places] = true - false
        return scores
