"""GSM8K: what a fine-tuned model gets wrong there, and why (Truong, Appendix C and Table 5).

`predictions` reads, joins and describes two models' answers and samples the errors; `arithmetic` checks the equations of
solutions; `errors` has the types of error and counts them by label pass; `labels` reads the passes and measures their
agreement.
"""
