"""Which texts: the corpora and what the study builds from them.

`registry` loads and checks a corpus by name; `hedgetriple` the authored anchors; `anchors` draws anchors from sources;
`triples` builds training triples from them and `triple_statistics` describes them; `pairs` has the pairs of Vahtola's
families; `negator` negates by rule; `m3` rebuilds M3-Counterfactual; `nevir` reads NevIR's ids, `semantoneg` SemAntoNeg's items.
"""

from nblib.corpora.registry import Corpus, CorpusError, describe, entries, load

__all__ = ["Corpus", "CorpusError", "describe", "entries", "load"]
