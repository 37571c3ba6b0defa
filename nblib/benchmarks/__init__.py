"""The benchmarks, and their scores.

`catalogue` has the negation benchmarks and STSB, one small class each on `base`; `scoring` scores any system on them. `mteb` runs
MTEB's own tasks, `as_mteb` makes a benchmark one of them, and `llm` has those for language models.
"""
