"""nblib, the negation-blindness library: what the study's notebooks share.

The packages are stacked in layers; a module imports only from layers below its own (`pyproject.toml` holds the contract
and `make lint` checks it). Importing has no side effects.
"""

__version__ = "0.1.0"
