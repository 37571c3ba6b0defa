"""How understanding is measured.

- `semantoneg`, `nevir`, `excluir`, `cannot`, `m3`, `stsb`, `general` (intents, topics, retrieval, MTEB by name): a benchmark, its
  mini set and its sample, and all that other modules need to know of it
- `pairwise`, `similarity`: the two kinds; `base`: what all have in common
- `catalogue`: which benchmarks and forms there are
- `scoring`: any system on any of them; predictions, intervals, comparisons, rows of results
- `mteb_catalogue`, `mteb_tasks`, `general_ability`: MTEB's own tasks on official files, and what they say of a system
- `negation_profile`: which type of negation a system misses
- `mteb_encoder`: our encoders as mteb sees them; `efficiency`: what scoring costs
- `llm`: the language models' form
"""
