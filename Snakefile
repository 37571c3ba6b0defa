# The study as a graph: what must run, and in which order. `make study SCALE=quick` calls it; so does
#   snakemake --configfile config/quick.yaml --cores 2
# Each notebook runs in a process of its own through `nblib run`; in `make study` that is a fork of one that has imported the
# libraries (nblib/workflow/forks.py). A rule's inputs are the notebook, the nblib modules it reaches and the files it reads; its
# outputs are those of nblib/workflow/outputs.py; its parameters, and the registry entries behind them, are compared as well.
# `priority` is on what others wait for: 2 on triples → LoRA → its benchmarks, and adapter → the benchmarks that show what it does;
# 1 on training → the tuned encoder's benchmarks. Begun last, a long job would end alone on one core.

import json
import re
import sys
from pathlib import Path

from snakemake.io import flag

from nblib import corpora, paths
from nblib.benchmarks import catalogue, mteb_catalogue
from nblib.models import language_models
from nblib.models import registry as models
from nblib.training import records
from nblib.workflow import outputs, sweeps
from nblib.workflow.dependencies import module_files

if "scale" not in config:
    raise WorkflowError(
        "Which scale? Add --configfile config/quick.yaml (or official.yaml, paper.yaml); or use make study."
    )

SCALE, RUN = config["scale"], f"runs/{config['scale']}"


def by_file_name(systems):
    """Systems as their files are named → as the configuration, a notebook or a command names them: a folder has its last part's
    name, and maxsim:<encoder> no colon."""
    found = {}
    for given in systems:
        kind, _, model = given.rpartition(":")
        name = Path(model).name if paths.resolve(model).is_dir() else model.replace("/", "__")
        found["-".join(filter(None, [kind, name]))] = given
    return found


ENCODERS = by_file_name(config["06"]["encoders"])  # notebook 06 runs once for each
SCORED = by_file_name(config["07"]["encoders"])  # notebook 07 runs once for each, with its adapter as an intervention
DATA = config["07"]["common"]["data"]
VARIANTS = config["03"].get("variants", "authored")  # what the triples are built from: authored, or notebook 02's
TRAININGS = sweeps.trainings(config)  # notebook 04 runs once for each: name → its parameters
ADAPTED = sweeps.adapted(config)  # those of them that notebook 06 fits an adapter for: both interventions at once
TUNED = sweeps.scored(config)  # encoders of notebook 04 that are scored: name → the training they come from
SINGLE = sweeps.section(config, "04", "trainings")  # by name, not of the sweep
SWEEP = sweeps.section(config, "04", "sweep")
SWEEP_BENCHMARKS = SWEEP["common"].get("benchmarks", [])  # on which its encoders are scored; none named: all
(BASE,) = by_file_name([SWEEP["common"]["base"]])  # what its trainings start from, as files are named
MIXTURES = sweeps.mixtures(config)  # its trainings on several kinds of batches, which notebook 08 compares on dev data
LARGER = sweeps.larger_mixtures(config)  # and on a larger base, which it compares likewise
MERGED = sweeps.merged(config)  # encoders with LoRAs of several trainings merged: name → the way, and of which
OF_RECORD = sweeps.of_record(config)  # trained or merged by name
SWEPT = [name for name, training in TUNED.items() if training not in OF_RECORD]  # scored in brief, without a notebook each
MIXED = [*MIXTURES, *(name for name in MERGED if name not in OF_RECORD)]  # what notebook 08 compares on dev data
NEVIR = sweeps.section(config, "09", "trainings")
COMMANDED = sweeps.by_command(config)  # what `nblib train` trains: name → what the configuration says
FAMILIES = [name for name, settings in COMMANDED.items() if settings["architecture"] == "bi-encoder"]  # Vahtola's
CURVES = [name for name, settings in COMMANDED.items() if settings.get("curve", "none") != "none"]
RANKERS = by_file_name(config["09"]["rankers"])  # `nblib score` runs once for each
LORAS = sweeps.section(config, "05", "loras")  # notebook 05 runs once for each: name → its parameters
LLMS = sweeps.section(config, "11", "models")  # notebook 11 runs once for each, and for each LoRA: name → its parameters
GPU = config.get("gpu", 0)  # GPUs a job takes; `snakemake --resources gpu=N` says how many there are
NBLIB = f"{sys.executable} -m nblib.workflow.cli"
EXECUTE = f"{NBLIB} run"


def folder_of(training):
    """The folder of a training's outputs: the sweep has its own, apart from the reference figures."""
    return RUN if training in OF_RECORD else f"{RUN}/sweep"


def record_of(training):
    """The record of a training, or of a merged encoder."""
    return f"{folder_of(training)}/trainings/{training}/training.json"


# Of the sweep and of `nblib train`: trainings of which this run has the record and no weights. What they left is taken as it is.
KEPT = [
    *(name for name in [*TRAININGS, *MERGED] if name not in SINGLE and records.is_alone(folder_of(name), name)),
    *(name for name in COMMANDED if records.is_alone(RUN, name)),
]
SYSTEMS = [*RANKERS, *(name for name, settings in COMMANDED.items() if "score" in settings)]  # what `nblib score` scores


def one_of(names):
    """A wildcard's pattern."""
    return "|".join(map(re.escape, names)) or "none"


wildcard_constraints:
    folder=f"{RUN}|{RUN}/sweep",
    encoder=one_of({*ENCODERS, *SCORED, *ADAPTED}),
    tuned=one_of([name for name in TUNED if name not in SWEPT]),
    swept=one_of(SWEPT),
    training=one_of([name for name in TRAININGS if name not in KEPT]),
    commanded=one_of([name for name in COMMANDED if name not in KEPT]),
    system=one_of(SYSTEMS),
    lora=one_of(LORAS),
    llm=one_of({**LLMS, **LORAS}),


def notebook(name):
    """A notebook and the modules it reaches."""
    path = f"notebooks/{name}.ipynb"
    return [path, *module_files(path)]


def command(name):
    """A subcommand of `nblib` and the modules it reaches, without the page that it ends with."""
    path = f"nblib/workflow/commands/{name}.py"
    return [path, *module_files(path, without=["nblib.analysis.model_page"])]


def outputs_of(name, variant="", folder=RUN, **given):
    """The outputs of a notebook, for a model or a wildcard; `given` are the parameters on which they depend."""
    found = outputs.files(name, folder, variant, given)
    return [directory(file.rstrip("/")) if file.endswith("/") else file for file in found]


def found_again(files, *more):
    """Outputs of a job that finds what was trained or answered before: Snakemake must not remove that before the job runs."""
    kinds = ["trainings", "scores", *more]
    lasting = [f"{folder}/{kind}/" for folder in (RUN, f"{RUN}/sweep", "{folder}") for kind in kinds]
    return [flag(file, "update") if file.startswith(tuple(lasting)) else file for file in files]


def shipped(*names):
    """The files of those corpora that come with the project."""
    entries = [corpora.describe(name) for name in names]
    return sorted({f"data/{split.file}" for entry in entries if not entry.official for split in entry.splits.values()})


def corpus_of(declared, key):
    """The corpus of a benchmark in the form that a notebook's parameters ask for."""
    return key if declared["data"] == "official" else f"{key}_mini"


ADAPTER_CORPORA = [corpus_of(config["06"]["common"], key) for key in ("stsb", "semantoneg")]


def read_by_07(data):
    """The corpora that notebook 07 reads."""
    return ["hedgetriple", *catalogue.corpora_of(data), *mteb_catalogue.corpora_of(general_of(data))]


def general_of(data):
    """Which of MTEB's tasks notebook 07 measures an encoder on: those of the configuration, on official data only."""
    return config["07"]["common"].get("general", "none") if data == "official" else "none"


def benchmark_files(data):
    """The project's own files that notebook 07 reads."""
    return [*shipped(*read_by_07(data)), "data/training/heldout_anchors.txt"]


def parameters(declared, **own):
    """A notebook's parameters as JSON, for the command line and for the comparison with the last run. (Only of wildcards:
    parameters made from `input` are not compared, and a change in one would rerun nothing.)"""
    return json.dumps({"scale": SCALE, "run_dir": RUN, **declared, **own}, sort_keys=True)


def registered(*names):
    """The registry entries of corpora and models: a change in one reruns what uses it, and nothing else."""
    registries = [corpora.entries(), models.entries(), language_models.entries()]
    return repr([registry[name] for name in names for registry in registries if name in registry])


rule all:
    input:
        f"{RUN}/report/index.html",


rule mixtures:  # the search for the study's own encoder alone: snakemake mixtures --configfile config/official.yaml
    input:
        [f"{RUN}/sweep/results/04_{name}.csv" for name in MIXTURES],
        [record_of(name) for name in MERGED],


rule diagnosis:
    input:
        notebook("01_diagnosis"),
        shipped(corpus_of(config["01"], "stsb")),
    params:
        json=lambda wildcards: parameters(config["01"]),
        entries=lambda wildcards: registered(corpus_of(config["01"], "stsb"), *config["01"]["encoders"]),
    output:
        outputs_of("01_diagnosis"),
    log:
        f"{RUN}/notebooks/01_diagnosis.ipynb",
    resources:
        gpu=GPU,
    shell:
        "{EXECUTE} 01 {log} -y {params.json:q}"


rule synthesis:
    input:
        notebook("02_synthesis"),
        shipped("hedgetriple"),
        config["02"]["other_recordings"],
        [] if config["02"].get("model") else config["02"]["recording"],
        "data/published/prompts.json",
        "data/published/hedge_cues.json",
    params:
        json=lambda wildcards: parameters(config["02"]),
    output:
        outputs_of("02_synthesis"),
    log:
        f"{RUN}/notebooks/02_synthesis.ipynb",
    shell:
        "{EXECUTE} 02 {log} -y {params.json:q}"


rule triples:
    input:
        notebook("03_triples"),
        shipped("hedgetriple", "exclusions", "contrast_mini", "exclusions_mini", *read_by_07("mini")),
        [] if VARIANTS == "authored" else VARIANTS,
        "data/training/heldout_anchors.txt",
        "data/published/hedge_cues.json",
    params:
        json=lambda wildcards: parameters(config["03"]),
        entries=lambda wildcards: registered("hedgetriple", *read_by_07(config["03"]["data"])),
    priority: 2
    output:
        outputs_of("03_triples"),
    log:
        f"{RUN}/notebooks/03_triples.ipynb",
    shell:
        "{EXECUTE} 03 {log} -y {params.json:q}"


rule encoder_training:
    input:
        notebook("04_encoder_training"),
        shipped("exclusions", "contrast_mini", "exclusions_mini"),
        f"{RUN}/triples/anchors.parquet",
    params:
        json=lambda wildcards: parameters(
            {**config["04"]["common"], **TRAININGS[wildcards.training]},
            run_dir=wildcards.folder,
            name=wildcards.training,
            anchors=f"{RUN}/triples/anchors.parquet",
        ),
        entries=lambda wildcards: registered(TRAININGS[wildcards.training]["base"]),
    priority: 1
    output:
        found_again(outputs_of("04_encoder_training", "{training}", "{folder}")),
    log:
        "{folder}/notebooks/04_encoder_training/{training}.ipynb",
    resources:
        gpu=GPU,
    shell:
        "{EXECUTE} 04 {log} -y {params.json:q}"


def merge_options(name):
    """The options of `nblib merge` for such an encoder."""
    settings = MERGED[name]
    loras = [f"{folder_of(lora)}/encoders/{lora}-lora" for lora in settings["loras"]]
    weights = ["--weights", *settings["weights"]] if "weights" in settings else []
    return ["--loras", *loras, "--way", settings["way"], *weights, "--base", settings["base"]]


rule merge:
    input:
        command("merge"),
        lambda wildcards: [record_of(name) for name in MERGED[wildcards.merged]["loras"]],
        f"{RUN}/triples/anchors.parquet",
    params:
        options=lambda wildcards: merge_options(wildcards.merged),
        data=config["04"]["common"]["data"],
    output:
        found_again(["{folder}/trainings/{merged}/training.json"]),
    wildcard_constraints:
        merged=one_of([name for name in MERGED if name not in KEPT]),
    resources:
        gpu=GPU,
    shell:
        "{NBLIB} merge {wildcards.merged} {params.options:q} --data {params.data} --anchors {RUN}/triples/anchors.parquet"
        " --scale {SCALE} --run-dir {wildcards.folder}"


rule llm_lora:
    input:
        notebook("05_llm_lora"),
        f"{RUN}/triples/anchors.parquet",
        "data/published/prompts.json",
        "data/published/truong.csv",
    params:
        json=lambda wildcards: parameters(
            LORAS[wildcards.lora],
            name=wildcards.lora,
            anchors=f"{RUN}/triples/anchors.parquet",
        ),
        entries=lambda wildcards: registered(LORAS[wildcards.lora]["base"]),
    priority: 2
    output:
        found_again(outputs_of("05_llm_lora", "{lora}")),
    log:
        f"{RUN}/notebooks/05_llm_lora/{{lora}}.ipynb",
    resources:
        gpu=GPU,
    shell:
        "{EXECUTE} 05 {log} -y {params.json:q}"


def adapted_encoder(name):
    """What notebook 06 fits an adapter for: a published encoder, one of this run, or, without its weights, the LoRA that ships."""
    shipped_lora = f"data/adapters/{name}"
    if name not in ADAPTED:
        return ENCODERS[name]
    return shipped_lora if records.is_alone(RUN, name) and Path(shipped_lora).is_dir() else f"{RUN}/encoders/{name}"


rule negation_adapter:
    input:
        notebook("06_negation_adapter"),
        shipped(*ADAPTER_CORPORA),
        lambda wildcards: f"{RUN}/trainings/{wildcards.encoder}/training.json" if wildcards.encoder in ADAPTED else [],
    params:
        json=lambda wildcards: parameters(config["06"]["common"], encoder=adapted_encoder(wildcards.encoder)),
        entries=lambda wildcards: registered(*ADAPTER_CORPORA, wildcards.encoder),
    priority: 2
    output:
        outputs_of("06_negation_adapter", "{encoder}"),
    log:
        f"{RUN}/notebooks/06_negation_adapter/{{encoder}}.ipynb",
    resources:
        gpu=GPU,
    shell:
        "{EXECUTE} 06 {log} -y {params.json:q}"


rule encoder_benchmarks:
    input:
        notebook("07_encoder_benchmarks"),
        benchmark_files(DATA),
        lambda wildcards: [
            f"{RUN}/scores/{name}/system.json" for name in sweeps.interventions(config, SCORED[wildcards.encoder])
        ],
        f"{RUN}/adapters/{{encoder}}.safetensors",  # the encoder's card says what this does, and what the tuned encoders do
    params:
        json=lambda wildcards: parameters(
            config["07"]["common"],
            system=SCORED[wildcards.encoder],
            interventions=[
                f"{RUN}/adapters/{wildcards.encoder}.safetensors",
                *sweeps.interventions(config, SCORED[wildcards.encoder]),
            ],
        ),
        entries=lambda wildcards: registered(*read_by_07(DATA), wildcards.encoder),
    wildcard_constraints:
        encoder=one_of(SCORED),  # a tuned encoder is scored by the rule below
    priority: 2
    output:
        outputs_of("07_encoder_benchmarks", "{encoder}", general=general_of(DATA)),
    log:
        f"{RUN}/notebooks/07_encoder_benchmarks/{{encoder}}.ipynb",
    resources:
        gpu=GPU,
    shell:
        "{EXECUTE} 07 {log} -y {params.json:q}"


def own_adapter(tuned):
    """The adapter fitted for a tuned encoder, as a list; empty where the configuration wants none."""
    return [f"{RUN}/adapters/{tuned}.safetensors"] if tuned in ADAPTED else []


def general_of_tuned(tuned):
    """Likewise of a tuned encoder; without its weights only if it was measured before."""
    unmeasured = not Path(f"{RUN}/scores/{tuned}/general.csv").is_file()
    kept = unmeasured and records.is_alone(RUN, TUNED[tuned])
    return "none" if kept else general_of(sweeps.data(config, TUNED[tuned]))


rule tuned_benchmarks:
    input:
        notebook("07_encoder_benchmarks"),
        lambda wildcards: benchmark_files(sweeps.data(config, TUNED[wildcards.tuned])),
        lambda wildcards: f"{RUN}/trainings/{TUNED[wildcards.tuned]}/training.json",
        lambda wildcards: own_adapter(wildcards.tuned),
    params:
        json=lambda wildcards: parameters(
            # of as many anchors as its base's profile, with which it is compared
            {"dev_splits": False, "examples": 0, "profile_size": config["07"]["common"].get("profile_size", 0)},
            system=f"{RUN}/encoders/{wildcards.tuned}",
            data=sweeps.data(config, TUNED[wildcards.tuned]),
            general=general_of_tuned(wildcards.tuned),
            interventions=own_adapter(wildcards.tuned),
        ),
        entries=lambda wildcards: registered(*read_by_07(sweeps.data(config, TUNED[wildcards.tuned]))),
    priority: 1
    output:
        found_again(outputs_of("07_encoder_benchmarks", "{tuned}")),
    log:
        f"{RUN}/notebooks/07_encoder_benchmarks/{{tuned}}.ipynb",
    resources:
        gpu=GPU,
    shell:
        "{EXECUTE} 07 {log} -y {params.json:q}"


rule sweep_benchmarks:
    input:
        command("score"),
        lambda wildcards: benchmark_files(sweeps.data(config, TUNED[wildcards.swept])),
        lambda wildcards: f"{RUN}/sweep/trainings/{TUNED[wildcards.swept]}/training.json",
    params:
        options=lambda wildcards: [
            *["--data", sweeps.data(config, TUNED[wildcards.swept])],
            *(["--benchmarks", *SWEEP_BENCHMARKS] if SWEEP_BENCHMARKS else []),
        ],
        entries=lambda wildcards: registered(*read_by_07(sweeps.data(config, TUNED[wildcards.swept]))),
    output:
        f"{RUN}/sweep/results/07_{{swept}}.csv",
        f"{RUN}/sweep/results/07_{{swept}}.csv.json",
        found_again([f"{RUN}/sweep/scores/{{swept}}/system.json"]),
    resources:
        gpu=GPU,
    shell:
        "{NBLIB} score {RUN}/sweep/encoders/{wildcards.swept} {params.options:q} --brief"
        " --scale {SCALE} --run-dir {RUN}/sweep"


def scored_encoders():
    """The scores of every encoder, plain and tuned: outputs of notebook 07, and of `nblib score` for those of the sweep."""
    by_07 = [*SCORED, *(name for name in TUNED if name not in SWEPT)]
    return [
        *(file for name in by_07 for file in outputs_of("07_encoder_benchmarks", name)),
        *expand(rules.sweep_benchmarks.output, swept=SWEPT),
    ]


def base_of(name):
    """The base of a training by command, where it was trained in this run as well: its record, as a list."""
    base = COMMANDED[name].get("base")
    return [f"{RUN}/trainings/{base}/training.json"] if base in COMMANDED else []


def train_options(name):
    """The options of `nblib train` for such a training; a base of this run is given by its folder."""
    settings = dict(COMMANDED[name])
    if base_of(name):
        settings["base"] = f"{RUN}/encoders/{settings['base']}"
    return sweeps.options(settings)


rule train:
    input:
        command("train"),
        f"{RUN}/triples/anchors.parquet",
        shipped("nevir_mini"),
        lambda wildcards: base_of(wildcards.commanded),
    params:
        options=lambda wildcards: train_options(wildcards.commanded),
        entries=lambda wildcards: registered(
            "nevir", "nevir_mini", "stsb", "semantoneg", COMMANDED[wildcards.commanded].get("base")
        ),
    output:
        found_again([f"{RUN}/trainings/{{commanded}}/training.json"]),
    wildcard_constraints:
        commanded=one_of([name for name in COMMANDED if name not in [*CURVES, *FAMILIES, *KEPT]]),
    resources:
        gpu=GPU,
    shell:
        "{NBLIB} train {wildcards.commanded} {params.options:q} --scale {SCALE} --run-dir {RUN}"


use rule train as train_with_curve with:
    output:
        found_again([f"{RUN}/trainings/{{commanded}}/training.json"]),
        multiext(f"{RUN}/scores/{{commanded}}/epochs.csv", "", ".json"),
    wildcard_constraints:
        commanded=one_of([name for name in CURVES if name not in KEPT]),


use rule train as train_family with:
    output:
        found_again([f"{RUN}/trainings/{{commanded}}/training.json"]),
        multiext(f"{RUN}/results/07_{{commanded}}.csv", "", ".json"),
        f"{RUN}/scores/{{commanded}}/semantoneg_test.parquet",
    wildcard_constraints:
        commanded=one_of([name for name in FAMILIES if name not in KEPT]),


def score_options(filed):
    """The arguments of `nblib score`: a system by name, a model trained here by its folder."""
    if filed in RANKERS:
        return [RANKERS[filed], "--data", DATA]
    settings = COMMANDED[filed]
    return [f"{RUN}/encoders/{filed}", "--data", settings["score"]]


rule score:
    input:
        command("score"),
        shipped("hedgetriple", *catalogue.corpora_of(DATA)),
        "data/registries/rankers.yaml",
        lambda wildcards: f"{RUN}/trainings/{wildcards.system}/training.json" if wildcards.system in COMMANDED else [],
    params:
        options=lambda wildcards: score_options(wildcards.system),
    output:
        multiext(f"{RUN}/results/07_{{system}}.csv", "", ".json"),
        f"{RUN}/scores/{{system}}/system.json",
    resources:
        gpu=GPU,
    shell:
        "{NBLIB} score {params.options:q} --scale {SCALE} --run-dir {RUN}"


def scored_by_command(*names):
    """The outputs of `nblib score` for these systems."""
    return expand(rules.score.output, system=[name for name in names if name in SYSTEMS])


# What notebooks 08 to 10 compare, by the parameters of theirs that name it.
RECORDED = [*SCORED, *(name for name in TUNED if name not in SWEPT)]
COMPARED = [*RANKERS, *(name for name in NEVIR if name in SYSTEMS)]
CROSS = [name for name, settings in COMMANDED.items() if name not in NEVIR and settings["architecture"] == "cross-encoder"]
EPOCHS = [name for name in CURVES if NEVIR[name]["curve"] == "epochs"]
EVERY_EPOCH = next(
    (name for name, settings in TRAININGS.items()
     if settings.get("training_data") == "NevIR" and settings.get("evaluate_every_epoch", True)), "none",
)  # fmt: skip


rule hedge_trainings:
    input:
        notebook("08_hedge_trainings"),
        scored_encoders(),
        scored_by_command(*COMPARED),
        [record_of(name) for name in [*MIXED, *LARGER]],
    params:
        json=lambda wildcards: parameters(
            {},
            base=BASE,
            mixtures=MIXED,
            larger_mixtures=LARGER,
            trainings=SWEPT,
            data=SWEEP["common"]["score"],
            benchmarks=SWEEP_BENCHMARKS,
            encoders=RECORDED,
            with_adapter=[f"{encoder}+adapter" for encoder in [*SCORED, *ADAPTED]],
            sweep_dir=f"{RUN}/sweep",
        ),
    output:
        outputs_of("08_hedge_trainings", mixtures=MIXED, larger_mixtures=LARGER),
    log:
        f"{RUN}/notebooks/08_hedge_trainings.ipynb",
    shell:
        "{EXECUTE} 08 {log} -y {params.json:q}"


rule nevir_architectures:
    input:
        notebook("09_nevir_architectures"),
        scored_encoders(),
        scored_by_command(*COMPARED, *CROSS),
        expand(f"{RUN}/scores/{{name}}/epochs.csv", name=EPOCHS),
        shipped("nevir_mini"),
    params:
        json=lambda wildcards: parameters(
            {},
            data=DATA,
            encoders=RECORDED,
            rankers=COMPARED,
            nevir_trained=EPOCHS,
            every_epoch=EVERY_EPOCH,
            base=BASE,
            cross_encoders=CROSS,
        ),
    output:
        outputs_of("09_nevir_architectures", every_epoch=EVERY_EPOCH),
    log:
        f"{RUN}/notebooks/09_nevir_architectures.ipynb",
    shell:
        "{EXECUTE} 09 {log} -y {params.json:q}"


rule semantoneg_families:
    input:
        notebook("10_semantoneg_families"),
        scored_encoders(),
        expand(rules.train_family.output, commanded=FAMILIES),
        shipped("semantoneg_mini", "paraphrases_mini", "paraphrases_mini_sets"),
    params:
        json=lambda wildcards: parameters(
            {}, data=DATA, base=BASE, encoders=RECORDED, families_trained=FAMILIES
        ),
    output:
        outputs_of("10_semantoneg_families", families_trained=FAMILIES),
    log:
        f"{RUN}/notebooks/10_semantoneg_families.ipynb",
    shell:
        "{EXECUTE} 10 {log} -y {params.json:q}"


def read_by_11():
    """The corpora that notebook 11 reads."""
    form = "_mini" if config["11"]["common"]["data"] == "mini" else ""
    return [*catalogue.corpora_of(config["11"]["common"]["data"]), *(f"{name}{form}" for name in ("mmlu", "hellaswag", "gsm8k"))]


def gsm8k_predictions(llm):
    """The solutions of notebook 11, for notebook 12. They have a data set's texts, so they are in no archive."""
    form = "_mini" if config["11"]["common"]["data"] == "mini" else ""
    return f"{RUN}/scores/{llm}/gsm8k{form}_test.parquet"


# The LoRA whose GSM8K errors notebook 12 looks at: the first; none where neither its weights nor its solutions are here.
EXAMINED = next(iter(LORAS), None)
if EXAMINED and records.is_alone(RUN, EXAMINED) and not Path(gsm8k_predictions(EXAMINED)).is_file():
    EXAMINED = None


def asked(llm):
    """Notebook 11's own parameters for a language model, or for a LoRA on one."""
    if llm in LLMS:
        return {"base": llm, **LLMS[llm]}
    base = LORAS[llm]["base"]
    return {"base": base, "adapter": f"{RUN}/llms/{llm}", "compare": [base]}


rule llm_benchmarks:
    input:
        notebook("11_llm_benchmarks"),
        sorted(str(file) for file in Path("nblib/benchmarks/llm").iterdir() if file.is_file() and file.suffix != ".py"),
        lambda wildcards: shipped(*read_by_11()),
        lambda wildcards: (
            [f"{RUN}/trainings/{wildcards.llm}/training.json", f"{RUN}/results/11_{LORAS[wildcards.llm]['base']}.csv"]
            if wildcards.llm in LORAS
            else []
        ),
        "data/published/prompts.json",
        "data/published/truong.csv",
    params:
        json=lambda wildcards: parameters({**config["11"]["common"], **asked(wildcards.llm)}),
        entries=lambda wildcards: registered(*read_by_11(), asked(wildcards.llm)["base"]),
    priority: 2
    output:
        found_again(outputs_of("11_llm_benchmarks", "{llm}"), "results"),
    log:
        f"{RUN}/notebooks/11_llm_benchmarks/{{llm}}.ipynb",
    resources:
        gpu=GPU,
    shell:
        "{EXECUTE} 11 {log} -y {params.json:q}"


rule gsm8k_errors:
    input:
        notebook("12_gsm8k_errors"),
        lambda wildcards: [f"{RUN}/results/11_{llm}.csv" for llm in (LORAS[EXAMINED]["base"], EXAMINED)],  # and the solutions
        "data/gsm8k/quantities.csv",
        "data/published/truong_table5.csv",
        "data/published/truong_table5_examples.jsonl",
        sorted(str(file) for file in Path("data/gsm8k/labels").glob("*.csv")),
    params:
        json=lambda wildcards: parameters(
            {},
            base_predictions=gsm8k_predictions(LORAS[EXAMINED]["base"]),
            tuned_predictions=gsm8k_predictions(EXAMINED),
            examples=config["11"]["common"].get("examples", 3),
        ),
    output:
        outputs_of("12_gsm8k_errors"),
    log:
        f"{RUN}/notebooks/12_gsm8k_errors.ipynb",
    shell:
        "{EXECUTE} 12 {log} -y {params.json:q}"


rule results:
    input:
        notebook("13_results"),
        sorted(str(file) for file in Path("data/published").iterdir()),
        rules.diagnosis.output,
        rules.synthesis.output,
        rules.triples.output,
        expand(rules.encoder_training.output, training=SINGLE, folder=RUN),
        expand(rules.llm_lora.output, lora=LORAS),
        expand(rules.negation_adapter.output, encoder=[*ENCODERS, *ADAPTED]),
        scored_encoders(),
        scored_by_command(*SYSTEMS),
        expand(rules.train_family.output, commanded=FAMILIES),
        [*rules.hedge_trainings.output, *rules.nevir_architectures.output, *rules.semantoneg_families.output] if SWEEP else [],
        expand(rules.llm_benchmarks.output, llm={**LLMS, **LORAS}),
        rules.gsm8k_errors.output if EXAMINED else [],
    params:
        json=lambda wildcards: parameters({}),
    output:
        outputs_of("13_results"),
    log:
        f"{RUN}/notebooks/13_results.ipynb",
    shell:
        "{EXECUTE} 13 {log} -y {params.json:q}"


rule report:
    input:
        sorted(str(file) for kind in ["*.py", "templates/*", "assets/*"] for file in Path("nblib/results/report").glob(kind)),
        rules.results.output,  # which come after every other notebook's
    output:
        f"{RUN}/report/index.html",
    shell:
        "{NBLIB} report {SCALE}"
