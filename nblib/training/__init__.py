"""How models are tuned: `tuning` is a whole training of an embedding model or a ranker, `llm_lora` of a language model."""
