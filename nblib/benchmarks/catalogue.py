"""Which benchmarks there are, and in which forms: official, authored mini set (mini)."""

from collections.abc import Sequence
from typing import Literal

from nblib.benchmarks.base import FORMS, Benchmark, Form
from nblib.benchmarks.cannot import CannotWMT
from nblib.benchmarks.excluir import ExcluIR, Exclusions
from nblib.benchmarks.m3 import M3Derived
from nblib.benchmarks.negation_profile import NegationProfile
from nblib.benchmarks.nevir import ContrastPassages, NevIR
from nblib.benchmarks.semantoneg import SemAntoNeg
from nblib.benchmarks.stsb import STSB
from nblib.errors import one_of

CLASSES = [
    SemAntoNeg,
    NevIR,
    ExcluIR,
    CannotWMT,
    M3Derived,
    ContrastPassages,
    Exclusions,
    STSB,
]
BENCHMARKS: dict[str, type[Benchmark]] = {benchmark.key: benchmark for benchmark in CLASSES}


def names(
    form: Form, ability: Literal["all", "negation", "general"] = "all", keys: Sequence[str] | None = None
) -> tuple[str, ...]:
    """The benchmarks in a form (those with these keys), by the names that `get` takes; a StudyError where there is none."""
    one_of(form, FORMS, "form of a benchmark")
    known = {key: one(form) for key, one in BENCHMARKS.items() if form in one.forms}
    chosen = {one_of(key, known, f"benchmark in the form {form}") for key in (known if keys is None else keys)}
    return tuple(one.name for key, one in known.items() if key in chosen and ability in ("all", one.ability))


def every_form() -> dict[str, Benchmark]:
    """Each form of each benchmark, and the negation profile, by name."""
    return {one(form).name: one(form) for one in [*BENCHMARKS.values(), NegationProfile] for form in one.forms}


def get(name: str) -> Benchmark:
    """A benchmark (or the negation profile) by the name of its form; a StudyError where there is none."""
    known = every_form()
    return known[one_of(name, known, "benchmark")]
