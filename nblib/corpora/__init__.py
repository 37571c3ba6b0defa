"""Which texts: the corpora, by name, and what the study builds from them."""

from nblib.corpora.registry import Corpus, describe, entries, load

__all__ = ["Corpus", "describe", "entries", "load"]
