"""Whether two computations of a model agree: every processor, batch and library rounds in its own way.

Bit by bit equal is only what was computed once: read back from a file or the cache, or left alone.
"""

from typing import Literal

import numpy as np
import torch

# How far two values may lie apart: so much, and so much of the value. A unit vector's elements, cosines, probabilities and
# losses are of the order of 1; what the tests look for moves them by a hundred times as much or more.
TOLERANCES = {"float32": 1e-5, "bfloat16": 5e-2}
SUM = 10  # times as far: sums over tokens, logits, and losses, which multiply cosines by 20
TRAINED = 1000  # and what was trained: Adam makes a whole step of a rounding error where the gradient is zero


def assert_close(got: object, expected: object, dtype: Literal["float32", "bfloat16"] = "float32", *, times: int = 1):
    """Fail with the numbers if two computations in this dtype differ by more than rounding."""
    tolerance = times * TOLERANCES[dtype]
    np.testing.assert_allclose(_array(got), _array(expected), rtol=tolerance, atol=tolerance)


def close(got: object, expected: object, dtype: Literal["float32", "bfloat16"] = "float32", *, times: int = 1) -> bool:
    """Whether two computations in this dtype differ by no more than rounding."""
    tolerance = times * TOLERANCES[dtype]
    return np.allclose(_array(got), _array(expected), rtol=tolerance, atol=tolerance)


def _array(values: object) -> np.ndarray:
    values = values.detach().cpu().double() if torch.is_tensor(values) else values
    return np.asarray(values, dtype=np.float64)
