"""The shipped LoRAs: small, loadable as the README says, and those whose scores are of record."""

import json

import numpy as np
import pytest
from huggingface_hub import ModelCard
from support.close import assert_close

from nblib import artefacts, paths
from nblib.benchmarks.negation_profile import NegationProfile
from nblib.corpora import authored
from nblib.models import encoders
from nblib.results import measurements, words
from nblib.training import records
from nblib.workflow import archive

ADAPTERS = paths.DATA / "adapters"
BASES = {"hedge-mpnet": "all-mpnet-base-v2", "hedge-mpnet-3": "all-mpnet-base-v2", "hedge-minilm-3": "all-MiniLM-L6-v2"}
ANCHOR = "Global warming is real."


@pytest.fixture(scope="module", params=BASES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def base(name):
    return encoders.load(BASES[name]).model


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The record's predictions and trainings."""
    folder = tmp_path_factory.mktemp("record")
    archive.unpack(archive.archive("official"), folder)
    return folder


def test_every_shipped_lora_is_tested():
    assert {folder.name for folder in ADAPTERS.iterdir() if folder.is_dir()} == set(BASES)


def test_a_lora_is_small_and_says_what_it_is(name, run):
    folder = ADAPTERS / name
    assert sum(file.stat().st_size for file in folder.iterdir()) < 12e6
    config = json.loads((folder / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == BASES[name]
    card = (folder / "README.md").read_text(encoding="utf-8")
    record = records.load(run, artefacts.about(folder)["name"])  # of one that a sweep has trained, by its name there
    dev = record.table("alphas").pivot(index="set", columns="alpha", values="value").loc["STSB dev"]
    assert f"| STSB dev | {dev[0.0]:.1f} | {dev[record.about['alpha']]:.1f} |" in card


def test_a_card_has_the_scores_of_the_record(name):
    measured = measurements.read(paths.FIGURES / "official" / "measurements.csv").query("system == @name")
    names = map(words.benchmark, measured.benchmark, measured.corpus)
    recorded = set(zip(names, measured.metric, measured.value, strict=True))
    shown = ModelCard.load(ADAPTERS / name / "README.md").data.eval_results
    labels = [one.dataset_name.removeprefix("MTEB ").removesuffix(" test") for one in shown]
    shown = {(label, one.metric_type, one.metric_value) for label, one in zip(labels, shown, strict=True)}
    assert len(shown) > 20 and shown <= recorded


def test_three_lines_give_the_margins_of_record(name, base, run):
    recorded = artefacts.read_table(run / "scores" / name / "negation_profile_test.parquet").set_index("id")
    before = base.encode(ANCHOR)
    base.load_adapter(str(ADAPTERS / name))  # as in the README
    anchors = authored.held_out_anchors()
    some = anchors[anchors.id.isin(recorded.cluster)].head(4)
    profile = NegationProfile()
    rows = profile.of_anchors(some)
    first, second = map(base.encode, profile.pairs(rows))
    found = profile.judge(rows, (first * second).sum(axis=1)).set_index("id")
    assert_close(found.margin, recorded.margin.loc[found.index], times=100)  # the LoRA moves them by tenths
    assert np.abs(base.encode(ANCHOR) - before).max() > 1e-3


def test_the_studys_own_tools_take_the_folder_as_an_encoders_name(name, base):
    encoder = encoders.load(str(ADAPTERS / name))
    assert encoder.name == name
    assert_close(encoder.model.encode(ANCHOR), base.encode(ANCHOR))
