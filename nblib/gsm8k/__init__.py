"""GSM8K: what a fine-tuned model gets wrong there, and why (Truong, Appendix C and Table 5)."""
