"""How a language model writes negations and hedges (Truong §3.1).

- `prompts`: the paper's two prompts, the questions for each anchor
- `generations`: the file of raw answers
- `parsing`: labelled sentences out of a free-form answer
- `client`: ask a server what a file has no usable answer to, within a budget
- `outcomes`: what a file of generations yields, and what it costs
"""
