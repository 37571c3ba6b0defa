"""Damage to artefacts, and what reading them then gives: for the fault tests, and for `make torture`."""

import json
import os
import random
import re
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from support.encoders import fitted_adapter, tiny
from support.language import tiny_llama

from nblib import artefacts, corpora, paths, results
from nblib.analysis import gsm8k
from nblib.benchmarks import general_ability, mteb_catalogue, scoring
from nblib.corpora import hedgetriple, triples
from nblib.errors import StudyError
from nblib.models import encoders, llm_adapters
from nblib.models.folders import model_folder
from nblib.models.negation_adapter import NegationAdapter
from nblib.synthesis import generations, outcomes
from nblib.training import checkpoints

TEXTS = ["the boat is red", "the boat is not red", "night and day", "a blue boat"]
WAYS_OUT = (
    "(Make|Restore) (it|them)[^:]*: \\w", "nblib (run|score)", "make study", "git checkout", "Delete one line", "Correct it",
    "etch it again", "remove it: the embeddings", "Restore the file",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A kind of artefact.

    Attributes:
        make: leaves one below a run's folder; returns its file or folder.
        read: what the study reads there, as something that can be compared, given the run's folder.
    """

    make: Callable[[Path], Path]
    read: Callable[[Path], object]


def _adapter(run: Path) -> Path:
    return fitted_adapter().save(run / "adapters" / "tiny.safetensors", encoder="tiny")


def _read_adapter(run: Path) -> object:
    adapter = NegationAdapter.load(run / "adapters" / "tiny.safetensors")
    return adapter.weighting, adapter.a_, adapter.weights_.tobytes(), adapter.contributions_.tobytes()


def _encoder(run: Path) -> Path:
    model = tiny(run / "base").model
    with model_folder(run / "encoders" / "hedge", "# hedge", {"seed": 0}) as draft:
        model.save_pretrained(str(draft), create_model_card=False)
    return run / "encoders" / "hedge"


def _lora(run: Path) -> Path:
    from peft import LoraConfig, get_peft_model

    plain = llm_adapters.load(str(tiny_llama(run / "base")), device="cpu")
    config = LoraConfig(task_type="CAUSAL_LM", r=2, target_modules=["q_proj"], init_lora_weights=False)
    tuned = replace(plain, model=get_peft_model(plain.model, config))
    return llm_adapters.save(tuned, run / "llms" / "hedge", "# Card", base=str(run / "base"), pairs=12)


def _read_lora(run: Path) -> object:
    return llm_adapters.fingerprint(llm_adapters.load(str(run / "base"), run / "llms" / "hedge", device="cpu"))


def _anchors() -> pd.DataFrame:
    table = corpora.load("hedgetriple")
    return table[~table.id.isin(hedgetriple.held_out())].head(40)


def _scores() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"id": [f"n-{k}" for k in range(50)], "cluster": range(50), "margin": rng.normal(size=50)})


def _results(run: Path) -> Path:
    rows = [
        results.row("tiny", f"NevIR {k}", "accuracy", 12.5 + k, data="nevir test", n=80, scale="toy") for k in range(20)
    ]
    results.save(rows, run / "results" / "07_tiny.csv", notebook="07_encoder_benchmarks")
    return run / "results" / "07_tiny.csv"


def _gsm8k(run: Path) -> Path:
    rows = [
        {"id": str(k), "question": f"{k} + 1?", "gold": f"#### {k + 1}", "response": f"#### {k}", "strict": str(k),
         "correct": k % 2 == 0, "correct_flexible": k % 2 == 0}
        for k in range(30)
    ]  # fmt: skip
    return artefacts.write_table(pd.DataFrame(rows), run / "scores" / "gemma" / "gsm8k_test.parquet")


def _general(run: Path) -> Path:
    rows = [
        {"task": name, "category": task.category, "metric": "m", "value": 50.0, "ci_low": 0.0, "ci_high": 100.0, "n": 9,
         "seconds": 1.0, "caveat": ""}
        for name, task in mteb_catalogue.TASKS.items()
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=general_ability.COLUMNS)
    return artefacts.write_table(table, scoring.folder_of(run, "tiny") / general_ability.FILE)


def _system(run: Path) -> Path:
    about = {"name": "tiny", "fingerprint": "f" * 64, "parameters": 22.7, "trained_on": "authored negations"}
    return artefacts.write_json(scoring.folder_of(run, "tiny") / "system.json", about)


def _reservation(run: Path) -> Path:
    (run / "checkpoints" / "hedge" / "checkpoint-1").mkdir(parents=True)
    (run / "checkpoints" / "hedge" / "checkpoint-1" / "trainer_state.json").write_text("{}")
    checkpoints.reserve_folder(run / "checkpoints" / "hedge", {"seed": 1, "loss": "explicit"})
    return run / "checkpoints" / "hedge" / checkpoints.RESERVED


def _generations(run: Path) -> Path:
    one = generations.Generation("", 0, "a", "It is red.", "negation", {}, "toy", {}, "1. no", "stop", "toy", 5, None)
    with generations.Store(run / "synthesis" / "generations.jsonl") as store:
        for k in range(20):
            store.append(replace(one, key=f"k{k}", answer=f'1. "verbal": It is not red, {k} é.'))
    return store.file


def _recording(run: Path) -> Path:
    file = run / "synthesis" / "claude.jsonl"
    file.parent.mkdir(parents=True)
    for path in (paths.DATA / "synthesis" / "generations").glob(f"{file.name}*"):
        shutil.copy(path, file.parent)
    return file


def _read_recording(run: Path) -> object:
    file = run / "synthesis" / "claude.jsonl"
    return outcomes.results(*outcomes.load_recording(file), file).to_json()


KINDS = {
    "adapter": Kind(_adapter, _read_adapter),
    "encoder": Kind(_encoder, lambda run: encoders.load(str(run / "encoders" / "hedge"), device="cpu").fingerprint),
    "LoRA": Kind(_lora, _read_lora),
    "triples": Kind(
        lambda run: artefacts.write_table(triples.split(_anchors(), dev=5), run / "triples" / "anchors.parquet"),
        lambda run: triples.load_anchors(run / "triples" / "anchors.parquet").to_json(),
    ),
    "variants": Kind(
        lambda run: artefacts.write_table(_anchors(), run / "synthesis" / "variants.parquet", {"model": "x"}),
        lambda run: triples.load_variants(run / "synthesis" / "variants.parquet").to_json(),
    ),
    "scores": Kind(
        lambda run: scoring.save_predictions(_scores(), run, "tiny", "nevir", asked={"seed": 1}),
        lambda run: scoring.load_predictions(run, "tiny", "nevir").to_json(),
    ),
    "GSM8K predictions": Kind(
        _gsm8k, lambda run: gsm8k.load(run / "scores" / "gemma" / "gsm8k_test.parquet").to_json()
    ),
    "general ability": Kind(_general, lambda run: general_ability.load(run, "tiny").to_json()),
    "results": Kind(_results, lambda run: results.load(run).to_json()),
    "system.json": Kind(_system, lambda run: json.dumps(scoring.about(run, "tiny"), sort_keys=True)),
    "reserved training": Kind(
        _reservation,
        lambda run: checkpoints.reserve_folder(run / "checkpoints" / "hedge", {"seed": 1, "loss": "explicit"}),
    ),
    "generations": Kind(_generations, lambda run: list(generations.read(run / "synthesis" / "generations.jsonl"))),
    "recording": Kind(_recording, _read_recording),
}  # fmt: skip

# No damage: a system has not been scored, a training not been started, a question not been answered. It is then done.
NOTHING_YET = {
    ("system.json", "absent"), ("reserved training", "absent"), ("recording", "absent"),
    ("generations", "absent"), ("generations", "empty"), ("generations", "cut"), ("generations", "zeros"),
}  # fmt: skip


def flip(content: bytes, chance: random.Random) -> bytes:
    """One bit flipped."""
    place = chance.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]


DAMAGES: dict[str, Callable[[bytes, random.Random], bytes | None]] = {
    "bit flip": flip,
    "cut": lambda content, chance: content[: chance.randrange(len(content))],
    "empty": lambda content, chance: b"",
    "zeros": lambda content, chance: content[: len(content) // 2] + bytes(len(content) - len(content) // 2),
    "absent": lambda content, chance: None,
}


def parts(artefact: Path) -> list[Path]:
    """The files of an artefact that decide what is read: its own and its sidecar."""
    files = [file for file in artefact.rglob("*") if file.is_file() and file.name != artefacts.CARD]
    sidecar = artefacts.sidecar(artefact)
    return sorted(files or [artefact]) + [sidecar] * sidecar.is_file()


def outcome(read: Callable[[], object], expected: object, named: Path) -> tuple[str, str]:
    """What reading gives: "named" (one sentence with path and way out), "harmless", "SILENT", "TRACEBACK", and the message."""
    try:
        return ("harmless" if read() == expected else "SILENT"), ""
    except StudyError as error:
        said = str(error)
    except Exception as error:
        return "TRACEBACK", f"{type(error).__name__}: {error}"
    whole = named.name in said and "\n" not in said and bool(re.search("|".join(WAYS_OUT), said))
    return ("named" if whole else "UNCLEAR"), said


def killed(work: Callable[[], object], seconds: float) -> bool:
    """Do something in a process of its own and kill it after a while; whether it was still at work."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])
