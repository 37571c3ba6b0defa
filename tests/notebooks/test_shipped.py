"""The shipped LoRAs: small, loadable as the README says, and those whose scores are of record."""

import json

import numpy as np
import pandas as pd
import pytest
from sentence_transformers import util

from nblib import paths
from nblib.models import encoders

ADAPTERS = paths.DATA / "adapters"
BASES = {"hedge-mpnet": "all-mpnet-base-v2", "hedge-mpnet-2": "all-mpnet-base-v2", "hedge-minilm-2": "all-MiniLM-L6-v2"}
RECORD = paths.PROJECT_ROOT / "figures" / "official" / "04_encoder_training"
ANCHOR = "Global warming is real."


@pytest.fixture(scope="module", params=BASES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def base(name):
    return encoders.load(BASES[name]).model


def test_every_shipped_lora_is_tested():
    assert {folder.name for folder in ADAPTERS.iterdir() if folder.is_dir()} == set(BASES)


def test_a_lora_is_small_and_says_what_it_is(name):
    folder = ADAPTERS / name
    assert sum(file.stat().st_size for file in folder.iterdir()) < 12e6
    config = json.loads((folder / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == BASES[name]
    card = (folder / "README.md").read_text(encoding="utf-8")
    dev = pd.read_csv(RECORD / f"tab_dev_{name}.csv").set_index("set")
    assert f"| STSB dev | {dev.base['STSB dev']:.1f} | {dev.tuned['STSB dev']:.1f} |" in card


def test_three_lines_give_the_cosines_of_record(name, base):
    recorded = pd.read_csv(RECORD / f"tab_figure1_{name}.csv").set_index("sentence")
    before = base.encode(ANCHOR)
    base.load_adapter(str(ADAPTERS / name))  # as in the README
    cosines = util.cos_sim(base.encode(ANCHOR), base.encode(list(recorded.index)))[0].numpy()
    np.testing.assert_allclose(cosines, recorded[name], atol=1e-4)
    assert np.abs(base.encode(ANCHOR) - before).max() > 1e-3


def test_the_studys_own_tools_take_the_folder_as_an_encoders_name(name, base):
    encoder = encoders.load(str(ADAPTERS / name))
    assert encoder.name == name
    np.testing.assert_allclose(encoder.model.encode(ANCHOR), base.encode(ANCHOR), atol=1e-6)
