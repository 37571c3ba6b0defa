"""The README: its commands exist and run, its links lead somewhere, its numbers are the record's."""

import re
import subprocess
import sys

import numpy as np

from nblib import paths
from nblib.models.negation_adapter import NegationAdapter
from nblib.workflow import documents

README = (paths.PROJECT_ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_its_examples_of_python_run(tmp_path):
    """In order, the run's adapter replaced by one made here."""
    NegationAdapter().fit(*np.random.default_rng(0).normal(size=(3, 50, 768))).save(tmp_path / "adapter.safetensors")
    replaced = {
        "runs/quick/adapters/all-mpnet-base-v2.safetensors": str(tmp_path / "adapter.safetensors"),
        '"runs/all-mpnet-base-v2-negation"': repr(str(tmp_path / "negation")),
    }
    assert len(blocks("python")) == 1
    for code in blocks("python"):
        for old, new in replaced.items():
            code = code.replace(old, new)
        subprocess.run([sys.executable, "-c", code], cwd=paths.PROJECT_ROOT, check=True)
    assert (tmp_path / "negation" / "modules.json").is_file()


def test_its_numbers_are_those_of_record():
    assert {name for _, name, _ in documents.PART.findall(README)} == set(documents.PARTS)
    assert documents.fill(README, paths.FIGURES / "official") == README
