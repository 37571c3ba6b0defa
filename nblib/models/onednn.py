"""Fast matrix products on a CPU: in float32 by oneDNN on packed weights, since on some CPUs PyTorch's own (MKL) use less than
half of the vector units; in bfloat16 only where the processor computes in it.

Measured on a core of an AMD EPYC (Zen 5): 230 against 100 GFLOP/s. Both are IEEE float32; they add in another order, and
cosines differ by less than 1e-6. The operators are those that `torch.compile` calls on a CPU, without its minutes of compiling.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch


@cache
def computes_bfloat16() -> bool:
    """Whether this machine computes in bfloat16: on a GPU, or by a CPU's AVX-512 or AMX. Another CPU emulates it, at a quarter
    of float32's speed (an AMD EPYC with AVX2 alone)."""
    return torch.cuda.is_available() or torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


class PackedLinear(torch.nn.Module):
    """A linear layer whose weights lie as oneDNN reads them fastest; for inference alone."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        super().__init__()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach())
        self.bias = None if bias is None else bias.detach()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return torch.ops.mkldnn._linear_pointwise(inputs, self.weight, self.bias, "none", [], "")


@contextmanager
def linear_by_onednn(model: object) -> Iterator[None]:
    """Let oneDNN compute the linear layers of a model in float32 on a CPU, for as long as this lasts; others stay as they are,
    and so do those with a `forward` of their own (`llm_adapters.exact_logits`).

    The layers are put back at the end: the weights are oneDNN's copies, which neither training nor a fingerprint knows.
    """
    replaced = []
    if isinstance(model, torch.nn.Module):
        for parent in list(model.modules()):
            for name, layer in list(parent.named_children()):
                if type(layer) is torch.nn.Linear and "forward" not in vars(layer) and can_pack(layer.weight):
                    replaced.append((parent, name, layer))
    try:
        for parent, name, layer in replaced:
            setattr(parent, name, PackedLinear(layer.weight, layer.bias))
        yield
    finally:
        for parent, name, layer in replaced:
            setattr(parent, name, layer)


def can_pack(weight: torch.Tensor) -> bool:
    """Whether oneDNN is here and can compute with a weight: float32, on a CPU."""
    return torch.backends.mkldnn.is_available() and weight.device.type == "cpu" and weight.dtype == torch.float32
