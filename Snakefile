# The study as a graph: what must run, and in which order. `make study SCALE=quick` calls it; so does
#   snakemake --configfile config/quick.yaml --cores 2
# Each notebook runs in a process of its own through `nblib run`. A rule's inputs are the notebook, the nblib modules it
# reaches and the files it reads; its outputs are the executed notebook and the files that other rules read. Parameters
# and the registry entries behind them are compared with those of the last run. `priority` is on what others wait for: 2
# on triples → LoRA → its benchmarks, and adapter → the benchmarks that show what it does; 1 on training → its benchmarks.

import json
import re
import sys
from pathlib import Path

from nblib import corpora, paths
from nblib.benchmarks import catalogue, mteb_catalogue
from nblib.models import language_models
from nblib.models import registry as models
from nblib.workflow import sweeps
from nblib.workflow.dependencies import module_files

if "scale" not in config:
    raise WorkflowError("Which scale? Add --configfile config/quick.yaml (or official.yaml, paper.yaml); or use make study.")

SCALE, RUN = config["scale"], f"runs/{config['scale']}"
ANCHORS = f"{RUN}/triples/anchors.parquet"

def by_file_name(systems):
    """Systems as their files are named → as the configuration names them: a folder has its last part's name, and
    maxsim:<encoder> no colon."""
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
SWEEP_OPTIONS = ["--benchmarks", *SWEEP_BENCHMARKS] if SWEEP_BENCHMARKS else []
(BASE,) = by_file_name([SWEEP["common"]["base"]])  # what its trainings start from, as files are named
MERGED = sweeps.merged(config)  # encoders with LoRAs of several trainings merged: name → the way, and of which
OF_RECORD = sweeps.of_record(config)  # trained or merged by name
SWEPT = [name for name, training in TUNED.items() if training not in OF_RECORD]  # scored without a notebook each
# Trainings on several kinds of batches, which notebook 08 compares on dev data; and those on a larger base
MIXED, LARGER = [*sweeps.mixtures(config), *(name for name in MERGED if name not in OF_RECORD)], sweeps.larger_mixtures(config)
NEVIR = sweeps.section(config, "09", "trainings")
COMMANDED = sweeps.by_command(config)  # what `nblib train` trains: name → what the configuration says
FAMILIES = [name for name, settings in COMMANDED.items() if settings["architecture"] == "bi-encoder"]  # Vahtola's
RANKERS = by_file_name(config["09"]["rankers"])  # `nblib score` runs once for each
LORAS = sweeps.section(config, "05", "loras")  # notebook 05 runs once for each: name → its parameters
LLMS = sweeps.section(config, "11", "models")  # notebook 11 runs once for each, and for each LoRA: name → parameters
SYSTEMS = [*RANKERS, *(name for name, settings in COMMANDED.items() if "score" in settings)]  # by `nblib score`

# What notebooks 08 to 10 compare, by the parameters of theirs that name it
RECORDED = [*SCORED, *(name for name in TUNED if name not in SWEPT)]
COMPARED = [*RANKERS, *(name for name in NEVIR if name in SYSTEMS)]
CROSS = [name for name in COMMANDED if name not in NEVIR and COMMANDED[name]["architecture"] == "cross-encoder"]
EPOCHS = [name for name, settings in NEVIR.items() if settings.get("curve") == "epochs"]
ON_NEVIR = [name for name, settings in TRAININGS.items() if settings.get("training_data") == "NevIR"]
EVERY_EPOCH = next((name for name in ON_NEVIR if TRAININGS[name].get("evaluate_every_epoch", True)), "none")

GPU = config.get("gpu", 0)  # GPUs a job takes; `snakemake --resources gpu=N` says how many there are
NBLIB = f"{sys.executable} -m nblib.workflow.cli"
EXECUTE = f"{NBLIB} run {{input[0]}} {{output[0]}} -y {{params.json:q}} > {{log}} 2>&1"

def executed(name, variant=""):
    """A notebook's executed copy; of one that runs once for each model, the copy of a model."""
    return f"{RUN}/notebooks/{name}{variant and '/'}{variant}.ipynb"

def log_of(name):
    """Where a job's messages go."""
    return f"{RUN}/logs/{name}.log"

def folder_of(training):
    """The folder of a training's outputs: the sweep has its own, apart from the reference figures."""
    return f"{RUN}/sweep" if training in {**TRAININGS, **MERGED}.keys() - OF_RECORD.keys() else RUN

def record_of(training):
    """The record of a training, or of a merged encoder."""
    return f"{folder_of(training)}/trainings/{training}/training.json"

def one_of(names):
    """A wildcard's pattern."""
    return "|".join(map(re.escape, names)) or "none"

wildcard_constraints:
    folder=f"{RUN}|{RUN}/sweep", encoder=one_of({*ENCODERS, *SCORED, *ADAPTED}), system=one_of(SYSTEMS),
    tuned=one_of([name for name in TUNED if name not in SWEPT]), swept=one_of(SWEPT), training=one_of(TRAININGS),
    merged=one_of(MERGED), commanded=one_of(COMMANDED), lora=one_of(LORAS), llm=one_of({**LLMS, **LORAS}),

def notebook(name):
    """A notebook and the modules it reaches."""
    path = f"notebooks/{name}.ipynb"
    return [path, *module_files(path)]

def command(name):
    """A subcommand of `nblib` and the modules it reaches."""
    path = f"nblib/workflow/commands/{name}.py"
    return [path, *module_files(path)]

def parameters(declared, **own):
    """A notebook's parameters as JSON, for the command line, and for Snakemake's comparison with the last run."""
    return json.dumps({"scale": SCALE, "run_dir": RUN, **declared, **own}, sort_keys=True)

def registered(*names):
    """The registry entries of corpora and models: a change in one reruns what uses it, and nothing else."""
    registries = [corpora.entries(), models.entries(), language_models.entries()]
    return repr([registry[name] for name in names for registry in registries if name in registry])

def shipped(*names):
    """The files of those corpora that come with the project."""
    entries = [corpora.describe(name) for name in names]
    return sorted({f"data/{split.file}" for entry in entries if not entry.official for split in entry.splits.values()})

def corpus_of(declared, key):
    """The corpus of a benchmark in the form that a notebook's parameters ask for."""
    return key if declared["data"] == "official" else f"{key}_mini"

ADAPTER_CORPORA = [corpus_of(config["06"]["common"], key) for key in ("stsb", "semantoneg")]

def general_of(data):
    """Which of MTEB's tasks notebook 07 measures an encoder on: those of the configuration, on official data only."""
    return config["07"]["common"].get("general", "none") if data == "official" else "none"

def read_by_07(data):
    """The corpora that notebook 07 reads."""
    return ["hedgetriple", *catalogue.corpora_of(data), *mteb_catalogue.corpora_of(general_of(data))]

def benchmark_files(data):
    """The project's own files that notebook 07 reads."""
    return [*shipped(*read_by_07(data)), "data/training/heldout_anchors.txt"]

ASKED = [corpus_of(config["11"]["common"], name) for name in ("mmlu", "hellaswag", "gsm8k")]
READ_BY_11 = [*catalogue.corpora_of(config["11"]["common"]["data"]), *ASKED]

def gsm8k_predictions(llm):
    """The solutions of notebook 11, for notebook 12. They have a data set's texts, so they are in no archive."""
    return f"{RUN}/scores/{llm}/{ASKED[-1]}_test.parquet"

EXAMINED = next(iter(LORAS), None)  # the LoRA whose GSM8K errors notebook 12 looks at

rule all:
    input: f"{RUN}/site/index.html"

rule diagnosis:
    input: notebook("01_diagnosis"), shipped(corpus_of(config["01"], "stsb"))
    params:
        json=lambda w: parameters(config["01"]),
        entries=lambda w: registered(corpus_of(config["01"], "stsb"), *config["01"]["encoders"]),
    output: executed("01_diagnosis")
    log: log_of("01_diagnosis")
    resources: gpu=GPU
    shell: EXECUTE

rule synthesis:
    input:
        notebook("02_synthesis"), shipped("hedgetriple"), config["02"]["other_recordings"],
        [] if config["02"].get("model") else config["02"]["recording"], "data/published/prompts.json",
        "data/published/hedge_cues.json",
    params: json=lambda w: parameters(config["02"])
    output: executed("02_synthesis"), f"{RUN}/synthesis/variants.parquet"
    log: log_of("02_synthesis")
    shell: EXECUTE

rule triples:
    input:
        notebook("03_triples"),
        shipped("hedgetriple", "exclusions", "contrast_mini", "exclusions_mini", *read_by_07("mini")),
        [] if VARIANTS == "authored" else VARIANTS, "data/training/heldout_anchors.txt",
        "data/published/hedge_cues.json",
    params:
        json=lambda w: parameters(config["03"]),
        entries=lambda w: registered("hedgetriple", *read_by_07(config["03"]["data"])),
    priority: 2
    output: executed("03_triples"), ANCHORS
    log: log_of("03_triples")
    shell: EXECUTE

rule encoder_training:
    input: notebook("04_encoder_training"), shipped("exclusions", "contrast_mini", "exclusions_mini"), ANCHORS
    params:
        json=lambda w: parameters(
            {**config["04"]["common"], **TRAININGS[w.training]}, run_dir=w.folder, name=w.training, anchors=ANCHORS
        ),
        entries=lambda w: registered(TRAININGS[w.training]["base"]),
    priority: 1
    output: "{folder}/notebooks/04_encoder_training/{training}.ipynb", update("{folder}/trainings/{training}/training.json")
    log: "{folder}/logs/04_{training}.log"
    resources: gpu=GPU
    shell: EXECUTE

def merge_options(name):
    """The options of `nblib merge` for such an encoder."""
    settings = MERGED[name]
    loras = [f"{folder_of(lora)}/encoders/{lora}-lora" for lora in settings["loras"]]
    weights = ["--weights", *settings["weights"]] if "weights" in settings else []
    return ["--loras", *loras, "--way", settings["way"], *weights, "--base", settings["base"]]

rule merge:
    input:
        command("merge"), ANCHORS, lambda w: [record_of(name) for name in MERGED[w.merged]["loras"]],
    params: options=lambda w: merge_options(w.merged), data=config["04"]["common"]["data"]
    output: update("{folder}/trainings/{merged}/training.json")
    log: "{folder}/logs/merge_{merged}.log"
    resources: gpu=GPU
    shell:
        "{NBLIB} merge {wildcards.merged} {params.options:q} --data {params.data} --anchors {ANCHORS}"
        " --scale {SCALE} --run-dir {wildcards.folder} > {log} 2>&1"

rule llm_lora:
    input: notebook("05_llm_lora"), ANCHORS, "data/published/prompts.json", "data/published/truong.csv"
    params:
        json=lambda w: parameters(LORAS[w.lora], name=w.lora, anchors=ANCHORS),
        entries=lambda w: registered(LORAS[w.lora]["base"]),
    priority: 2
    output: executed("05_llm_lora", "{lora}"), update(f"{RUN}/trainings/{{lora}}/training.json")
    log: log_of("05_{lora}")
    resources: gpu=GPU
    shell: EXECUTE

def adapted(name):
    """What notebook 06 fits an adapter for: a published encoder, or one of this run."""
    return ENCODERS.get(name, f"{RUN}/encoders/{name}")

rule negation_adapter:
    input:
        notebook("06_negation_adapter"), shipped(*ADAPTER_CORPORA),
        lambda w: record_of(w.encoder) if w.encoder in ADAPTED else [],
    params:
        json=lambda w: parameters(config["06"]["common"], encoder=adapted(w.encoder)),
        entries=lambda w: registered(*ADAPTER_CORPORA, w.encoder),
    priority: 2
    output: executed("06_negation_adapter", "{encoder}"), f"{RUN}/adapters/{{encoder}}.safetensors"
    log: log_of("06_{encoder}")
    resources: gpu=GPU
    shell: EXECUTE

def interventions(encoder):
    """What was done about an encoder's blindness, for its card: its adapter, and the encoders tuned from it."""
    return [f"{RUN}/adapters/{encoder}.safetensors", *sweeps.interventions(config, SCORED[encoder])]

rule encoder_benchmarks:
    input:
        notebook("07_encoder_benchmarks"), benchmark_files(DATA),
        lambda w: [executed("07_encoder_benchmarks", name) for name in interventions(w.encoder)[1:]],
        f"{RUN}/adapters/{{encoder}}.safetensors",
    params:
        json=lambda w: parameters(
            config["07"]["common"], system=SCORED[w.encoder], interventions=interventions(w.encoder)
        ),
        entries=lambda w: registered(*read_by_07(DATA), w.encoder),
    wildcard_constraints: encoder=one_of(SCORED),  # a tuned encoder is scored by the rule below
    priority: 2
    output: executed("07_encoder_benchmarks", "{encoder}")
    log: log_of("07_{encoder}")
    resources: gpu=GPU
    shell: EXECUTE

def own_adapter(tuned):
    """The adapter fitted for a tuned encoder, as a list; empty where the configuration wants none."""
    return [f"{RUN}/adapters/{tuned}.safetensors"] if tuned in ADAPTED else []

rule tuned_benchmarks:
    input:
        notebook("07_encoder_benchmarks"), lambda w: benchmark_files(sweeps.data(config, TUNED[w.tuned])),
        lambda w: record_of(TUNED[w.tuned]), lambda w: own_adapter(w.tuned),
    params:
        json=lambda w: parameters(  # a profile of as many anchors as its base's, with which it is compared
            {"dev_splits": False, "examples": 0, "profile_size": config["07"]["common"].get("profile_size", 0)},
            system=f"{RUN}/encoders/{w.tuned}", interventions=own_adapter(w.tuned),
            data=sweeps.data(config, TUNED[w.tuned]), general=general_of(sweeps.data(config, TUNED[w.tuned])),
        ),
        entries=lambda w: registered(*read_by_07(sweeps.data(config, TUNED[w.tuned]))),
    priority: 1
    output: executed("07_encoder_benchmarks", "{tuned}")
    log: log_of("07_{tuned}")
    resources: gpu=GPU
    shell: EXECUTE

rule sweep_benchmarks:
    input:
        command("score"), lambda w: benchmark_files(sweeps.data(config, TUNED[w.swept])),
        lambda w: record_of(TUNED[w.swept]),
    params:
        options=lambda w: ["--data", sweeps.data(config, TUNED[w.swept]), *SWEEP_OPTIONS],
        entries=lambda w: registered(*read_by_07(sweeps.data(config, TUNED[w.swept]))),
    output: f"{RUN}/sweep/results/07_{{swept}}.csv"
    log: log_of("score_{swept}")
    resources: gpu=GPU
    shell:
        "{NBLIB} score {RUN}/sweep/encoders/{wildcards.swept} {params.options:q} --brief"
        " --scale {SCALE} --run-dir {RUN}/sweep > {log} 2>&1"

def base_of(name):
    """The base of a training by command, where it was trained in this run as well: its record, as a list."""
    base = COMMANDED[name].get("base")
    return [record_of(base)] if base in COMMANDED else []

def train_options(name):
    """The options of `nblib train` for such a training; a base of this run is given by its folder."""
    settings = dict(COMMANDED[name])
    if base_of(name):
        settings["base"] = f"{RUN}/encoders/{settings['base']}"
    return sweeps.options(settings)

rule train:  # a family's model is also scored, and one with a curve measured after every epoch
    input: command("train"), ANCHORS, shipped("nevir_mini"), lambda w: base_of(w.commanded)
    params:
        options=lambda w: train_options(w.commanded),
        entries=lambda w: registered("nevir", "nevir_mini", "stsb", "semantoneg", COMMANDED[w.commanded].get("base")),
    output: update(f"{RUN}/trainings/{{commanded}}/training.json")
    log: log_of("train_{commanded}")
    resources: gpu=GPU
    shell: "{NBLIB} train {wildcards.commanded} {params.options:q} --scale {SCALE} --run-dir {RUN} > {log} 2>&1"

def score_options(filed):
    """The arguments of `nblib score`: a system by name, a model trained here by its folder."""
    if filed in RANKERS:
        return [RANKERS[filed], "--data", DATA]
    return [f"{RUN}/encoders/{filed}", "--data", COMMANDED[filed]["score"]]

rule score:
    input:
        command("score"), shipped("hedgetriple", *catalogue.corpora_of(DATA)), "data/registries/rankers.yaml",
        lambda w: record_of(w.system) if w.system in COMMANDED else [],
    params: options=lambda w: score_options(w.system)
    output: f"{RUN}/results/07_{{system}}.csv"
    log: log_of("score_{system}")
    resources: gpu=GPU
    shell: "{NBLIB} score {params.options:q} --scale {SCALE} --run-dir {RUN} > {log} 2>&1"

SCORES = [  # of every encoder, plain and tuned: by notebook 07, and by `nblib score` for those of the sweep
    *(executed("07_encoder_benchmarks", name) for name in RECORDED),
    *(f"{RUN}/sweep/results/07_{name}.csv" for name in SWEPT),
]

def scored_by_command(names):
    """The results that `nblib score` leaves of these systems."""
    return [f"{RUN}/results/07_{name}.csv" for name in names if name in SYSTEMS]

rule hedge_trainings:
    input:
        notebook("08_hedge_trainings"), SCORES, scored_by_command(COMPARED),
        [record_of(name) for name in [*MIXED, *LARGER]],
    params:
        json=lambda w: parameters(
            {}, base=BASE, mixtures=MIXED, larger_mixtures=LARGER, trainings=SWEPT, data=SWEEP["common"]["score"],
            benchmarks=SWEEP_BENCHMARKS, encoders=RECORDED, sweep_dir=f"{RUN}/sweep",
            with_adapter=[f"{encoder}+adapter" for encoder in [*SCORED, *ADAPTED]],
        ),
    output: executed("08_hedge_trainings")
    log: log_of("08_hedge_trainings")
    shell: EXECUTE

rule nevir_architectures:
    input:
        notebook("09_nevir_architectures"), SCORES, scored_by_command([*COMPARED, *CROSS]),
        [record_of(name) for name in EPOCHS], shipped("nevir_mini"),
    params:
        json=lambda w: parameters(
            {}, data=DATA, encoders=RECORDED, rankers=COMPARED, nevir_trained=EPOCHS, every_epoch=EVERY_EPOCH,
            base=BASE, cross_encoders=CROSS,
        ),
    output: executed("09_nevir_architectures")
    log: log_of("09_nevir_architectures")
    shell: EXECUTE

rule semantoneg_families:
    input:
        notebook("10_semantoneg_families"), SCORES, [record_of(name) for name in FAMILIES],
        shipped("semantoneg_mini", "paraphrases_mini", "paraphrases_mini_sets"),
    params: json=lambda w: parameters({}, data=DATA, base=BASE, encoders=RECORDED, families_trained=FAMILIES)
    output: executed("10_semantoneg_families")
    log: log_of("10_semantoneg_families")
    shell: EXECUTE

def asked(llm):
    """Notebook 11's own parameters for a language model, or for a LoRA on one."""
    if llm in LLMS:
        return {"base": llm, **LLMS[llm]}
    base = LORAS[llm]["base"]
    return {"base": base, "adapter": f"{RUN}/llms/{llm}", "compare": [base]}

def before_asking(llm):
    """What a LoRA's benchmarks wait for: its training, and the scores of its base, with which they are compared."""
    return [record_of(llm), executed("11_llm_benchmarks", LORAS[llm]["base"])] if llm in LORAS else []

rule llm_benchmarks:
    input:
        notebook("11_llm_benchmarks"), sorted(map(str, Path("nblib/benchmarks/llm").glob("*.yaml"))),
        shipped(*READ_BY_11), lambda w: before_asking(w.llm), "data/published/prompts.json",
        "data/published/truong.csv",
    params:
        json=lambda w: parameters({**config["11"]["common"], **asked(w.llm)}),
        entries=lambda w: registered(*READ_BY_11, asked(w.llm)["base"]),
    priority: 2
    output: executed("11_llm_benchmarks", "{llm}")
    log: log_of("11_{llm}")
    resources: gpu=GPU
    shell: EXECUTE

rule gsm8k_errors:
    input:
        notebook("12_gsm8k_errors"),
        lambda w: [executed("11_llm_benchmarks", llm) for llm in (LORAS[EXAMINED]["base"], EXAMINED)],
        "data/published/truong_table5.csv", "data/published/truong_table5_examples.jsonl",
        sorted(map(str, Path("data/gsm8k/labels").glob("*.csv"))),
    params:
        json=lambda w: parameters(
            {}, base_predictions=gsm8k_predictions(LORAS[EXAMINED]["base"]),
            tuned_predictions=gsm8k_predictions(EXAMINED), examples=config["11"]["common"].get("examples", 3),
        ),
    output: executed("12_gsm8k_errors")
    log: log_of("12_gsm8k_errors")
    shell: EXECUTE

rule results:
    input:
        notebook("13_results"), sorted(map(str, Path("data/published").iterdir())),
        [executed(name) for name in ("01_diagnosis", "02_synthesis", "03_triples")],
        [executed("04_encoder_training", name) for name in SINGLE], [executed("05_llm_lora", name) for name in LORAS],
        [executed("06_negation_adapter", name) for name in [*ENCODERS, *ADAPTED]], SCORES, scored_by_command(SYSTEMS),
        [record_of(name) for name in FAMILIES],
        [executed(name) for name in ("08_hedge_trainings", "09_nevir_architectures", "10_semantoneg_families")],
        [executed("11_llm_benchmarks", name) for name in {**LLMS, **LORAS}], executed("12_gsm8k_errors") if EXAMINED else [],
    params: json=lambda w: parameters({})
    output: executed("13_results")
    log: log_of("13_results")
    shell: EXECUTE

rule site:
    input:
        executed("13_results"),  # which comes after every other notebook
        "nblib/results/report.py", sorted(map(str, Path("docs").glob("*"))),
    output: f"{RUN}/site/index.html"
    log: log_of("site")
    shell: "{NBLIB} report {SCALE} > {log} 2>&1"
