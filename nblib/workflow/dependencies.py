"""What a notebook (or a Python file) depends on among nblib's modules, by the import graph: the Snakefile's inputs."""

import ast
import json
from functools import cache
from pathlib import Path

import grimp

from nblib import corpora, paths
from nblib.models import language_models
from nblib.models import registry as models


@cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph("nblib", cache_dir=None)


def imported_modules(notebook: Path) -> set[str]:
    """The nblib modules that a notebook's code cells (or a Python file) import, by dotted name."""
    if notebook.suffix == ".py":
        source = notebook.read_text(encoding="utf-8")
    else:
        # Not by nbformat, which takes longer to load than the rest of the graph
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        source = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "nblib":
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names & _graph().modules


def module_files(notebook: str | Path) -> list[str]:
    """The source files, relative to the project, of the modules that a notebook or Python file imports, directly or not."""
    imported = imported_modules(paths.resolve(notebook))
    reached = imported.union(*map(_graph().find_upstream_modules, imported))
    # importing a.b.c runs the packages a and a.b as well
    reached |= {module.rsplit(".", depth)[0] for module in reached for depth in range(1, module.count(".") + 1)}
    files = (paths.PROJECT_ROOT / module.replace(".", "/") for module in reached)
    sources = (file / "__init__.py" if file.is_dir() else file.with_suffix(".py") for file in files)
    return sorted(str(file.relative_to(paths.PROJECT_ROOT)) for file in sources)


def registered(*names: str) -> str:
    """The registry entries of corpora and models: a change in one reruns what uses it, and nothing else."""
    registries = [corpora.entries(), models.entries(), language_models.entries()]
    return repr([registry[name] for name in names for registry in registries if name in registry])


def shipped(*names: str) -> list[str]:
    """The files of those corpora that come with the project."""
    entries = [corpora.describe(name) for name in names]
    return sorted({f"data/{split.file}" for entry in entries if not entry.official for split in entry.splits.values()})
