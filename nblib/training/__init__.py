"""How models are tuned.

`losses`         one table of losses; `batches`: examples and batches in the layouts that they take
`data`           what `nblib train` trains on
`trainer`        one training of any architecture; `checkpoints`: resumed where it was killed
`tuning`         a whole training: train, measure, interpolate, keep; `finished`: or find it again
`interpolation`  weights between base and tuned, LoRAs, saving
`dev_scores`     the dev sets, and a system's scores on them while it is trained
`llm_lora`       LoRAs of language models
"""
