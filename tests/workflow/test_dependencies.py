"""What a notebook depends on, from the import graph."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from nblib import paths
from nblib.workflow import dependencies


@pytest.fixture
def notebook(tmp_path):
    """A function that writes a notebook of code cells."""

    def write(*sources):
        cells = [new_markdown_cell("from nblib import report"), *map(new_code_cell, sources)]
        nbformat.write(new_notebook(cells=cells), tmp_path / "x.ipynb")
        return tmp_path / "x.ipynb"

    return write


def test_the_adapters_notebook_depends_on_what_it_reaches_and_on_nothing_else():
    files = dependencies.module_files("notebooks/06_negation_adapter.ipynb")
    models = {f"nblib/models/{name}.py" for name in ("negation_adapter", "embeddings", "encoders")}
    assert {*models, "nblib/paths.py"} <= set(files)
    others = ("nblib/workflow/", "nblib/training/")
    assert not [file for file in files if file.startswith(others)]


@pytest.mark.parametrize("source", ["from {} import {}", "import {}.{}", "from {}.{} import encode"])
def test_every_way_to_import_a_module_counts(notebook, source):
    source = source.format("nblib.models", "embeddings")
    assert "nblib.models.embeddings" in dependencies.imported_modules(notebook("import numpy as np", source))
    files = dependencies.module_files(notebook(source))
    assert {"nblib/models/embeddings.py", "nblib/models/encoders.py", "nblib/paths.py"} <= set(files)


def test_a_command_depends_on_what_its_function_imports():
    files = dependencies.module_files("nblib/workflow/commands.py")
    assert {"nblib/workflow/report.py", "nblib/benchmarks/scoring.py"} <= set(files)
    assert not [file for file in files if file.startswith("nblib/synthesis/")]


def test_what_ships_of_a_corpus_are_its_files_and_of_an_official_one_none():
    files = dependencies.shipped("stsb_mini", "nevir")
    assert files and all((paths.PROJECT_ROOT / file).is_file() and "mini" in file for file in files)
