"""What the notebooks and the command line load before they do anything: nothing that takes seconds."""

import json
import subprocess
import sys

import nbformat

from nblib import paths

HEAVY = ["torch", "mteb", "transformers", "sentence_transformers", "spacy", "datasets", "lm_eval", "nltk"]
SAY = "print(json.dumps([name for name in {heavy} if name in sys.modules]))"


def loaded_by(*sources, heavy):
    """Which of the heavy packages are loaded after each of some sources, run one after the other in a fresh process."""
    lines = ["import json, sys", *(f"{source}\n{SAY.format(heavy=heavy)}" for source in sources)]
    ran = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_the_first_cells_of_no_notebook_load_what_takes_seconds():
    imports = {}
    for file in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        code = [cell.source for cell in nbformat.read(file, as_version=4).cells if cell.cell_type == "code"]
        imports[file.stem] = "\n".join(code[:2])
    assert dict(zip(imports, loaded_by(*imports.values(), heavy=HEAVY), strict=True)) == {name: [] for name in imports}


def test_help_loads_neither_tables_nor_figures():
    source = "from nblib.workflow import cli\ncli.parser()"
    assert loaded_by(source, heavy=[*HEAVY, "pandas", "numpy", "matplotlib", "scipy", "snakemake"]) == [[]]


def test_executing_a_notebook_compiles_no_grammars():
    assert loaded_by("import nblib.workflow.run_notebook\nimport papermill", heavy=["lark", *HEAVY]) == [[]]
