"""The outputs of each notebook, declared once: for the Snakefile, and for the check of `nblib run` after an execution."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nblib import artefacts, paths

NOTHING = ("", "none", 0, None, [], {})  # values of a parameter that isn't given


@dataclass(frozen=True)
class Declared:
    """The outputs of a notebook.

    Attributes:
        figures: their names, separated by blanks: `fig_<name>.svg` and `.csv` below `figures/<notebook>/`.
        tables: likewise, `tab_<name>.csv`.
        files: further files and folders (with a slash at the end), relative to the run. `{variant}` is the model.
        only_with: figures and tables that need a parameter: name → parameter.
        sometimes: figures and tables that depend on the measurements; they are not expected.
        per_variant: whether it is executed for each of several models, and its files' names end in the model.
        results: whether it writes `results/<number>_<variant or name>.csv` with its sidecar.
    """

    figures: str = ""
    tables: str = ""
    files: tuple[str, ...] = ()
    only_with: Mapping[str, str] = field(default_factory=dict)
    sometimes: str = ""
    per_variant: bool = False
    results: bool = True

    @property
    def shown(self) -> list[str]:
        """Every figure and table by its full name: fig_histograms, tab_scores."""
        figures = [f"fig_{name}" for name in self.figures.split()]
        return figures + [f"tab_{name}" for name in self.tables.split()]


OUTPUTS = {
    "01_diagnosis": Declared("histograms examples", "closer dropped"),
    "02_synthesis": Declared(
        "anchors yields", "yields price", files=("synthesis/variants.parquet", "synthesis/variants.parquet.json")
    ),
    "03_triples": Declared(
        "yield lengths diversity",
        "cues diversity contamination",
        files=("triples/anchors.parquet", "triples/anchors.parquet.json", "triples/hedgetriple/"),
    ),
    "04_encoder_training": Declared(
        "training alpha",
        "dev figure1",
        files=("trainings/{variant}/training.json",),  # not the weights: it can be shown without them
        per_variant=True,
    ),
    "05_llm_lora": Declared(
        "loss dev",
        "settings dev cost",
        files=("trainings/{variant}/training.json",),
        per_variant=True,
    ),
    "06_negation_adapter": Declared(
        "weights trade_off in_domain",
        "table1 table2 table3",
        files=(
            "adapters/{variant}.safetensors",
            "adapters/{variant}.safetensors.json",
            "scores/{variant}/adapter_splits.csv",
        ),
        sometimes="fig_ranks",
        per_variant=True,
    ),
    "07_encoder_benchmarks": Declared(
        "profile benchmarks",
        "profile scores interventions general",
        files=("scores/{variant}/system.json",),
        only_with={"tab_general": "general"},
        sometimes="fig_sts tab_general_changes",
        per_variant=True,
    ),
    "08_hedge_trainings": Declared(
        "size parts diversity frontier record mixtures",
        "trainings changes singles mixtures mixture_changes larger_mixtures",
        only_with={
            **dict.fromkeys(["fig_mixtures", "tab_mixtures", "tab_mixture_changes"], "mixtures"),
            "tab_larger_mixtures": "larger_mixtures",
        },
    ),
    "09_nevir_architectures": Declared(
        "words architectures preference epochs",
        "nevir tests",
        only_with={"fig_epochs": "every_epoch"},
        sometimes="fig_maxsim fig_sts",
    ),
    "10_semantoneg_families": Declared(
        "families claim", "construction antonyms", only_with={"fig_claim": "families_trained"}
    ),
    "11_llm_benchmarks": Declared(
        "negation mmlu",
        "scores response_biases changes table3",
        per_variant=True,
    ),
    "12_gsm8k_errors": Declared("types", "types arithmetic answers agreement"),
    "13_results": Declared(
        "coverage agreement ranks",
        "claims coverage granularity averages",
        files=("figures/measurements.csv", "figures/scoreboard.csv"),
        sometimes="fig_glance",
        results=False,
    ),
}


def files(notebook: str, run_dir: str, variant: str = "", parameters: Mapping[str, object] | None = None) -> list[str]:
    """The files that a notebook leaves below a run, folders with a slash at their end.

    Args:
        notebook: its name, as "07_encoder_benchmarks".
        variant: the model; a wildcard in braces stays one.
        parameters: those on which outputs depend.
    """
    declared, given = OUTPUTS[notebook], parameters or {}
    ending = f"_{variant}" if declared.per_variant else ""
    number, _, name = notebook.partition("_")
    found = []
    if declared.results:
        results = f"results/{number}_{variant if declared.per_variant else name}.csv"
        found = [results, f"{results}.json"]
    for shown in declared.shown:
        if shown not in declared.only_with or given.get(declared.only_with[shown]) not in NOTHING:
            kinds = ["svg", "csv"] if shown.startswith("fig_") else ["csv"]
            found += [f"figures/{notebook}/{shown}{ending}.{kind}" for kind in kinds]
    found += [file.replace("{variant}", variant) for file in declared.files]
    return [f"{run_dir}/{file}" for file in found]


def dates(run_dir: str) -> dict[Path, int]:
    """When each results file of a run was written, in nanoseconds."""
    return {file: file.stat().st_mtime_ns for file in paths.resolve(run_dir).glob("results/*.csv")}


def missing(notebook: str, parameters: Mapping[str, object], before: Mapping[Path, int]) -> list[str]:
    """The declared outputs that an execution has not left; none for a notebook that isn't the study's.

    Args:
        parameters: all of them.
        before: `dates` at the start of the execution: results files with other dates name the models. Which is the later
            date doesn't count, since a clock can be set back.
    """
    if notebook not in OUTPUTS:
        return []
    run_dir, variants = str(parameters["run_dir"]), [""]
    if OUTPUTS[notebook].per_variant:
        number = notebook.partition("_")[0]
        # `nblib score`, which may run beside the notebook, writes results of the same number
        recent = [
            file
            for file, date in dates(run_dir).items()
            if file.name.startswith(f"{number}_") and before.get(file) != date
        ]
        written = [file for file in recent if artefacts.about(file).get("notebook") == notebook]
        variants = [file.stem.partition("_")[2] for file in written]
        # Another model's job may have ended meanwhile, with other parameters: this one's model is among its own
        named = {Path(value).name for value in parameters.values() if isinstance(value, str)}
        variants = [variant for variant in variants if variant in named] or variants
        if not variants:
            return [f"{run_dir}/results/{number}_….csv"]
    expected = [file for variant in variants for file in files(notebook, run_dir, variant, parameters)]
    return [file for file in expected if not Path(paths.resolve(file)).exists()]
