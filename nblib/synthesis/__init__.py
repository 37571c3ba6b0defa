"""How a language model writes negations and hedges (Truong §3.1).

- `prompts`: the paper's two prompts, the questions for each anchor
- `client`: requests to an OpenAI-compatible server, within a budget
- `generations`: the file of raw answers
- `parsing`: labelled sentences out of a free-form answer
- `run`: ask what a file has no usable answer to
- `outcomes`: what a file of generations yields, and what it costs
"""
