"""How a run happens.

`cli`           the command `nblib`; `commands`: its subcommands, a module each
`run_notebook`  papermill with strict parameters; `outputs`: what each notebook must leave
`dependencies`  a notebook's modules by the import graph; `sweeps`: trainings of a configuration
`record`        reference figures; `archive`: reference predictions; `export`: PNG, HTML and LaTeX
"""

import sys

# jsonschema, which nbformat imports, compiles the grammars of international web addresses wherever this package is there: 2.5
# of the 3 seconds that papermill takes to import. No notebook's schema has a field of that format.
sys.modules.setdefault("rfc3987_syntax", None)
