"""The negation benchmarks as lm-eval tasks: a YAML each, on the rows of the encoders' tasks (`nblib.tasks`).

`lm_eval --include_path nblib/tasks/llm --tasks llm_nevir …` runs them like any of lm-eval's own; `nblib.llm_scores` does so
for a suite, with intervals and per-item predictions, beside the harness's own MMLU, HellaSwag and GSM8K.
"""
