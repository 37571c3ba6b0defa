"""What ranks without one vector a text, on what they share (`base`).

`lexical`           chance, TF-IDF and sparse models
`late_interaction`  MaxSim over token vectors
`cross_encoder`     models that read both texts together
"""
