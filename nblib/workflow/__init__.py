"""How a run happens.

`cli`           the command `nblib`; `commands`: its subcommands
`run_notebook`  papermill with strict parameters
`dependencies`  a notebook's modules by the import graph; `sweeps`: trainings of a configuration
`record`        reference figures; `archive`: reference predictions; `documents`: the README's numbers
"""
