"""The package's shape: layers, and modules that do nothing on import."""

import ast
import json
import subprocess
import sys

import pytest

from nblib import paths

FILES = sorted((paths.PROJECT_ROOT / "nblib").rglob("*.py"))
MODULES = [
    ".".join(file.relative_to(paths.PROJECT_ROOT).with_suffix("").parts).removesuffix(".__init__") for file in FILES
]
LIGHT = [
    "paths", "stats", "corpora", "results", "results.published", "results.report", "models.negation_adapter", "synthesis.client",
    "benchmarks.catalogue", "workflow.cli", "workflow.sweeps",
]  # fmt: skip


def python(code, *arguments, cwd=paths.PROJECT_ROOT):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, capture_output=True, text=True, timeout=180
    )


def test_a_module_imports_only_from_layers_below_its_own_and_in_no_circle():
    done = python("from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 kept, 0 broken" in done.stdout


def test_importing_every_module_prints_nothing_and_writes_nothing(tmp_path):
    code = "import sys, importlib; [importlib.import_module(name) for name in sys.argv[1:]]"
    done = python(code, *MODULES, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_light_modules_do_not_import_torch():
    code = """
import importlib, json, sys
heavy = {}
for name in sys.argv[1:]:
    importlib.import_module("nblib." + name)
    heavy[name] = [module for module in ("torch", "transformers", "sentence_transformers", "mteb") if module in sys.modules]
print(json.dumps(heavy))
"""
    done = python(code, *LIGHT)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {name: [] for name in LIGHT}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(paths.PROJECT_ROOT)))
def test_a_module_and_its_public_functions_are_documented(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "the module"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node) or len(node.body) <= 2, node.name
            assert node.returns is not None, f"{node.name}: no return type"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(paths.PROJECT_ROOT)))
def test_no_module_prints_or_silences_all_warnings(file):
    calls = [node.func for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    names = {call.id if isinstance(call, ast.Name) else getattr(call, "attr", "") for call in calls}
    assert not names & {"print", "filterwarnings"}
