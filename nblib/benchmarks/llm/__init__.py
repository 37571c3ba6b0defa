"""Language models on the negation benchmarks and on lm-eval's own MMLU, HellaSwag and GSM8K.

- `llm_ranking.yaml`, `llm_similarity.yaml`, `llm_choice.yaml`: how a kind of benchmark is asked, as lm-eval tasks
- `functions`: what they call; documents, prompts, the value of an answer
- `reader`: the model that lm-eval asks: a common beginning of prompts is read once
- `harness`: the tasks; asks them through lm-eval and scores the answers item by item
- `evaluation`: scores with intervals; keeps the answers and finds them again

With lm-eval's own command: `lm_eval --include_path nblib/benchmarks/llm --tasks llm_ranking --metadata source=nevir …`
"""
