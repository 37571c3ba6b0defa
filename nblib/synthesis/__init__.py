"""How a language model writes negations and hedges (Truong §3.1): what it is asked, and what its answers yield."""
