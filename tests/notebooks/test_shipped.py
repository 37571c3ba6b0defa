"""The shipped adapter: small, loadable as the README says, and the one whose scores are of record."""

import json

import numpy as np
import pandas as pd
import pytest
from sentence_transformers import util

from nblib import paths
from nblib.models import encoders

ADAPTER = paths.DATA / "adapters" / "hedge-mpnet"
RECORD = paths.PROJECT_ROOT / "figures" / "official" / "04_encoder_training"
ANCHOR = "Global warming is real."


@pytest.fixture(scope="module")
def base():
    return encoders.load("all-mpnet-base-v2").model


def test_the_adapter_is_small_and_says_what_it_is():
    assert sum(file.stat().st_size for file in ADAPTER.iterdir()) < 20e6
    config = json.loads((ADAPTER / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "all-mpnet-base-v2"
    card = (ADAPTER / "README.md").read_text(encoding="utf-8")
    dev = pd.read_csv(RECORD / "tab_dev_hedge-mpnet.csv").set_index("set")
    assert f"| STSB dev | {dev.base['STSB dev']:.1f} | {dev.tuned['STSB dev']:.1f} |" in card


def test_three_lines_give_the_cosines_of_record(base):
    recorded = pd.read_csv(RECORD / "tab_figure1_hedge-mpnet.csv").set_index("sentence")
    before = base.encode(ANCHOR)
    base.load_adapter(str(ADAPTER))  # as in the README
    cosines = util.cos_sim(base.encode(ANCHOR), base.encode(list(recorded.index)))[0].numpy()
    np.testing.assert_allclose(cosines, recorded["hedge-mpnet"], atol=1e-4)
    assert np.abs(base.encode(ANCHOR) - before).max() > 1e-3


def test_the_studys_own_tools_take_the_folder_as_an_encoders_name(base):
    encoder = encoders.load(str(ADAPTER))
    assert encoder.name == "hedge-mpnet"
    np.testing.assert_allclose(encoder.model.encode(ANCHOR), base.encode(ANCHOR), atol=1e-6)
