"""What the notebooks' tables and figures say, computed from predictions.

`diagnosis`                 01: is the negation closer than the paraphrase?
`contamination`             03: which training texts stand in a benchmark?
`adapter_study`             06: Cao's tables
`encoder_card`, `search`    07: one system beside published ones, its largest errors, an example search
`training_comparison`       08: Truong's trainings
`weller`                    09: NevIR's pairs and architectures
`vahtola`                   10: SemAntoNeg's families and errors; `semantoneg_construction`: how it is made
`gsm8k`                     12: errors of arithmetic
"""
