"""The backends that sentence-transformers offers for an encoder's transformer, in float32, beside ours.

OpenVINO and ONNX Runtime are no packages of the study: a way whose package isn't installed is left out, and said to be.
"""

import importlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from measure import STOCK, Case

from nblib import corpora
from nblib.models import encoders
from nblib.models.onednn import linear_by_onednn

SIZE = 32  # texts of a batch
Run = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # token ids and their mask → token vectors


def cases(sample: int | None) -> Iterator[Case]:
    """A case for each encoder; converting and compiling the larger one takes a minute.

    Args:
        sample: how many texts; None: enough for a few seconds.
    """
    yield case("all-MiniLM-L6-v2", sample or 512)
    yield case("all-mpnet-base-v2", sample or 256)


def case(name: str, n: int) -> Case:
    model = encoders.load(name).model
    texts = sorted(corpora.load("hedgetriple").anchor.head(n), key=len)
    batches = [model.preprocess(texts[start : start + SIZE]) for start in range(0, len(texts), SIZE)]
    batches = [(batch["input_ids"], batch["attention_mask"]) for batch in batches]
    transformer = model[0].auto_model.eval()

    def plain(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return transformer(input_ids=ids, attention_mask=mask).last_hidden_state

    def cosines(run: Run) -> list[float]:
        """Of each text and the next."""
        means = []
        with torch.inference_mode():
            for ids, mask in batches:
                weights = mask[..., None].float()
                means.append((run(ids, mask) * weights).sum(1) / weights.sum(1))
        vectors = torch.cat(means)
        return torch.cosine_similarity(vectors[1:], vectors[:-1]).tolist()

    def ours() -> list[float]:
        with linear_by_onednn(transformer):
            return cosines(plain)

    ways = {"ours": ours, STOCK: lambda: cosines(plain)}
    for way, make in BACKENDS.items():
        try:
            run = make(transformer, *batches[0])
        except ModuleNotFoundError as error:
            sys.stderr.write(f"Left out: {way}. Install {error.name} for it.\n")
            continue
        cosines(run)  # what it prepares for each shape is not timed
        ways[way] = lambda run=run: cosines(run)
    return Case(f"backends, {name}; stock: PyTorch", f"{n:,} texts", ways, allowed=1e-5)


def by_compiling(transformer: torch.nn.Module, ids: torch.Tensor, mask: torch.Tensor) -> Run:
    compiled = torch.compile(transformer, dynamic=True)
    return lambda ids, mask: compiled(input_ids=ids, attention_mask=mask).last_hidden_state


def by_openvino(transformer: torch.nn.Module, ids: torch.Tensor, mask: torch.Tensor) -> Run:
    openvino = importlib.import_module("openvino")
    converted = openvino.convert_model(transformer, example_input={"input_ids": ids, "attention_mask": mask})
    exact = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": torch.get_num_threads()}
    compiled = openvino.compile_model(converted, "CPU", exact)
    return lambda ids, mask: torch.from_numpy(compiled([ids.numpy(), mask.numpy()])[0])


def by_onnx(transformer: torch.nn.Module, ids: torch.Tensor, mask: torch.Tensor) -> Run:
    runtime, _ = importlib.import_module("onnxruntime"), importlib.import_module("onnxscript")
    file = Path(tempfile.mkdtemp()) / "model.onnx"
    axes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    shapes = {"input_ids": axes, "attention_mask": axes}
    given = {"input_ids": ids, "attention_mask": mask}
    torch.onnx.export(transformer, (), file, kwargs=given, dynamic_shapes=shapes, dynamo=True, verbose=False)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = runtime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return lambda ids, mask: torch.from_numpy(
        session.run(None, {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})[0]
    )


BACKENDS = {"torch.compile": by_compiling, "OpenVINO": by_openvino, "ONNX Runtime": by_onnx}
