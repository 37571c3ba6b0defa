"""Language models on the negation benchmarks and on lm-eval's own MMLU, HellaSwag and GSM8K.

The YAML files say how a type of benchmark is asked, by `functions`; `harness` asks it through lm-eval with the model in `reader`.
"""
