"""lm-eval's own model, which reads once what several prompts begin with: examples, or the documents of two questions.

A token's keys and values depend on earlier tokens alone, so those of a common beginning serve every prompt that has it. They
differ from those of a prompt read at once by rounding alone.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch
from lm_eval.models.huggingface import HFLM
from torch.nn.functional import pad
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

Request = tuple[tuple[str, str], list[int], list[int]]  # the texts, and the tokens of a prompt and of an answer to it


class Reader(HFLM):
    """Probabilities are read prompt by prompt (with a batch size of one), texts are generated in batches.

    The vocabulary's logits are computed where an answer stands alone: with a vocabulary of 262,144 the others are most of the
    work, and gigabytes.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.kept = 0  # logits of so many last tokens; 0: of all
        self.shares = _can_go_back(self.model.config)
        self._forget()

    def _forget(self) -> None:
        self.read: list[int] = []  # the tokens whose keys and values are in the cache
        self.cache = DynamicCache()  # all tokens' of every layer: those within a window are chosen by the mask

    def _loglikelihood_tokens(
        self, requests: list[Request], disable_tqdm: bool = False, override_bs: int | None = None
    ) -> list[tuple[float, bool]]:
        if self.batch_size != 1:
            return super()._loglikelihood_tokens(requests, disable_tqdm, override_bs)

        def seen(place: int) -> list[int]:
            """What the model sees of a request: an answer's last token is only predicted."""
            _, prompt, answer = requests[place]
            return prompt + answer[:-1]

        found: dict[int, tuple[float, bool]] = {}
        # In this order, what a prompt shares with any earlier one, it shares with the one before
        for _, group in groupby(sorted(range(len(requests)), key=seen), key=seen):
            places = list(group)
            # lm-eval counts from the end what the model returns, however much that is
            self.kept = max(len(requests[place][2]) for place in places)
            answers = super()._loglikelihood_tokens([requests[place] for place in places], disable_tqdm=True)
            found |= zip(places, answers, strict=True)
        self.kept = 0
        self._forget()
        return [found[place] for place in range(len(requests))]

    def _model_call(self, inps: torch.Tensor, attn_mask: Any = None, labels: Any = None) -> torch.Tensor:
        if self.kept and self.shares:
            return self._logits(inps[0].tolist(), self.kept)
        with torch.inference_mode():
            return self.model(inps, logits_to_keep=self.kept).logits

    def _model_generate(
        self, context: torch.Tensor, max_length: int, stop: list[str], **options: Any
    ) -> torch.Tensor:  # fmt: skip
        if self.shares:
            options["past_key_values"] = self._shared_beginning(context, options["attention_mask"])
        return super()._model_generate(context, max_length, stop, **options)

    def _logits(self, tokens: list[int], last: int) -> torch.Tensor:
        """The logits of the `last` of the tokens, [1, last, vocabulary]; the cache has the tokens afterwards."""
        known = min(_common([self.read, tokens]), len(tokens) - last)
        self.cache.crop(known - len(self.read))  # so many fewer than there are
        self.read = tokens
        rest = torch.tensor([tokens[known:]], device=self.device)
        with torch.inference_mode():
            return self.model(rest, past_key_values=self.cache, logits_to_keep=last).logits

    def _shared_beginning(self, prompts: torch.Tensor, mask: torch.Tensor) -> DynamicCache | None:
        """The keys and values of what all prompts of a batch begin with, as far as the longest prompt has them.

        Args:
            prompts: padded on the left, [batch, longest].
            mask: 0 for padding, [batch, longest].
        """
        gaps = (mask == 0).sum(dim=1).tolist()
        rows = [row[gap:] for row, gap in zip(prompts.tolist(), gaps, strict=True)]
        shared = _common([*rows, rows[0][:-1]])  # one token at least must be left to read
        if not shared:
            return None
        self._logits(rows[0][:shared], 1)
        found = DynamicCache(config=self.model.config)
        for number, layer in enumerate(self.cache.layers):
            # A shorter prompt begins later, so that less of its beginning lies in the columns that are left out
            states = [
                torch.cat([pad(part, (0, 0, gap, 0))[..., :shared, :] for gap in gaps])
                for part in (layer.keys, layer.values)
            ]
            found.update(*states, number)
        return found


def _can_go_back(config: Any) -> bool:
    """Whether a model's layers attend to earlier tokens and keep nothing else of them, so that a cache can be cut."""
    return all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in DynamicCache(config=config).layers)


def _common(sequences: Sequence[Sequence[int]]) -> int:
    """How many tokens all sequences begin with in common."""
    first, last = min(sequences), max(sequences)  # in lexicographic order the two that differ earliest
    for place, (one, other) in enumerate(zip(first, last, strict=False)):
        if one != other:
            return place
    return min(len(first), len(last))
