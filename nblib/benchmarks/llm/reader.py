"""lm-eval's own model, which reads once what several prompts begin with: examples, or the documents of two questions.

A token's keys and values depend on earlier tokens alone, so those of a common beginning serve every prompt that has it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from itertools import groupby
from typing import Any

import torch
from lm_eval.models.huggingface import HFLM
from torch.nn.functional import pad
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer


class Reader(HFLM):
    """Probabilities are read prompt by prompt (with a batch size of one, as a CPU likes it), texts are generated in batches.

    Logits are computed for an answer's tokens alone: with a vocabulary of 262,144 the others are most of the work.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.kept = 0  # logits of so many last tokens
        self.seen: set[tuple[int, ...]] = set()  # what the model sees of each request
        layers = DynamicCache(config=self.model.config).layers
        # Only of layers that keep nothing but earlier tokens can a cache be cut
        self.shares = all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers)
        self.read: list[int] = []  # the tokens whose keys and values are in the cache
        self.cache = DynamicCache()  # all tokens': a mask chooses those within a window

    def _loglikelihood_tokens(self, requests: list[tuple], *options: Any, **named: Any) -> list[tuple[float, bool]]:
        # What the model sees of a request: an answer's last token is only predicted
        seen = [prompt + answer[:-1] for _, prompt, answer in requests]
        self.seen = set(map(tuple, seen))
        if self.batch_size != 1:
            self.kept = max((len(answer) for _, _, answer in requests), default=0)
            return super()._loglikelihood_tokens(requests, *options, **named)
        answers: dict[int, tuple[float, bool]] = {}
        # In this order, what a prompt shares with any earlier one, it shares with the one before
        for _, group in groupby(sorted(range(len(requests)), key=seen.__getitem__), key=seen.__getitem__):
            same = list(group)
            self.kept = max(len(requests[index][2]) for index in same)  # lm-eval takes an answer's logits from the end
            answers |= zip(same, super()._loglikelihood_tokens([requests[index] for index in same], True), strict=True)
        return [answers[index] for index in range(len(requests))]

    def _model_call(self, inps: torch.Tensor, attn_mask: Any = None, labels: Any = None) -> torch.Tensor:
        if self.kept and self.shares and len(inps) == 1:
            return self._logits(inps[0].tolist(), self.kept)
        # The last tokens of each prompt, [batch, kept]: a batch's prompts end in few places, and their logits are all it needs
        ends = torch.tensor([self._length(row) for row in inps.tolist()], device=inps.device)
        last = (ends[:, None] + torch.arange(-self.kept, 0, device=inps.device)).clamp(min=0)
        positions, places = last.unique(return_inverse=True)
        with torch.inference_mode():
            logits = self.model(inps, logits_to_keep=positions).logits
        return logits[torch.arange(len(inps), device=inps.device)[:, None], places]

    def _length(self, row: list[int]) -> int:
        """Where a prompt ends, which lm-eval pads with zeros on the right; a token may be a zero, too."""
        shortest = len(row) - next((count for count, token in enumerate(reversed(row)) if token), 0)
        return next((end for end in range(shortest, len(row) + 1) if tuple(row[:end]) in self.seen), shortest)

    def _select_cont_toks(self, logits: torch.Tensor, contlen: int, inplen: int | None = None) -> torch.Tensor:
        return logits[-contlen:]  # `_model_call` gives each prompt's last ones

    def _model_generate(self, context: torch.Tensor, max_length: int, stop: list[str], **options: Any) -> torch.Tensor:
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
        """The keys and values of what all prompts of a batch (padded on the left) begin with."""
        gaps = (mask == 0).sum(dim=1).tolist()
        rows = [row[gap:] for row, gap in zip(prompts.tolist(), gaps, strict=True)]
        shared = _common([*rows, rows[0][:-1]])  # one token at least must be left to read
        if not shared:
            return None
        self._logits(rows[0][:shared], 1)
        cache = DynamicCache(config=self.model.config)
        for number, layer in enumerate(self.cache.layers):
            # A shorter prompt begins later: less of its beginning lies in the columns that are left out
            states = [
                torch.cat([pad(part, (0, 0, gap, 0))[..., :shared, :] for gap in gaps])
                for part in (layer.keys, layer.values)
            ]
            cache.update(*states, number)
        return cache


class _Float32Head(torch.nn.Module):
    def __init__(self, head: torch.nn.Linear) -> None:
        super().__init__()
        self.linear = deepcopy(head).float()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.linear(hidden.float())


@contextmanager
def float32_logits(model: Any) -> Iterator[None]:
    """Within the block, a language model computes its logits in float32 whatever its weights are: in bfloat16 two answers are
    often as likely as each other, and with a LoRA on a CPU take fifty times as long. For inference alone."""
    head = model.get_output_embeddings()
    if head.weight.dtype != torch.float32:
        model.set_output_embeddings(_Float32Head(head))
    try:
        yield
    finally:
        model.set_output_embeddings(head)


def _common(sequences: Sequence[Sequence[int]]) -> int:
    """How many tokens all sequences begin with in common."""
    first, last = min(sequences), max(sequences)  # in lexicographic order the two that differ earliest
    differ = (index for index, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    return next(differ, min(len(first), len(last)))
