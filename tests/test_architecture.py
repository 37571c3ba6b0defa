"""The package's shape: layers, and what is documented."""

import ast
import subprocess
import sys

import pytest

from nblib import paths

FILES = sorted((paths.PROJECT_ROOT / "nblib").rglob("*.py"))


def test_a_module_imports_only_from_layers_below_its_own_and_in_no_circle():
    code = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", code], cwd=paths.PROJECT_ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 kept, 0 broken" in done.stdout


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(paths.PROJECT_ROOT)))
def test_a_module_and_its_public_functions_are_documented(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "the module"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node) or len(node.body) <= 2, node.name
            assert node.returns is not None, f"{node.name}: no return type"
