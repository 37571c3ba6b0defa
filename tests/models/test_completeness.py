"""Model folders: whole, or refused in one sentence; nothing is filled in with random weights, and no pickle is read."""

import json
import pickle
import shutil

import pytest
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Transformer

from nblib.errors import StudyError
from nblib.models import encoders, language_models, systems
from nblib.models.weights import WEIGHTS


@pytest.fixture
def copy_of_tiny(tiny_encoder_folder, tmp_path):
    return shutil.copytree(tiny_encoder_folder, tmp_path / "copied")


def edit_weights(file, edit):
    save_file(edit(load_file(file)), file, metadata={"format": "pt"})


def without_last_layer(file):
    edit_weights(file, lambda tensors: {name: tensor for name, tensor in tensors.items() if ".1." not in name})


def with_one_layer(folder):
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"num_hidden_layers": 1}))


def test_an_encoder_and_its_configuration_must_have_the_same_layers(copy_of_tiny, tmp_path):
    more = shutil.copytree(copy_of_tiny, tmp_path / "more")
    without_last_layer(copy_of_tiny / WEIGHTS)
    with_one_layer(more)
    for folder, fault in [(copy_of_tiny, "missing"), (more, "unexpected")]:
        with pytest.raises(StudyError, match=rf"16 weights are {fault}, the first encoder\.layer\.1\."):
            encoders.load(str(folder), device="cpu")


def test_weights_that_no_embedding_needs_may_be_absent_or_left_over(copy_of_tiny, tiny_encoder):
    def edit(tensors):
        kept = {f"bert.{name}": tensor for name, tensor in tensors.items() if "pooler" not in name}
        return kept | {"cls.predictions.bias": tensors["embeddings.LayerNorm.bias"].clone()}

    edit_weights(copy_of_tiny / WEIGHTS, edit)
    vectors = encoders.load(str(copy_of_tiny), device="cpu").model.encode("the dog")
    assert (vectors == tiny_encoder.model.encode("the dog")).all()


def test_a_pooler_that_makes_the_vectors_must_be_there(copy_of_tiny):
    pooled = {"text": {"method": "forward", "method_output_name": "pooler_output"}}
    transformer = Transformer(str(copy_of_tiny), modality_config=pooled, module_output_name="sentence_embedding")
    SentenceTransformer(modules=[transformer], device="cpu").save_pretrained(str(copy_of_tiny))
    encoders.load(str(copy_of_tiny), device="cpu")
    edit_weights(
        copy_of_tiny / WEIGHTS, lambda tensors: {name: tensors[name] for name in tensors if "pooler" not in name}
    )
    with pytest.raises(StudyError, match=r"2 weights are missing, the first pooler"):
        encoders.load(str(copy_of_tiny), device="cpu")


@pytest.mark.parametrize(
    "names, message", [(["modules.json"], "no modules.json"), (["tokenizer.json", "vocab.txt"], "no tokenizer")]
)
def test_an_encoder_without_pooling_or_tokenizer_is_refused(copy_of_tiny, names, message):
    for name in names:
        (copy_of_tiny / name).unlink(missing_ok=True)
    with pytest.raises(StudyError, match=f"copied has {message}"):
        encoders.load(str(copy_of_tiny), device="cpu")


class Canary:
    """A pickle that leaves a file when it is read."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return (open, (str(self.file), "w"))


@pytest.mark.parametrize("load", [language_models.load, systems.load])
@pytest.mark.parametrize("name", ["pytorch_model-00001-of-00002.bin", "model.pt"])
def test_pickled_weights_are_refused_and_not_read(copy_of_tiny, tmp_path, load, name):
    (copy_of_tiny / WEIGHTS).unlink()
    (copy_of_tiny / name).write_bytes(pickle.dumps(Canary(tmp_path / "ran")))
    with pytest.raises(StudyError, match=rf"{name} holds pickled weights"):
        load(str(copy_of_tiny), device="cpu")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("file", ["modules.json", "config.json", "1_Pooling/config.json", "tokenizer.json", WEIGHTS])
def test_a_damaged_file_of_an_encoder_from_elsewhere_is_one_sentence(copy_of_tiny, file):
    (copy_of_tiny / file).write_bytes(b"[]")
    with pytest.raises(StudyError) as error:
        encoders.load(str(copy_of_tiny), device="cpu")
    assert "\n" not in str(error.value)
