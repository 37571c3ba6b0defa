"""A toy project that `nblib study` runs in seconds: three jobs, two of them notebooks."""

import subprocess
import sys
from pathlib import Path

SNAKEFILE = """
import sys
rule all:
    input: "runs/toy/results/13.csv"
rule diagnosis:
    output: "runs/toy/results/01.csv"
    log: "runs/toy/notebooks/01_diagnosis.ipynb"
    shell: "{sys.executable} make.py {log} {output}"
rule score:
    output: "runs/toy/scores/{system}.csv"
    shell: "echo scoring; test ! -e slow || sleep 300; test ! -e broken && touch {output}"
rule results:
    input: "runs/toy/results/01.csv", "runs/toy/scores/TF-IDF.csv"
    output: "runs/toy/results/13.csv"
    log: "runs/toy/notebooks/13_results.ipynb"
    shell: "{sys.executable} make.py {log} {output}"
"""
MAKE = """
import sys, pathlib, nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
log, out = map(pathlib.Path, sys.argv[1:])
print("\\rbar: 50%|#", file=sys.stderr)
log.parent.mkdir(parents=True, exist_ok=True)
found = new_output("display_data", data={"text/markdown": f"- {log.stem} finds something"})
nbformat.write(new_notebook(cells=[new_markdown_cell("# " + log.stem), new_code_cell("1", outputs=[found])]), log)
out.write_text("x")
"""
RUN = """
import pathlib
from nblib import paths
paths.PROJECT_ROOT = pathlib.Path.cwd()
paths.CONFIG = pathlib.Path("config").resolve()
from nblib.workflow import cli, forks
forks.LIBRARIES = ()
cli.main(["study", "toy", "--cores", "1"])
"""


def make(root: Path) -> Path:
    """Write the project."""
    (root / "config").mkdir(parents=True)
    (root / "config" / "toy.yaml").write_text("scale: toy\n")
    (root / "Snakefile").write_text(SNAKEFILE)
    (root / "make.py").write_text(MAKE)
    return root


def start(root: Path) -> subprocess.Popen:
    """Begin its study."""
    return subprocess.Popen(
        [sys.executable, "-c", RUN], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def go(root: Path) -> subprocess.CompletedProcess:
    """Run its study to the end."""
    process = start(root)
    output, errors = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)
