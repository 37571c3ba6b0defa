"""One environment, declared once: project, constraints and conda agree."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions, version

import nbformat
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from nblib import paths

PROJECT = tomllib.loads((paths.PROJECT_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONDA = yaml.safe_load((paths.PROJECT_ROOT / "environment.yml").read_text(encoding="utf-8"))
DECLARED = [Requirement(line) for line in PROJECT["dependencies"]]
DEVELOPMENT = [Requirement(line) for line in PROJECT["optional-dependencies"]["dev"]]
# Declared and imported nowhere: what opens the notebooks, shows tqdm's bars there and runs the Snakefile with its progress; what
# pandas reads Parquet and styles tables with; what transformers trains, and reads 4-bit weights and a tokenizer with; what Sphinx
# loads by name.
NOT_IMPORTED = {
    "jupyterlab", "ipywidgets", "snakemake", "snakemake-logger-plugin-rich", "pyarrow", "jinja2", "accelerate", "gguf",
    "sentencepiece", "myst-nb", "sphinx-book-theme",
}  # fmt: skip
LINES = (paths.PROJECT_ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
PINS = [Requirement(line) for line in LINES if line.strip() and not line.startswith("#")]
PINNED = {canonicalize_name(pin.name): pin for pin in PINS}


@pytest.mark.parametrize("requirement", DECLARED + DEVELOPMENT, ids=lambda requirement: requirement.name)
def test_a_dependency_has_an_exact_pin_that_satisfies_it_and_is_what_is_installed(requirement):
    pin = PINNED[canonicalize_name(requirement.name)]
    (exact,) = pin.specifier
    assert exact.operator == "=="
    assert requirement.specifier.contains(exact.version)
    assert version(requirement.name).split("+")[0] == exact.version, "the tests run in another environment"


def sources():
    """The Python of the package, the notebooks and the Snakefile's own imports."""
    root = paths.PROJECT_ROOT
    for file in [*(root / "nblib").rglob("*.py"), root / "docs" / "conf.py"]:
        yield file.read_text(encoding="utf-8")
    for file in paths.NOTEBOOKS.glob("*.ipynb"):
        cells = nbformat.read(file, as_version=4).cells
        yield "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    lines = (root / "Snakefile").read_text(encoding="utf-8").splitlines()
    yield "\n".join(line for line in lines if re.match("(import|from) ", line))


def imported():
    """The distributions that are imported, by their canonical names."""
    packages = set()
    for source in sources():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                packages |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                packages.add(node.module.split(".")[0])
    known = packages_distributions()
    foreign = packages - set(sys.stdlib_module_names) - {"nblib"}
    return {canonicalize_name(known.get(package, [package])[0]) for package in foreign}


def test_every_import_is_declared_and_everything_declared_is_imported():
    declared = {canonicalize_name(requirement.name) for requirement in DECLARED}
    assert sorted(imported() - declared) == []
    assert sorted(declared - imported() - NOT_IMPORTED) == []


def test_conda_leaves_the_packages_to_pip_with_the_constraints():
    plain = [item for item in CONDA["dependencies"] if isinstance(item, str)]
    (section,) = [item["pip"] for item in CONDA["dependencies"] if isinstance(item, dict)]
    assert section == ["-c constraints.txt", "-e .[dev]"]
    assert {re.split("[=<>]", item)[0] for item in plain} == {"python", "make", "pip"}, "a version only pip may choose"
