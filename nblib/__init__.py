"""nblib, the negation-blindness library: what the study's notebooks share.

A module imports only from layers below its own (`pyproject.toml` has the contract). Importing the package sets two things of
the process, so that they reach every way to run.
"""

import ctypes
import gc
from contextlib import suppress

__version__ = "0.1.0"

# glibc gives a large tensor's memory back to the system, and takes it anew for the next: training and scoring on a CPU take up to
# twice as long. Kept instead: no mapping for each large block (M_MMAP_MAX), no trimming (M_TRIM_THRESHOLD), 256 MiB at a time
# (M_TOP_PAD). Other C libraries have no mallopt.
with suppress(AttributeError, OSError, TypeError):
    _mallopt = ctypes.CDLL(None).mallopt
    for _parameter, _value in {-4: 0, -1: -1, -2: 2**28}.items():
        _mallopt(_parameter, _value)

# torch and the models make a million objects that stay: looking through them often is a sixth of the time to import them
gc.set_threshold(50_000, 20, 100)
