# The study as a graph: what must run, and in which order. `make study SCALE=quick` calls it; so does
#   snakemake --configfile config/quick.yaml --cores 2
# Each notebook runs in a process of its own through the strict papermill entry. A rule's inputs are the notebook, the nblib
# modules it reaches and the files it reads; its parameters, and the registry entries behind them, are compared as well.
# `priority: 1` is on the longest chain, triples → LoRA → its benchmarks: begun last, it would end alone on one core.

import json
import re
import sys
from pathlib import Path

from nblib import corpora, language_models, model_registry, sweeps, tasks
from nblib.dependencies import module_files

if "scale" not in config:
    raise WorkflowError("Which scale? Add --configfile config/quick.yaml (or official.yaml, paper.yaml); or use make study.")

SCALE, RUN = config["scale"], f"runs/{config['scale']}"
ENCODERS = config["adapter_encoders"]  # notebook 06 runs once for each
SCORED = config["benchmark_encoders"]  # notebook 07 runs once for each, with its adapter as a cure
BENCHMARK = config["negation_adapter"]["benchmark"]
BENCHMARKS = config["encoder_benchmarks"]["benchmarks"]
SYNTHESIS = config["synthesis"]
VARIANTS = config["triples"].get("variants", "authored")  # what the triples are built from: authored, or notebook 02's
TRAININGS = sweeps.trainings(config)  # notebook 04 runs once for each: name → its parameters
ADAPTED = sweeps.adapted(config)  # those of them that notebook 06 fits an adapter for: both cures at once
TUNED = sweeps.scored(config)  # encoders of notebook 04 that notebook 07 scores: name → the training they come from
RANKERS = [name.replace(":", "-") for name in config["rankers"]]  # what ranks without one vector a text, as files are named
FAMILY = config.get("families", {"kinds": [], "seeds": []})  # Vahtola's families, trained from one base
FAMILIES = {f"family-{kind.lower()}-s{seed}": (kind, seed) for kind in FAMILY["kinds"] for seed in FAMILY["seeds"]}
CROSS = config.get("cross_encoders", [])
NEVIR = config.get("nevir_trainings", {})  # other architectures on NevIR's training pairs: name → how it is trained
WATCHED = next((name for name, settings in TRAININGS.items() if settings.get("recipe") == "NevIR" and settings.get("watch", True)), None)
COMPARED = [
    "size", "parts", "diversity", "frontier", "record", "words", "architectures", "preference", "maxsim", "families", "deploy",
    *(["epochs"] if WATCHED else []), *(["claim"] if FAMILIES else []),
]
LORAS = config.get("loras", {})  # notebook 05 runs once for each: name → its parameters, and `system` (see `llm_benchmarks`)
EXAMINED = next(iter(LORAS), None)  # the LoRA whose GSM8K errors notebook 10 looks at: the first
LLMS = config.get("llms", {})  # notebook 09 runs once for each, and for each LoRA: name → its parameters
GPU = config.get("gpu", 0)  # GPUs a job takes; `snakemake --resources gpu=N` says how many there are
EXECUTE = f"{sys.executable} -m nblib.execution"


wildcard_constraints:
    home=f"{RUN}|{RUN}/sweep",
    encoder="|".join(map(re.escape, {*ENCODERS, *SCORED, *ADAPTED})),
    tuned="|".join(map(re.escape, TUNED)) or "none",
    training="|".join(map(re.escape, TRAININGS)) or "none",
    ranker="|".join(map(re.escape, RANKERS)),
    family="|".join(map(re.escape, FAMILIES)) or "none",
    cross="|".join(CROSS) or "none",
    nevir="|".join(map(re.escape, NEVIR)) or "none",
    lora="|".join(map(re.escape, LORAS)) or "none",
    llm="|".join(map(re.escape, {**LLMS, **LORAS})) or "none",


def notebook(number_and_name):
    """A notebook and the modules it reaches."""
    path = f"notebooks/{number_and_name}.ipynb"
    return [path, *module_files(path)]


def shipped(*names):
    """The files of those corpora that come with the project."""
    entries = [corpora.describe(name) for name in names]
    return sorted({f"data/{split.file}" for entry in entries if not entry.official for split in entry.splits.values()})


def read_by_07(benchmarks):
    """The corpora that notebook 07 reads."""
    return ["hedgetriple", *tasks.CORPORA[benchmarks]]


def benchmark_files(benchmarks):
    """What notebook 07 reads of the project's own data."""
    return [*shipped(*read_by_07(benchmarks)), "data/heldout_anchors.txt"]


def parameters(*sections, **own):
    """A notebook's parameters as JSON, for the command line and for the comparison with the last run. (Only of wildcards:
    parameters made from `input` are not compared, and a change in one would rerun nothing.)"""
    declared = {key: value for section in sections for key, value in config[section].items()}
    return json.dumps({"scale": SCALE, "run_dir": RUN, **declared, **own}, sort_keys=True)


def registered(*names):
    """The registry entries of corpora and models: a change in one reruns what uses it, and nothing else."""
    registries = [corpora.registry(), model_registry.registry(), language_models.registry()]
    return repr([registry[name] for name in names for registry in registries if name in registry])


rule all:
    input:
        f"{RUN}/report/index.html",


def encoder_name(encoder):
    """What a notebook is asked for: a registered name, or the folder of a tuned encoder."""
    return f"{RUN}/encoders/{encoder}" if encoder in ADAPTED else encoder


rule diagnosis:
    input:
        notebook("01_diagnosis"),
        shipped(config["common"]["sts"]),
    params:
        json=lambda wildcards: parameters("common", "diagnosis"),
        entries=lambda wildcards: registered(config["common"]["sts"], *config["diagnosis"]["encoders"]),
    output:
        multiext(f"{RUN}/results/01_diagnosis.csv", "", ".json"),
        expand(f"{RUN}/figures/fig_01_{{name}}.{{kind}}", name=["histograms", "examples"], kind=["svg", "png", "csv"]),
        expand(f"{RUN}/figures/tab_01_{{name}}.{{kind}}", name=["closer", "dropped"], kind=["csv", "html", "tex"]),
    log:
        f"{RUN}/notebooks/01_diagnosis.ipynb",
    resources:
        gpu=GPU,
    shell:
        "{EXECUTE} 01 {log} -y {params.json:q}"


rule negation_adapter:
    input:
        notebook("06_negation_adapter"),
        shipped(config["common"]["sts"], BENCHMARK),
        lambda wildcards: f"{RUN}/encoders/{wildcards.encoder}.json" if wildcards.encoder in ADAPTED else [],
    params:
        json=lambda wildcards: parameters("common", "negation_adapter", encoder=encoder_name(wildcards.encoder)),
        entries=lambda wildcards: registered(config["common"]["sts"], BENCHMARK, wildcards.encoder),
    output:
        multiext(f"{RUN}/results/06_{{encoder}}.csv", "", ".json"),
        multiext(f"{RUN}/adapters/{{encoder}}.safetensors", "", ".json"),
        f"{RUN}/scores/{{encoder}}/semantoneg.parquet",
        f"{RUN}/scores/{{encoder}}/adapter_splits.csv",
        expand(f"{RUN}/figures/fig_06_{{name}}_{{{{encoder}}}}.{{kind}}", name=["weights", "trade_off", "in_domain"], kind=["svg", "png", "csv"]),
        expand(f"{RUN}/figures/tab_06_{{name}}_{{{{encoder}}}}.{{kind}}", name=["table1", "table2", "table3"], kind=["csv", "html", "tex"]),
    log:
        f"{RUN}/notebooks/06_negation_adapter/{{encoder}}.ipynb",
    resources:
        gpu=GPU,
    shell:
        "{EXECUTE} 06 {log} -y {params.json:q}"


rule synthesis:
    input:
        notebook("02_synthesis"),
        shipped("hedgetriple"),
        SYNTHESIS["beside"],
        [] if SYNTHESIS.get("model") else SYNTHESIS["recording"],
        "data/published/prompts.json",
        "data/published/hedge_cues.json",
    params:
        json=lambda wildcards: parameters("synthesis"),
    output:
        multiext(f"{RUN}/synthesis/variants.parquet", "", ".json"),
        multiext(f"{RUN}/results/02_synthesis.csv", "", ".json"),
        expand(f"{RUN}/figures/fig_02_{{name}}.{{kind}}", name=["anchors", "yields"], kind=["svg", "png", "csv"]),
        expand(f"{RUN}/figures/tab_02_{{name}}.{{kind}}", name=["yields", "price"], kind=["csv", "html", "tex"]),
    log:
        f"{RUN}/notebooks/02_synthesis.ipynb",
    shell:
        "{EXECUTE} 02 {log} -y {params.json:q}"


rule triples:
    input:
        notebook("03_triples"),
        shipped("hedgetriple", "exclusions", *read_by_07("mini")),
        [] if VARIANTS == "authored" else VARIANTS,
        "data/heldout_anchors.txt",
        "data/published/hedge_cues.json",
    params:
        json=lambda wildcards: parameters("triples"),
        entries=lambda wildcards: registered("hedgetriple", *read_by_07(BENCHMARKS)),
    priority: 1
    output:
        multiext(f"{RUN}/triples/anchors.parquet", "", ".json"),
        directory(f"{RUN}/triples/hedgetriple"),
        multiext(f"{RUN}/results/03_triples.csv", "", ".json"),
        expand(f"{RUN}/figures/fig_03_{{name}}.{{kind}}", name=["yield", "lengths", "diversity"], kind=["svg", "png", "csv"]),
        expand(f"{RUN}/figures/tab_03_{{name}}.{{kind}}", name=["cues", "diversity", "contamination"], kind=["csv", "html", "tex"]),
    log:
        f"{RUN}/notebooks/03_triples.ipynb",
    shell:
        "{EXECUTE} 03 {log} -y {params.json:q}"


def ranker_name(filed):
    """What `nblib.ranking` is asked for: the configured name, or what was trained on NevIR as its folder."""
    name = next(name for name in config["rankers"] if name.replace(":", "-") == filed)
    return f"{RUN}/encoders/{name}" if name in NEVIR else name


def home(training):
    """Where a training's outputs go: those of the sweep apart, so that the figures of record aren't buried under them."""
    return RUN if training in config.get("trainings", {}) else f"{RUN}/sweep"


rule encoder_training:
    input:
        notebook("04_encoder_training"),
        shipped("exclusions"),
        f"{RUN}/triples/anchors.parquet",
    params:
        json=lambda wildcards: parameters(
            "encoder_training", run_dir=wildcards.home, name=wildcards.training, anchors=f"{RUN}/triples/anchors.parquet",
            **TRAININGS[wildcards.training],
        ),
        entries=lambda wildcards: registered(TRAININGS[wildcards.training]["base"]),
    output:
        expand("{{home}}/encoders/{{training}}{part}", part=["/model.safetensors", "/README.md", ".json"]),
        multiext("{home}/results/04_{training}.csv", "", ".json"),
        expand("{{home}}/figures/fig_04_{name}_{{training}}.{kind}", name=["training", "alpha"], kind=["svg", "png", "csv"]),
        expand("{{home}}/figures/tab_04_{name}_{{training}}.{kind}", name=["dev", "figure1"], kind=["csv", "html", "tex"]),
    log:
        "{home}/notebooks/04_encoder_training/{training}.ipynb",
    resources:
        gpu=GPU,
    shell:
        "{EXECUTE} 04 {log} -y {params.json:q}"


def benchmark_outputs(encoder, home=RUN):
    """What notebook 07 leaves for an encoder."""
    return [
        f"{home}/results/07_{encoder}.csv",
        f"{home}/results/07_{encoder}.csv.json",
        f"{home}/scores/{encoder}/encoder.json",
        f"{home}/scores/{encoder}/search.csv",
        f"{home}/scores/{encoder}/NegationProfile_test.parquet",
        *(f"{home}/figures/fig_07_{name}_{encoder}.{kind}" for name in ("profile", "benchmarks") for kind in ("svg", "png", "csv")),
        *(f"{home}/figures/tab_07_{name}_{encoder}.{kind}" for name in ("profile", "scores", "cures") for kind in ("csv", "html", "tex")),
    ]


rule encoder_benchmarks:
    input:
        notebook("07_encoder_benchmarks"),
        benchmark_files(BENCHMARKS),
        lambda wildcards: [f"{RUN}/scores/{cure}/encoder.json" for cure in sweeps.cures(config, wildcards.encoder)],
        f"{RUN}/adapters/{{encoder}}.safetensors",  # the verdict says what this cure does, and the tuned encoders
    params:
        json=lambda wildcards: parameters(
            "encoder_benchmarks", encoder=wildcards.encoder,
            cures=[f"{RUN}/adapters/{wildcards.encoder}.safetensors", *sweeps.cures(config, wildcards.encoder)],
        ),
        entries=lambda wildcards: registered(*read_by_07(BENCHMARKS), wildcards.encoder),
    wildcard_constraints:
        encoder="|".join(map(re.escape, SCORED)),  # a tuned encoder is scored by the rule below
    output:
        benchmark_outputs("{encoder}"),
    log:
        f"{RUN}/notebooks/07_encoder_benchmarks/{{encoder}}.ipynb",
    resources:
        gpu=GPU,
    shell:
        "{EXECUTE} 07 {log} -y {params.json:q}"


def own_adapter(tuned):
    """The adapter fitted for a tuned encoder, as a list; empty where the configuration wants none."""
    return [f"{RUN}/adapters/{tuned}.safetensors"] if tuned in ADAPTED else []


rule tuned_benchmarks:
    input:
        notebook("07_encoder_benchmarks"),
        lambda wildcards: benchmark_files(sweeps.benchmarks(config, TUNED[wildcards.tuned])),
        lambda wildcards: f"{wildcards.home}/encoders/{TUNED[wildcards.tuned]}.json",
        lambda wildcards: own_adapter(wildcards.tuned),
    params:
        json=lambda wildcards: parameters(
            run_dir=wildcards.home, encoder=f"{wildcards.home}/encoders/{wildcards.tuned}", dev_splits=False, examples=0,
            benchmarks=sweeps.benchmarks(config, TUNED[wildcards.tuned]),
            system=TRAININGS[TUNED[wildcards.tuned]].get("system", "none"), cures=own_adapter(wildcards.tuned),
        ),
        entries=lambda wildcards: registered(*read_by_07(sweeps.benchmarks(config, TUNED[wildcards.tuned]))),
    output:
        benchmark_outputs("{tuned}", "{home}"),
    log:
        "{home}/notebooks/07_encoder_benchmarks/{tuned}.ipynb",
    resources:
        gpu=GPU,
    shell:
        "{EXECUTE} 07 {log} -y {params.json:q}"


def scored_outputs():
    """What notebook 07 leaves of every encoder: the plain ones and the tuned."""
    plain = [output for encoder in SCORED for output in benchmark_outputs(encoder)]
    return plain + [output for tuned, training in TUNED.items() for output in benchmark_outputs(tuned, home(training))]


rule ranking:
    input:
        ["nblib/ranking.py", *module_files("nblib/ranking.py")],
        shipped(*read_by_07(BENCHMARKS)),
        "data/registries/rankers.yaml",
        lambda wildcards: f"{RUN}/encoders/{wildcards.ranker}.json" if wildcards.ranker in NEVIR else [],
    params:
        name=lambda wildcards: ranker_name(wildcards.ranker),
    output:
        multiext(f"{RUN}/results/07_{{ranker}}.csv", "", ".json"),
        f"{RUN}/scores/{{ranker}}/ranker.json",
    shell:
        "{sys.executable} -m nblib.ranking {params.name:q} --scale {SCALE} --suite {BENCHMARKS} --run-dir {RUN}"


rule family:
    input:
        ["nblib/families.py", *module_files("nblib/families.py")],
    params:
        kind=lambda wildcards: FAMILIES[wildcards.family][0],
        seed=lambda wildcards: FAMILIES[wildcards.family][1],
        base=FAMILY.get("base"),
        size=FAMILY.get("size"),
        entries=lambda wildcards: registered(FAMILY["base"], "stsb", "semantoneg"),
    output:
        multiext(f"{RUN}/results/07_{{family}}.csv", "", ".json"),
        f"{RUN}/scores/{{family}}/SemAntoNeg_test.parquet",
    resources:
        gpu=GPU,
    shell:
        "{sys.executable} -m nblib.families {params.kind} --base {params.base} --size {params.size} --seed {params.seed} --scale {SCALE} --run-dir {RUN}"


rule cross_training:
    input:
        ["nblib/cross_training.py", *module_files("nblib/cross_training.py")],
        f"{RUN}/triples/anchors.parquet",
    output:
        f"{RUN}/encoders/cross-{{cross}}/model.safetensors",
        f"{RUN}/encoders/cross-{{cross}}.json",
    resources:
        gpu=GPU,
    shell:
        "{sys.executable} -m nblib.cross_training {wildcards.cross} --run-dir {RUN}"


rule cross_ranking:
    input:
        ["nblib/ranking.py", *module_files("nblib/ranking.py")],
        f"{RUN}/encoders/cross-{{cross}}.json",
    output:
        multiext(f"{RUN}/results/07_cross-{{cross}}.csv", "", ".json"),
        f"{RUN}/scores/cross-{{cross}}/ranker.json",
    shell:
        "{sys.executable} -m nblib.ranking {RUN}/encoders/cross-{wildcards.cross} --scale {SCALE} --suite sample --run-dir {RUN}"


def nevir_options(training):
    """How a training on NevIR is told from the command line."""
    settings = NEVIR[training]
    options = [f"--{option.replace('_', '-')} {settings[option]}" for option in ("base", "epochs", "learning_rate") if option in settings]
    return " ".join([settings["architecture"], *options, *(["--ends"] if settings.get("ends") else [])])


rule nevir_training:
    input:
        ["nblib/nevir_training.py", *module_files("nblib/nevir_training.py")],
        f"{RUN}/triples/anchors.parquet",
        shipped("nevir_mini"),
        lambda wildcards: f"{RUN}/encoders/cross-triples.json" if NEVIR[wildcards.nevir]["architecture"] == "cross-encoder" else [],
    params:
        options=lambda wildcards: nevir_options(wildcards.nevir),
        entries=lambda wildcards: registered("nevir", "nevir_mini", "stsb", NEVIR[wildcards.nevir].get("base", "all-MiniLM-L6-v2")),
    output:
        multiext(f"{RUN}/scores/{{nevir}}/epochs.csv", "", ".json"),
        expand(f"{RUN}/encoders/{{{{nevir}}}}{{part}}", part=["/model.safetensors", ".json"]),
    resources:
        gpu=GPU,
    shell:
        "{sys.executable} -m nblib.nevir_training {params.options} --name {wildcards.nevir} --run-dir {RUN}"


rule encoder_comparison:
    input:
        notebook("08_encoder_comparison"),
        scored_outputs(),
        expand(rules.ranking.output, ranker=RANKERS),
        expand(rules.family.output, family=FAMILIES),
        expand(rules.cross_ranking.output, cross=CROSS),
        expand(rules.nevir_training.output, nevir=NEVIR),
        shipped("nevir_mini", "semantoneg_mini", "paraphrases_mini", "paraphrases_mini_sets"),
    params:
        json=lambda wildcards: parameters(
            rankers=RANKERS, fine_tuned=[settings["architecture"] for settings in NEVIR.values() if not settings.get("ends")],
            watched=WATCHED or "none", families_trained=list(FAMILIES), cross_encoders=[f"cross-{name}" for name in CROSS],
            base=config["sweep"]["common"]["base"], suite=config["sweep"]["common"]["score"], sweep_dir=f"{RUN}/sweep",
            trainings=[tuned for tuned, training in TUNED.items() if home(training) != RUN],
            singles=[*SCORED, *(tuned for tuned, training in TUNED.items() if home(training) == RUN)],
            adapted=[f"{encoder}+adapter" for encoder in [*SCORED, *ADAPTED]],
        ),
    output:
        multiext(f"{RUN}/results/08_comparison.csv", "", ".json"),
        expand(f"{RUN}/figures/fig_08_{{name}}.{{kind}}", name=COMPARED, kind=["svg", "png", "csv"]),
        expand(f"{RUN}/figures/tab_08_{{name}}.{{kind}}", name=["trainings", "changes", "singles", "nevir", "tests", "construction", "antonyms"], kind=["csv", "html", "tex"]),
    log:
        f"{RUN}/notebooks/08_encoder_comparison.ipynb",
    shell:
        "{EXECUTE} 08 {log} -y {params.json:q}"


def lora_outputs(lora):
    """What notebook 05 leaves for a LoRA."""
    return [
        *(f"{RUN}/llms/{lora}{part}" for part in ("/adapter_model.safetensors", "/README.md", ".json")),
        *(f"{RUN}/results/05_{lora}.csv{part}" for part in ("", ".json")),
        *(f"{RUN}/figures/fig_05_{name}_{lora}.{kind}" for name in ("loss", "dev") for kind in ("svg", "png", "csv")),
        *(f"{RUN}/figures/tab_05_{name}_{lora}.{kind}" for name in ("settings", "dev", "cost") for kind in ("csv", "html", "tex")),
    ]


rule llm_lora:
    input:
        notebook("05_llm_lora"),
        f"{RUN}/triples/anchors.parquet",
        "data/published/prompts.json",
        "data/published/truong.csv",
    params:
        json=lambda wildcards: parameters(
            name=wildcards.lora, anchors=f"{RUN}/triples/anchors.parquet",
            **{key: value for key, value in LORAS[wildcards.lora].items() if key != "system"},
        ),
        entries=lambda wildcards: registered(LORAS[wildcards.lora]["base"]),
    priority: 1
    output:
        lora_outputs("{lora}"),
    log:
        f"{RUN}/notebooks/05_llm_lora/{{lora}}.ipynb",
    resources:
        gpu=GPU,
    shell:
        "{EXECUTE} 05 {log} -y {params.json:q}"


def read_by_09():
    """The corpora that notebook 09 reads."""
    suite = config["llm_benchmarks"]["suite"]
    return [*tasks.CORPORA[suite], *(name + ("_mini" if suite == "mini" else "") for name in ("mmlu", "hellaswag", "gsm8k"))]


def gsm8k_predictions(llm):
    """The solutions that notebook 09 leaves for notebook 10."""
    return f"{RUN}/scores/{llm}/gsm8k{'_mini' if config['llm_benchmarks']['suite'] == 'mini' else ''}_test.parquet"


def llm_outputs(llm):
    """What notebook 09 leaves for a language model."""
    return [
        *(f"{RUN}/results/09_{llm}.csv{part}" for part in ("", ".json")),
        gsm8k_predictions(llm),
        *(f"{RUN}/figures/fig_09_{name}_{llm}.{kind}" for name in ("negation", "mmlu") for kind in ("svg", "png", "csv")),
        *(f"{RUN}/figures/tab_09_{name}_{llm}.{kind}" for name in ("scores", "habits", "changes", "table3") for kind in ("csv", "html", "tex")),
    ]


def asked(llm):
    """Notebook 09's own parameters for a language model, or for a LoRA on one."""
    if llm in LLMS:
        return {"base": llm, **LLMS[llm]}
    lora = LORAS[llm]
    return {"base": lora["base"], "adapter": f"{RUN}/llms/{llm}", "compare": [lora["base"]], "system": lora.get("system", "none")}


rule llm_benchmarks:
    input:
        notebook("09_llm_benchmarks"),
        sorted(str(file) for file in Path("nblib/tasks/llm").iterdir() if file.is_file() and file.suffix != ".py"),
        lambda wildcards: shipped(*read_by_09()),
        lambda wildcards: lora_outputs(wildcards.llm)[:1] + llm_outputs(LORAS[wildcards.llm]["base"])[:1] if wildcards.llm in LORAS else [],
        "data/published/prompts.json",
        "data/published/truong.csv",
    params:
        json=lambda wildcards: parameters("llm_benchmarks", **asked(wildcards.llm)),
        entries=lambda wildcards: registered(*read_by_09(), asked(wildcards.llm)["base"]),
    priority: 1
    output:
        llm_outputs("{llm}"),
    log:
        f"{RUN}/notebooks/09_llm_benchmarks/{{llm}}.ipynb",
    resources:
        gpu=GPU,
    shell:
        "{EXECUTE} 09 {log} -y {params.json:q}"


rule gsm8k_errors:
    input:
        notebook("10_gsm8k_errors"),
        lambda wildcards: gsm8k_predictions(LORAS[EXAMINED]["base"]),
        lambda wildcards: gsm8k_predictions(EXAMINED),
        "data/quantities.csv",
        "data/published/truong_table5_examples.jsonl",
        sorted(str(file) for file in Path("data/labels").glob("*.csv")),
    params:
        json=lambda wildcards: parameters(
            base_predictions=gsm8k_predictions(LORAS[EXAMINED]["base"]), tuned_predictions=gsm8k_predictions(EXAMINED),
            system=LORAS[EXAMINED].get("system", "none"), examples=config["llm_benchmarks"].get("examples", 3),
        ),
    output:
        multiext(f"{RUN}/results/10_gsm8k_errors.csv", "", ".json"),
        expand(f"{RUN}/figures/fig_10_types.{{kind}}", kind=["svg", "png", "csv"]),
        expand(f"{RUN}/figures/tab_10_{{name}}.{{kind}}", name=["types", "arithmetic", "pairs", "agreement"], kind=["csv", "html", "tex"]),
    log:
        f"{RUN}/notebooks/10_gsm8k_errors.ipynb",
    shell:
        "{EXECUTE} 10 {log} -y {params.json:q}"


def all_llm_outputs():
    """What notebooks 05, 09 and 10 leave of every language model and LoRA."""
    scored = [output for llm in {**LLMS, **LORAS} for output in llm_outputs(llm)]
    examined = rules.gsm8k_errors.output if EXAMINED else []
    return [*scored, *(output for lora in LORAS for output in lora_outputs(lora)), *examined]


rule results:
    input:
        notebook("11_results"),
        "data/published/exhibits.csv",
        expand("data/published/{paper}.csv", paper=["truong", "cao", "vahtola", "weller"]),
        rules.diagnosis.output,
        expand(rules.negation_adapter.output, encoder=[*ENCODERS, *ADAPTED]),
        rules.synthesis.output,
        rules.triples.output,
        scored_outputs(),
        expand(rules.ranking.output, ranker=RANKERS),
        expand(rules.family.output, family=FAMILIES),
        expand(rules.cross_ranking.output, cross=CROSS),
        rules.encoder_comparison.output if "sweep" in config else [],
        all_llm_outputs(),
    params:
        json=lambda wildcards: parameters(),
    output:
        f"{RUN}/figures/scoreboard.csv",
        expand(f"{RUN}/figures/fig_11_{{name}}.{{kind}}", name=["coverage", "agreement", "ranks"], kind=["svg", "png", "csv"]),
        expand(f"{RUN}/figures/tab_11_{{name}}.{{kind}}", name=["coverage", "averages"], kind=["csv", "html", "tex"]),
    log:
        f"{RUN}/notebooks/11_results.ipynb",
    shell:
        "{EXECUTE} 11 {log} -y {params.json:q}"


rule report:
    input:
        sorted(str(file) for kind in ["*.py", "templates/*", "assets/*"] for file in Path("nblib/report").glob(kind)),
        rules.results.output,
        rules.diagnosis.output,
        expand(rules.negation_adapter.output, encoder=[*ENCODERS, *ADAPTED]),
        rules.synthesis.output,
        rules.triples.output,
        scored_outputs(),
        expand(rules.ranking.output, ranker=RANKERS),
        expand(rules.family.output, family=FAMILIES),
        expand(rules.cross_ranking.output, cross=CROSS),
        rules.encoder_comparison.output if "sweep" in config else [],
        all_llm_outputs(),
    output:
        f"{RUN}/report/index.html",
    shell:
        f"{sys.executable} -m nblib.report {SCALE}"
