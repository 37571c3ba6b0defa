# The study as a graph, for `make study`. Each notebook runs in a process of its own. A rule's inputs are the notebook, the nblib
# modules it reaches and the files it reads; parameters and registry entries are compared with those of the last run.
import json
import re
import sys
from pathlib import Path

from nblib.analysis import contamination
from nblib.benchmarks import catalogue, mteb
from nblib.workflow import sweeps
from nblib.workflow.dependencies import module_files, registered, shipped
if "scale" not in config:
    raise WorkflowError("Which scale? Add --configfile config/quick.yaml (or official.yaml, paper.yaml); or use make study.")

SCALE, RUN, FORM = config["scale"], f"runs/{config['scale']}", config["07"]["common"]["form"]
ANCHORS, GENERAL = f"{RUN}/triples/anchors.parquet", "all" if "general_tasks" in config["09"] else "none"
GPU = config.get("gpu", 0)  # GPUs a job takes; `snakemake --resources gpu=N` says how many there are
NBLIB, COMMAND = f"{sys.executable} -m nblib.workflow.cli", "nblib/workflow/commands.py"
EXECUTE = f"{NBLIB} run {{input[0]}} {{output[0]}} -y {{params.json:q}} > {{log}} 2>&1"

# Systems by the names of their files
ADAPTED, ENCODERS = (sweeps.by_file_name(config[number]["encoders"]) for number in ("06", "07"))  # runs once for each
RANKERS = sweeps.by_file_name(config["09"]["rankers"])  # `nblib score` runs once for each
LORAS = config.get("05", {}).get("loras", {})  # notebook 05 runs once for each; `asked`: notebook 11's tasks for it
LLMS = config["11"].get("models", {})  # notebook 11 runs once for each, and for each LoRA
DECLARED = sweeps.declared(config)
TRAININGS = {name: settings for name, settings in DECLARED.items() if "shipped" not in settings}  # by notebook 04
SCORED = {name: settings for name, settings in DECLARED.items() if "score" in settings}  # what is trained and scored
SWEEP = config["trainings"]["sweep"]["common"]
(BASE,) = sweeps.by_file_name([SWEEP["base"]])
COMPARED = [*ENCODERS, *sweeps.which(SCORED, architecture="bi-encoder", of="")]
WITH_ADAPTER = [*ADAPTED, *sweeps.which(DECLARED, adapter=True)]
IN_07 = [name for name in COMPARED if name in [*ENCODERS, *WITH_ADAPTER]]  # notebook 07 runs once for each
BY_COMMAND = [*RANKERS, *(name for name in SCORED if name not in IN_07)]
WEIGHTS_READ = {*IN_07, *(settings["base"] for settings in TRAININGS.values())}  # of others a record and scores will do
TUNED = {n: DECLARED[n]["base"] for n in IN_07 if n in DECLARED}
ADAPTERS = sorted(map(str, Path("data/adapters").glob("*.json")))  # that ship
ABLATION, CANDIDATES, TRANSFER = (sweeps.which(TRAININGS, of=sweep) for sweep in ("ablation", "candidates", "transfer"))
ON_NEVIR = sweeps.which(TRAININGS, training_data="nevir", evaluate_every_epoch=True, of="")

def executed(name, variant=""):
    """A notebook's executed copy; of one that runs once for each model, the copy of a model."""
    return f"{RUN}/notebooks/{name}{variant and '/'}{variant}.ipynb"

def system_of(name):
    """A system as it is loaded: by the folder of a trained one, by the name of another."""
    folder = SCORED.get(name, {}).get("shipped", f"{RUN}/encoders/{name}")
    return folder if name in SCORED else {**ADAPTED, **ENCODERS, **RANKERS}.get(name, name)

def record_of(name):
    """The record of the training that leaves a system, or the sidecar of one that ships, as a list; empty of others."""
    own = DECLARED.get(name, {}).get("shipped", f"{RUN}/trainings/{name}/training")
    return [f"{own}.json"] if name in {**DECLARED, **LORAS} else []

def one_of(names):
    """A wildcard's pattern."""
    return "|".join(map(re.escape, names)) or "none"

def notebook(name):
    """A notebook and the modules it reaches."""
    return [f"notebooks/{name}.ipynb", *module_files(f"notebooks/{name}.ipynb")]

def parameters(*declared, **own):
    """A notebook's parameters as JSON, for the command line, and for Snakemake's comparison with the last run."""
    together = {key: value for part in declared for key, value in part.items()}
    return json.dumps({"scale": SCALE, "run_dir": RUN, **together, **own}, sort_keys=True)

def corpora_of(number, *benchmarks):
    """The corpora of benchmarks in the form that a notebook's parameters ask for."""
    form = config[number].get("common", config[number])["form"]
    return [key if form == "official" else f"{key}_mini" for key in benchmarks]

def scored_files(form):
    """What is read to score an encoder."""
    return [*shipped("authored_triples", *catalogue.names(form)), "data/training/heldout_anchors.txt"]
READ_BY_03 = [*contamination.benchmarks(config["03"]["form"]), "exclusions", "contrast_mini", "contrast_more", "exclusions_mini"]
READ_BY_04 = "nevir cannot_wmt nevir_mini stsb stsb_mini exclusions contrast_mini contrast_more exclusions_mini".split()
READ_BY_06 = corpora_of("06", "stsb", "semantoneg")
READ_BY_11 = [*catalogue.names(config["11"]["common"]["form"]), *corpora_of("11", "mmlu", "hellaswag", "gsm8k")]

wildcard_constraints:
    encoder=one_of({*WITH_ADAPTER, *IN_07}), system=one_of(BY_COMMAND), training=one_of(TRAININGS),
    lora=one_of(LORAS), llm=one_of({**LLMS, **LORAS}),

rule all:
    input: f"{RUN}/site/index.html"

rule synthesis:
    input:
        notebook("02_synthesis"), shipped("authored_triples"), "data/published/prompts.json", "data/published/hedge_cues.json",
        config["02"]["other_recordings"], [] if config["02"].get("model") else config["02"]["recording"],
    params: json=lambda w: parameters(config["02"])
    output: executed("02_synthesis"), f"{RUN}/synthesis/variants.parquet"
    log: f"{RUN}/logs/02_synthesis.log"
    shell: EXECUTE

rule triples:
    input:
        notebook("03_triples"), scored_files("mini"), shipped(*READ_BY_03), config["03"].get("variants", []),
        "data/published/hedge_cues.json",
    params:
        json=lambda w: parameters(config["03"]),
        entries=lambda w: registered("authored_triples", *READ_BY_03),
    priority: 2
    output: executed("03_triples"), ANCHORS
    log: f"{RUN}/logs/03_triples.log"
    shell: EXECUTE

rule train:
    input: notebook("04_encoder_training"), shipped(*READ_BY_04), ANCHORS, lambda w: record_of(TRAININGS[w.training]["base"])
    params:
        json=lambda w: parameters(
            config.get("04", {}), sweeps.parameters(TRAININGS[w.training]), name=w.training, anchors=ANCHORS,
            base=system_of(TRAININGS[w.training]["base"]), record_suffices=w.training not in WEIGHTS_READ,
        ),
        entries=lambda w: registered(*READ_BY_04, TRAININGS[w.training]["base"]),
    output: executed("04_encoder_training", "{training}"), update(f"{RUN}/trainings/{{training}}/training.json")
    log: f"{RUN}/logs/04_{{training}}.log"
    resources: gpu=GPU
    shell: EXECUTE

rule llm_lora:
    input: notebook("05_llm_lora"), ANCHORS, "data/published/prompts.json", "data/published/truong.csv"
    params:
        json=lambda w: parameters(sweeps.parameters(LORAS[w.lora]), name=w.lora, anchors=ANCHORS),
        entries=lambda w: registered(LORAS[w.lora]["base"]),
    priority: 2
    output: executed("05_llm_lora", "{lora}"), update(f"{RUN}/trainings/{{lora}}/training.json")
    log: f"{RUN}/logs/05_{{lora}}.log"
    resources: gpu=GPU
    shell: EXECUTE

def tuned_from(encoder):
    """The encoders that were tuned from one, and are scored by notebook 07 on the same data."""
    return [name for name, base in TUNED.items() if base == ENCODERS.get(encoder) and DECLARED[name]["score"] == FORM]

rule negation_adapter:
    input:
        notebook("06_negation_adapter"), shipped(*READ_BY_06), lambda w: record_of(w.encoder),
        lambda w: [executed("07_encoder_benchmarks", n) for n in [w.encoder, *tuned_from(w.encoder)] if n in IN_07],
    params:
        json=lambda w: parameters(  # interventions: what is done about the blindness of an encoder that is scored
            config["06"]["common"], encoder=system_of(w.encoder),
            interventions=[f"{w.encoder}+adapter", *tuned_from(w.encoder)] * (w.encoder in IN_07),
        ),
        entries=lambda w: registered(*READ_BY_06, w.encoder),
    output: executed("06_negation_adapter", "{encoder}"), f"{RUN}/adapters/{{encoder}}.safetensors"
    log: f"{RUN}/logs/06_{{encoder}}.log"
    resources: gpu=GPU
    shell: EXECUTE

def asked_of(encoder):
    """Notebook 07's parameters for an encoder; a trained one has a profile of as many anchors as its base's."""
    own = {"form": SCORED[encoder]["score"], "dev_splits": False, "examples": 0} if encoder in SCORED else {}
    return {**config["07"]["common"], **own, "system": system_of(encoder)}

rule encoder_benchmarks:
    input:
        notebook("07_encoder_benchmarks"), lambda w: [*scored_files(asked_of(w.encoder)["form"]), *record_of(w.encoder)],
    params:
        json=lambda w: parameters(asked_of(w.encoder)),
        entries=lambda w: registered(*catalogue.names(asked_of(w.encoder)["form"]), w.encoder),
    priority: 2
    output: executed("07_encoder_benchmarks", "{encoder}")
    log: f"{RUN}/logs/07_{{encoder}}.log"
    resources: gpu=GPU
    shell: EXECUTE

def score_options(system):
    """The arguments of `nblib score`: of a sweep's trainings predictions alone, without results."""
    own = SCORED.get(system, {"score": FORM})
    chosen = ["--benchmarks", *own["benchmarks"]] if "benchmarks" in own else []
    chosen += ["--general", own["general"]] if "general" in own else []
    return [system_of(system), "--form", own["score"], *chosen, *(["--brief"] if own.get("brief") else [])]

rule score:
    input: COMMAND, module_files(COMMAND), "data/registries/rankers.yaml", scored_files(FORM), lambda w: record_of(w.system)
    params:
        options=lambda w: score_options(w.system),
        entries=lambda w: registered(*catalogue.names(FORM), *mteb.corpora_of(GENERAL), *ENCODERS, w.system),
    output: update(f"{RUN}/scores/{{system}}/system.json")
    log: f"{RUN}/logs/score_{{system}}.log"
    resources: gpu=GPU
    shell: "{NBLIB} score {params.options:q} --scale {SCALE} --run-dir {RUN} > {log} 2>&1"

def asked_of_llm(name):
    """Notebook 11's own parameters for a language model, or for a LoRA on one, which is compared with its base."""
    if name in LLMS:
        return {"base": name, **LLMS[name]}
    base, tasks = LORAS[name]["base"], LORAS[name].get("asked", [])
    return {"base": base, "lora": f"{RUN}/llms/{name}", "compare": [base], "tasks": tasks}

rule llm_benchmarks:
    input:
        notebook("11_llm_benchmarks"), sorted(map(str, Path("nblib/benchmarks/llm").glob("*.yaml"))),
        shipped(*READ_BY_11), "data/published/prompts.json", "data/published/truong.csv", lambda w: record_of(w.llm),
        lambda w: [executed("11_llm_benchmarks", base) for base in asked_of_llm(w.llm).get("compare", [])],
    params:
        json=lambda w: parameters(config["11"]["common"], asked_of_llm(w.llm)),
        entries=lambda w: registered(*READ_BY_11, asked_of_llm(w.llm)["base"]),
    priority: 2
    output: executed("11_llm_benchmarks", "{llm}")
    log: f"{RUN}/logs/11_{{llm}}.log"
    resources: gpu=GPU
    shell: EXECUTE

SCORES = [f"{RUN}/scores/{name}/system.json" for name in BY_COMMAND]
SCORES += [*(executed("07_encoder_benchmarks", n) for n in IN_07), *(executed("06_negation_adapter", n) for n in WITH_ADAPTER)]
TRAINED = {"form": FORM, "base": BASE, "encoders": COMPARED}
ASKED = [executed("11_llm_benchmarks", name) for name in {**LLMS, **LORAS}]
SOLUTIONS = {side: f"{RUN}/scores/{name}/{READ_BY_11[-1]}_test.parquet"  # of GSM8K, by the first LoRA and its base
    for lora in [*LORAS][:1] for side, name in [("base_predictions", LORAS[lora]["base"]), ("tuned_predictions", lora)]
}
ONCE = {  # notebooks that are executed once: what they read, and their parameters
    "01_diagnosis": (shipped(*corpora_of("01", "stsb"), "authored_triples") + ADAPTERS, config["01"]),
    "08_hedge_trainings": ([*SCORES, *(record_of(name)[0] for name in [*ABLATION, *CANDIDATES])], {
        **TRAINED, "form": SWEEP["score"], "benchmarks": SWEEP.get("benchmarks", []), "mixtures": ABLATION,
        "candidates": CANDIDATES, "transfer": TRANSFER, "trainings": sweeps.which(SCORED, of="sweep"),
        "with_adapter": [f"{name}+adapter" for name in WITH_ADAPTER if name in IN_07],
    }),
    "09_nevir_architectures": ([*SCORES, *(record_of(name)[0] for name in ON_NEVIR), *shipped("nevir_mini")], {
        **TRAINED, "nevir_trainings": ON_NEVIR,
        "rankers": [*RANKERS, *(n for n in sweeps.which(SCORED, of="", score=FORM) if n not in COMPARED)],
        "general_encoders": [*ENCODERS, *TUNED], "general_changes": [[base, name] for name, base in TUNED.items()],
        **{key: value for key, value in config["09"].items() if key != "rankers"},
    }),
    "10_semantoneg_families": (
        [*SCORES, *shipped("semantoneg_mini", "paraphrases_mini", "paraphrases_mini_sets")],
        {**TRAINED, **config.get("10", {}), "families_trained": sweeps.which(SCORED, of="families")},
    ),
    "12_gsm8k_errors": (
        [*ASKED, *map(str, [*Path("data/published").glob("truong_table5*"), *Path("data/gsm8k/labels").glob("*.csv")])],
        {**SOLUTIONS, "examples": config["11"]["common"].get("examples", 3), "loras": {n: LORAS[n]["base"] for n in LORAS}},
    ),
    "13_results": ([
        *SCORES, *ASKED, *map(executed, ["01_diagnosis", "02_synthesis", "03_triples", "08_hedge_trainings"]),
        *map(executed, ["09_nevir_architectures", "10_semantoneg_families", *["12_gsm8k_errors"] * bool(LORAS)]),
        *(executed("05_llm_lora", name) for name in LORAS),
        *(executed("04_encoder_training", name) for name in sweeps.which(TRAININGS, of="")),
        *map(str, Path("data/published").iterdir()),
    ], {}),
}
READ_BY = {"01": [*corpora_of("01", "stsb"), *config["01"]["encoders"]], "09": mteb.corpora_of(GENERAL)}

rule once:
    input: lambda w: notebook(w.notebook), lambda w: sorted(ONCE[w.notebook][0])
    params:
        json=lambda w: parameters(ONCE[w.notebook][1]),
        entries=lambda w: registered(*READ_BY.get(w.notebook[:2], [])),
    wildcard_constraints: notebook=one_of(ONCE)
    output: executed("{notebook}")
    log: f"{RUN}/logs/{{notebook}}.log"
    resources: gpu=lambda w: GPU if w.notebook[:2] in READ_BY else 0
    shell: EXECUTE

rule site:
    input: executed("13_results"), "nblib/workflow/report.py", sorted(map(str, Path("docs").glob("*")))
    output: f"{RUN}/site/index.html"
    log: f"{RUN}/logs/site.log"
    shell: "{NBLIB} report {SCALE} > {log} 2>&1"
