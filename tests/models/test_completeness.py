"""Model folders: whole, or refused in one sentence; nothing is filled in with random weights, and no pickle is read."""

import json
import pickle
import shutil

import pytest
from safetensors.torch import load_file, save_file
from support.language import tiny_llama

from nblib.errors import StudyError
from nblib.models import encoders, language_models, llm_adapters, rankers
from nblib.models.weights import WEIGHTS


@pytest.fixture
def copy_of_tiny(tiny_encoder_folder, tmp_path):
    return shutil.copytree(tiny_encoder_folder, tmp_path / "copied")


def edit(file, change):
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file, metadata={"format": "pt"})


def without_last_layer(tensors):
    for name in [name for name in tensors if ".1." in name]:
        del tensors[name]


def test_an_encoder_that_lacks_a_layer_is_refused(copy_of_tiny):
    edit(copy_of_tiny / WEIGHTS, without_last_layer)
    with pytest.raises(StudyError, match=r"copied lacks weights: 16, the first encoder\.layer\.1\."):
        encoders.load(str(copy_of_tiny), device="cpu")


def test_an_encoder_with_more_layers_than_its_configuration_is_refused(copy_of_tiny):
    config = copy_of_tiny / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"num_hidden_layers": 1}))
    with pytest.raises(StudyError, match=r"copied has unexpected weights: 16, the first encoder\.layer\.1\."):
        encoders.load(str(copy_of_tiny), device="cpu")


def test_weights_of_another_size_are_refused(copy_of_tiny):
    edit(
        copy_of_tiny / WEIGHTS,
        lambda tensors: tensors.update({"embeddings.LayerNorm.bias": tensors["embeddings.LayerNorm.bias"][:7]}),
    )
    with pytest.raises(StudyError, match="could be loaded from a folder"):
        encoders.load(str(copy_of_tiny), device="cpu")


def test_a_bare_transformer_is_refused(copy_of_tiny):
    (copy_of_tiny / "modules.json").unlink()
    with pytest.raises(StudyError, match=r"copied has no modules\.json, so its pooling isn't known"):
        encoders.load(str(copy_of_tiny), device="cpu")


def test_an_encoder_without_a_tokenizer_is_refused(copy_of_tiny):
    for name in ("tokenizer.json", "vocab.txt"):
        (copy_of_tiny / name).unlink(missing_ok=True)
    with pytest.raises(StudyError, match="copied has no tokenizer"):
        encoders.load(str(copy_of_tiny), device="cpu")


class Canary:
    """A pickle that leaves a file when it is read."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return (open, (str(self.file), "w"))


@pytest.mark.parametrize("load", [encoders.load, language_models.load, rankers.load])
@pytest.mark.parametrize("name", ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "model.pt", "model.ckpt"])
def test_pickled_weights_are_refused_and_not_read(copy_of_tiny, tmp_path, load, name):
    (copy_of_tiny / WEIGHTS).unlink()
    (copy_of_tiny / name).write_bytes(pickle.dumps(Canary(tmp_path / "ran")))
    with pytest.raises(StudyError, match=rf"{name} holds pickled weights.*safetensors"):
        load(str(copy_of_tiny), device="cpu")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("file", ["modules.json", "config.json", "1_Pooling/config.json", "tokenizer.json", WEIGHTS])
@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"{}", b"[" * 100_000, b"\xff\xfe"])
def test_a_damaged_file_of_an_encoder_from_elsewhere_is_one_sentence(copy_of_tiny, file, content):
    (copy_of_tiny / file).write_bytes(content)
    with pytest.raises(StudyError) as error:
        encoders.load(str(copy_of_tiny), device="cpu")
    assert "\n" not in str(error.value) and len(str(error.value)) < 1000


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tiny_llama(tmp_path_factory.mktemp("language") / "tiny-llama")


def test_a_language_model_that_lacks_a_layer_is_refused(base, tmp_path):
    folder = shutil.copytree(base, tmp_path / "lacking")
    edit(folder / WEIGHTS, without_last_layer)
    with pytest.raises(language_models.LanguageModelError, match=r"weights are missing, the first model\.layers\.1\."):
        language_models.load(str(folder), device="cpu")


def test_a_language_model_with_more_layers_than_its_configuration_is_refused(base, tmp_path):
    folder = shutil.copytree(base, tmp_path / "more")
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"num_hidden_layers": 1}))
    with pytest.raises(
        language_models.LanguageModelError, match=r"weights are unexpected, the first model\.layers\.1\."
    ):
        language_models.load(str(folder), device="cpu")


@pytest.mark.parametrize(
    "change, fault", [(without_last_layer, "takes 4"), (dict.clear, "takes 4")], ids=["layer", "all"]
)
def test_a_lora_that_lacks_weights_is_refused(base, tmp_path, change, fault):
    from peft import LoraConfig, get_peft_model

    tuned = get_peft_model(
        language_models.load(str(base), device="cpu").model,
        LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False),
    )
    tuned.save_pretrained(str(tmp_path / "lora"))
    assert llm_adapters.load(str(base), tmp_path / "lora").name == "lora"
    edit(tmp_path / "lora" / "adapter_model.safetensors", change)
    with pytest.raises(StudyError, match=fault):
        llm_adapters.load(str(base), tmp_path / "lora")
    (tmp_path / "lora" / "adapter_config.json").write_text("[]")
    with pytest.raises(llm_adapters.LoraError, match=r"names no base_model_name_or_path"):
        llm_adapters.load(str(base), tmp_path / "lora")
