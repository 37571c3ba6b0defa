"""What notebooks leave: declared once, as their cells have it."""

import ast
import os

import nbformat
import pytest

from nblib import artefacts, paths
from nblib.workflow import outputs

NOTEBOOKS = sorted(path.stem for path in paths.NOTEBOOKS.glob("*.ipynb"))


@pytest.fixture(params=NOTEBOOKS)
def source(request):
    """A notebook's name and its code."""
    cells = nbformat.read(paths.NOTEBOOKS / f"{request.param}.ipynb", as_version=4).cells
    return request.param, "\n".join(cell.source for cell in cells if cell.cell_type == "code")


def test_every_notebook_is_declared_and_no_other():
    assert sorted(outputs.OUTPUTS) == NOTEBOOKS


def test_its_cells_save_the_figures_and_tables_that_are_declared(source):
    name, code = source
    declared = outputs.OUTPUTS[name]
    saved = {
        f"{node.func.attr[:3]}_{node.args[1].value}"
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("outputs.figure", "outputs.table")
    }
    assert saved == {*declared.shown, *declared.sometimes.split()}
    assert ("outputs.record(" in code) == declared.results
    assert set(declared.only_with) <= set(declared.shown)


def test_the_files_of_a_notebook_executed_for_a_model_end_in_its_name():
    files = outputs.files("11_llm_benchmarks", "runs/x", "{llm}", {"data": "mini"})
    assert files[:2] == ["runs/x/results/11_{llm}.csv", "runs/x/results/11_{llm}.csv.json"]
    assert "runs/x/figures/11_llm_benchmarks/fig_negation_{llm}.svg" in files
    files = outputs.files("04_encoder_training", "runs/x", "a")
    assert "runs/x/trainings/a/training.json" in files and not any("/encoders/" in file for file in files)


@pytest.mark.parametrize(("families", "drawn"), [(["family-nli-s0"], True), ([], False)])
def test_a_figure_of_what_was_not_asked_for_is_not_expected(families, drawn):
    files = outputs.files("10_semantoneg_families", "r", parameters={"families_trained": families})
    assert ("r/figures/10_semantoneg_families/fig_claim.svg" in files) == drawn
    assert "r/results/10_semantoneg_families.csv" in files


def leave(run, files, notebook="06_negation_adapter"):
    for file in files:
        path = run / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".json":
            artefacts.write_json(path, {"notebook": notebook})
        else:
            path.touch()


def test_missing_is_what_an_execution_did_not_leave(tmp_path):
    given = {"run_dir": str(tmp_path)}
    wanted = outputs.files("01_diagnosis", str(tmp_path))
    assert outputs.missing("01_diagnosis", given, {}) == wanted
    leave(tmp_path, wanted[1:])
    assert outputs.missing("01_diagnosis", given, {}) == wanted[:1]
    assert outputs.missing("my_own_notebook", given, {}) == []


def test_what_it_was_executed_for_is_read_from_the_results_it_wrote(tmp_path):
    given = {"run_dir": str(tmp_path)}
    leave(tmp_path, ["results/06_old.csv"])
    before = outputs.dates(str(tmp_path))
    assert outputs.missing("06_negation_adapter", given, before) == [f"{tmp_path}/results/06_….csv"]
    leave(tmp_path, outputs.files("06_negation_adapter", str(tmp_path), "new"))
    assert outputs.missing("06_negation_adapter", given, before) == []
    os.utime(tmp_path / "results/06_new.csv", (0, 0))
    assert outputs.missing("06_negation_adapter", given, before) == [], "the clock was set back meanwhile"
    leave(tmp_path, ["results/06_scored.csv", "results/06_scored.csv.json"], notebook=None)
    assert outputs.missing("06_negation_adapter", given, before) == [], (
        "a command that runs beside it has its own results"
    )
    (tmp_path / "adapters/new.safetensors").unlink()
    assert outputs.missing("06_negation_adapter", given, before) == [f"{tmp_path}/adapters/new.safetensors"]


def test_a_job_of_another_model_that_ends_meanwhile_does_not_count(tmp_path):
    """Of notebook 07 for another encoder, which was not measured on general ability."""
    given = {"run_dir": str(tmp_path), "system": f"{tmp_path}/encoders/mine", "general": "short"}
    leave(tmp_path, outputs.files("07_encoder_benchmarks", str(tmp_path), "other"), notebook="07_encoder_benchmarks")
    leave(
        tmp_path, outputs.files("07_encoder_benchmarks", str(tmp_path), "mine", given), notebook="07_encoder_benchmarks"
    )
    assert outputs.missing("07_encoder_benchmarks", given, {}) == []
