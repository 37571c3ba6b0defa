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
    others = ("nblib/workflow/", "nblib/results/report.py", "nblib/training/")
    assert not [file for file in files if file.startswith(others)]


@pytest.mark.parametrize("name", [path.name for path in sorted(paths.NOTEBOOKS.glob("*.ipynb"))])
def test_a_notebooks_modules_are_sorted_files_that_exist(name):
    files = dependencies.module_files(f"notebooks/{name}")
    assert files == sorted(set(files))
    assert files
    assert all((paths.PROJECT_ROOT / file).is_file() for file in files)


@pytest.mark.parametrize(
    "source",
    [
        "from nblib.models import embeddings",
        "import nblib.models.embeddings as e",
        "from nblib.models.embeddings import encode",
    ],
)
def test_every_way_to_import_a_module_counts(notebook, source):
    assert "nblib.models.embeddings" in dependencies.imported_modules(notebook("import numpy as np", source))
    files = dependencies.module_files(notebook(source))
    assert {"nblib/models/embeddings.py", "nblib/models/encoders.py", "nblib/paths.py"} <= set(files)


def test_a_module_in_a_package_brings_its_packages(notebook):
    files = dependencies.module_files(notebook("from nblib.benchmarks.pairwise import x"))
    assert {"nblib/__init__.py", "nblib/benchmarks/__init__.py", "nblib/benchmarks/pairwise.py"} <= set(files)


def test_an_import_within_a_function_counts(notebook):
    source = "def late():\n    from nblib import stats"
    assert "nblib/stats.py" in dependencies.module_files(notebook(source))


def test_a_notebook_that_imports_nothing_of_ours_depends_on_nothing_of_ours(notebook):
    assert dependencies.module_files(notebook("import numpy", "x = 1")) == []


def test_a_command_depends_on_what_its_function_imports():
    files = dependencies.module_files("nblib/workflow/commands/report.py")
    assert {"nblib/results/report.py", "nblib/results/comparison.py"} <= set(files)
    assert not [file for file in files if file.startswith("nblib/synthesis/")]
