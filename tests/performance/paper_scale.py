"""What the papers' scale costs: texts and parameters counted, throughput measured on this machine, an A100's time extrapolated.

usage: paper_scale.py     (writes figures/paper/costs.csv and throughput.csv)

Counted: the anchors, models and epochs of config/paper.yaml; tokens of the authored anchors and their variants, and of the
recorded prompts and answers, by all-mpnet-base-v2's tokeniser; characters of MTEB's tasks, by mteb's own statistics.
Operations: 2 a parameter and token to encode, 6 to train all weights; those of the LoRAs by `llm_cost`.
Measured (`throughput`): the share of this machine's fastest bfloat16 product that each of these three reaches.
Extrapolated: an A100 reaches the same share of its 312 · 10¹² bfloat16 operations a second.
"""

import json
import sys
import tempfile

import measure
import mteb
import pandas as pd
import throughput
from throughput import ENCODE, TEXTS, TRAIN

from nblib import artefacts, corpora, paths, shipped
from nblib.corpora import triples
from nblib.models import encoders
from nblib.models import registry as models
from nblib.training import llm_cost, llm_lora
from nblib.workflow import sweeps

COSTS, THROUGHPUT = paths.FIGURES / "paper" / "costs.csv", paths.FIGURES / "paper" / "throughput.csv"
DOLLARS_AN_HOUR = 2.0  # of an A100
RATES = 0.5, 1.5  # dollars a million tokens that gpt-3.5-turbo reads and writes, as in notebook 02
ANCHORS = 62_000  # Truong's 496,000 triples, 8 an anchor
PAIR = 72  # tokens of a pair that a LoRA is trained on, by notebook 05
LONGEST = 384  # tokens of a text that all-mpnet-base-v2 reads


def main() -> None:
    tokenizer = encoders.load("all-mpnet-base-v2").model.tokenizer

    def tokens(texts: list[str]) -> float:
        """The mean over some texts."""
        return sum(map(len, tokenizer(texts)["input_ids"])) / len(texts)

    config = shipped.read_yaml(paths.PROJECT_ROOT / "config" / "paper.yaml")
    anchors = triples.build(corpora.load("hedgetriple"), "both", 0)
    columns = [name for name in anchors if name == "anchor" or name.startswith(("positive", "negative"))]
    triple = tokens(anchors[columns].dropna().to_numpy().ravel().tolist())
    table = pd.DataFrame(
        [
            _synthesis(config, tokens), *_trainings(config, triple), *_loras(config),
            _reweighting(config, tokens), _general(config, tokens),
        ],
        columns=["what", "kind", "counted", "operations", "dollars"],
    )  # fmt: skip
    speed = throughput.measure()
    table["share"] = table.kind.map(speed.set_index("kind").share)
    table["hours"] = table.operations / (llm_cost.A100.teraflops * 1e12 * table.share / 100) / 3600
    table["dollars"] = table.dollars.fillna(table.hours * DOLLARS_AN_HOUR)
    about = {"dollars_an_hour": DOLLARS_AN_HOUR, "gpu": llm_cost.A100.name, **measure.machine()}
    for measured, file in ((speed, THROUGHPUT), (table, COSTS)):
        artefacts.write_table(measured, file, about, float_format="%.4g")
    sys.stdout.write(speed.to_string(index=False, float_format="{:.3g}".format) + "\n")
    sys.stdout.write(table.to_string(index=False, float_format="{:.3g}".format) + "\n")


def _synthesis(config, tokens):
    prompts = json.loads((paths.DATA / "published" / "prompts.json").read_text(encoding="utf-8"))
    number, asked = config["02"]["size"], [text for text in _texts(prompts) if len(text) > 200]
    recorded = (paths.DATA / "synthesis" / "generations" / "claude.jsonl").read_text(encoding="utf-8").splitlines()
    read, written = tokens(asked), tokens([json.loads(line)["answer"] for line in recorded])
    dollars = 2 * number * (read * RATES[0] + written * RATES[1]) / 1e6
    return (
        "02: questions to gpt-3.5-turbo",
        "",
        f"2 × {number:,}, {read:.0f} tokens read and {written:.0f} written",
        0.0,
        dollars,
    )


def _texts(node):
    if isinstance(node, str):
        return [node]
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
    return [text for child in children for text in _texts(child)]


def _trainings(config, triple):
    for name, chosen in (("HedgeMPNet", True), ("the trainings of its ablations", False)):
        found = {
            key: settings for key, settings in sweeps.declared(config).items()
            if (key in sweeps.section(config, "04", "trainings")) == chosen and settings.get("training_data") != "NevIR"
        }  # fmt: skip
        anchors = sum((settings["size"] or ANCHORS) * settings.get("epochs", 1) for settings in found.values())
        parameters = models.entries()["all-mpnet-base-v2"].parameters * 1e6
        operations = TRAIN * parameters * anchors * TEXTS * triple
        yield f"04: {name}", "train", f"{len(found)}, {anchors:,} anchors, {triple:.0f} tokens a text", operations, None


def _loras(config):
    for name, given in sweeps.section(config, "05", "loras").items():
        own = {key: given[key] for key in ("epochs", "batch_size", "checkpointing")}
        settings, pairs = llm_lora.Settings(base=given["base"], **own), 8 * ANCHORS
        operations = llm_cost.operations(llm_cost.llama_3_8b(), settings, pairs, PAIR)
        yield f"05: {name}", "LoRA", f"{pairs:,} pairs, {given['epochs']} epochs", operations, None


def _reweighting(config, tokens):
    names = {*config["01"]["encoders"], *config["06"]["encoders"]}
    parameters = sum(models.entries()[name].parameters for name in names) * 1e6
    texts = [text for name in ("stsb", "semantoneg") for text in _rows(name)]
    total = len(texts) * tokens(texts)
    return (
        "01, 06: encoders reweighted",
        "encode",
        f"{len(names)}, {total / 1e6:.1f} · 10⁶ tokens each",
        ENCODE * parameters * total,
        None,
    )


def _rows(name):
    tables = [corpora.load(name, split) for split in corpora.describe(name).splits]
    return [text for table in tables for cell in table.select_dtypes(["object", "string"]).to_numpy().ravel()
            for text in ([cell] if isinstance(cell, str) else list(cell) if isinstance(cell, list | tuple) else [])]  # fmt: skip


def _general(config, tokens):
    texts = _rows("stsb")
    characters = sum(map(len, texts)) / (len(texts) * tokens(texts))  # of a token
    tasks, total = mteb.get_benchmark(config["07"]["common"]["hub_benchmark"]).tasks, 0.0
    for task in tasks:
        stored = task.metadata.descriptive_stats or {}
        total += sum(_read(stored.get(split, {}), characters) for split in task.eval_splits)
    scored = [*config["07"]["encoders"], *sweeps.scored(config)]
    parameters = models.entries()["all-mpnet-base-v2"].parameters * 1e6
    counted = f"{len(scored)} encoders, {len(tasks)} tasks, {total / 1e9:.1f} · 10⁹ tokens each"
    return "07: general ability", "encode", counted, ENCODE * parameters * total * len(scored), None


def _read(node, characters):
    """The tokens of a task's texts that are read."""
    own = 0.0
    if length := node.get("total_text_length"):
        average = node.get("average_text_length") or length
        own = length / average * min(average / characters, LONGEST)
    below = [child for key, child in node.items() if key != "hf_subset_descriptive_stats" and isinstance(child, dict)]
    return own + sum(_read(child, characters) for child in below)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="bench") as tempfile.tempdir:  # of the trainings
        main()
