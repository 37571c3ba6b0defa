"""nblib, the negation-blindness library: what the study's notebooks share.

The modules are stacked in floors; a module imports only from floors below its own (`pyproject.toml` holds the contract
and `make lint` checks it). Nothing happens on import.
"""

__version__ = "0.1.0"
