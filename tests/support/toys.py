"""Random toy models of every kind that people bring, and the five lines of the library that score them."""

from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from sentence_transformers.base.model import BaseModel
from torch.nn import Identity, Module, ReLU, Tanh

LETTERS = "bcdefghijklmnopqrstuvwxyz"
WORDS = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] the a is not no never dog cat man door house red open closed in and find :".split()
)
VOCABULARY = [*WORDS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
BODIES = "bert", "bert", "roberta", "distilbert", "mpnet", "llama"
KINDS = {"encoder": 9, "static": 2, "router": 3, "sparse": 3, "late": 4, "cross": 3, "old cross": 2, "bare": 1}
CLASSES = {"sparse": "SparseEncoder", "late": "MultiVectorEncoder"}
CLASSES |= {"cross": "CrossEncoder", "old cross": "CrossEncoder"}
POOLINGS = "mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"
PROMPTS = {"query": "find : ", "document": "in : ", "passage": "the : ", "corpus": "a ", "mine": "is not "}
SIMILARITIES = {"SentenceTransformer": ["cosine", "dot", "euclidean", "manhattan"]}
SIMILARITIES |= {"SparseEncoder": ["cosine", "dot", "manhattan"], "MultiVectorEncoder": ["maxsim", "meanmaxsim"]}
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
SIZES |= {"vocab_size": len(VOCABULARY), "max_position_embeddings": 68, "pad_token_id": 0, "initializer_range": 0.3}


@dataclass(frozen=True)
class Toy:
    """A saved model: what is given to the study, where it is, its class, what was drawn, and of a bare LoRA its base."""

    name: str
    folder: Path
    kind: str
    family: str
    about: dict[str, object]
    base: Path | None = None

    def load(self) -> BaseModel:
        """By the library alone."""
        import sentence_transformers

        options = {"device": "cpu", "model_kwargs": {"dtype": "float32"}}
        model = getattr(sentence_transformers, self.family)(str(self.base or self.folder), **options)
        if self.base:
            model.load_adapter(str(self.folder))
        return model.float().eval()  # a table of static vectors takes no dtype


def five_lines(model: BaseModel, queries: list[str], documents: list[str], *, search: bool) -> np.ndarray:
    """What the library says of the pairs, as texts to search or as equals."""
    if hasattr(model, "predict"):
        logits = model.predict(list(zip(queries, documents, strict=True)), activation_fn=Identity())
        return logits if logits.ndim == 1 else logits[:, 1]  # of entailment
    first, second = (model.encode_query, model.encode_document) if search else (model.encode, model.encode)
    return np.asarray(model.similarity_pairwise(first(queries), second(documents)))


def body(folder: Path, kind: str, head: str = "AutoModel", **config: object) -> Path:
    """A random transformer with its tokenizer, saved bare."""
    import transformers

    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY), encoding="utf-8")
    config = transformers.AutoConfig.for_model(kind, **SIZES | config)
    getattr(transformers, head).from_config(config).save_pretrained(folder)
    transformers.BertTokenizerFast.from_pretrained(folder, model_max_length=64).save_pretrained(folder)
    return folder


def modules(kind: str, folder: Path, name: str, rng: Random) -> list[Module]:
    """Random modules of a kind, on a body that is saved in a folder."""
    from sentence_transformers.base.modules import Dense, Normalize, Router, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
    from sentence_transformers.sentence_transformer.modules import LayerNorm, Pooling, StaticEmbedding
    from sentence_transformers.sparse_encoder.modules import SpladePooling

    if kind == "router":
        kinds = {side: rng.choice(["tower", "static"]) for side in ("query", "document")}
        towers = [modules(kinds[side], folder / side, name, rng) for side in kinds]
        return [Router.for_query_document(*towers, rng.choice(["query", "document", None]), allow_empty_key=False)]
    if kind == "sparse":
        transformer = Transformer(str(body(folder, name, "AutoModelForMaskedLM")), transformer_task="fill-mask")
        return [transformer, SpladePooling(pooling_strategy=rng.choice(["max", "sum"]))]
    lengths = {"max_seq_length": rng.choice([12, 64]), "query_length": rng.choice([None, None, 10])}
    expansion = {"strategy": "fixed", "attend": rng.random() < 0.5, "length": 10}
    lengths |= {"query_expansion": rng.choice([None, expansion])} if kind == "late" else {}
    transformer = Transformer(str(body(folder, name)), **lengths)
    if kind == "late":
        mask = MultiVectorMask(skiplist_words=rng.choice([[], ["the", "."]]))
        return [transformer, mask, Normalize(module_input_name="token_embeddings")]
    if kind == "static":
        table = np.random.default_rng(rng.randrange(99)).normal(size=(90, 32))
        return [StaticEmbedding(transformer.tokenizer.backend_tokenizer, embedding_weights=table)]
    pooling = Pooling(32, "lasttoken" if name == "llama" else rng.choice(POOLINGS), include_prompt=rng.random() < 0.7)
    dense = Dense(32, 24, activation_function=rng.choice([Tanh(), ReLU(), Identity()]))
    extra = [dense, LayerNorm(24), Normalize()] if kind == "encoder" else []
    return [transformer, pooling, *extra[: rng.choice([0, 0, 1, 2, 3])]]


def make(folder: Path, seed: int, kind: str | None = None) -> Toy:
    """Draw a model, save it below a folder (the working directory of relative names), and say how it is given."""
    import sentence_transformers
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    rng = Random(seed)
    kind = kind or rng.choices(list(KINDS), list(KINDS.values()))[0]
    name = rng.choice([one for one in BODIES if one != "llama" or kind in ("encoder", "late")])
    family = CLASSES.get(kind, "SentenceTransformer")
    prompts = {name: text for name, text in PROMPTS.items() if rng.random() < 0.4}
    options = {"prompts": prompts, "default_prompt_name": rng.choice([None, *prompts])} if kind != "old cross" else {}
    options |= {"similarity_fn_name": rng.choice(SIMILARITIES[family])} if family in SIMILARITIES else {}
    options |= {"truncate_dim": rng.choice([None, None, 8])} if family == "SentenceTransformer" else {}
    lora = rng.choice([None, None, "on a transformer", "on a model", "bare"])
    lora = None if kind in ("static", "router", "bare") else lora
    dtype = rng.choice(["float32", "float32", "bfloat16", "float16"])
    load, options = getattr(sentence_transformers, family), {"device": "cpu", **options}
    home = folder / f"toy {seed}"
    start, base, saved = home / "start", home / "base", home / "model"
    if "cross" in kind:
        labels = rng.choice([{0: "relevance"}, {0: "contradiction", 1: "entailment", 2: "neutral"}])
        body(start, name, "AutoModelForSequenceClassification", id2label=labels, num_labels=len(labels))
        model = load(str(start), max_length=48, **options)
    else:
        model = load(modules=modules(kind, start, name, rng), **options)
    model.to(getattr(torch, dtype))

    def save(model: BaseModel, folder: Path) -> None:
        if kind in ("bare", "old cross"):
            model.transformers_model.save_pretrained(folder)
            model.tokenizer.save_pretrained(folder)
        else:
            model.save_pretrained(str(folder), create_model_card=False)

    lora = "bare" if lora and kind == "old cross" else lora
    if lora in ("on a model", "bare"):
        save(model, base)
        model = load(str(base), device="cpu")
    config = LoraConfig(target_modules=["query", "q_lin", "q", "q_proj"], r=2, init_lora_weights=False)
    if lora == "bare":
        get_peft_model(model.transformers_model, config).save_pretrained(saved)
    else:
        if lora:
            model.add_adapter(config)
        save(model, saved)
    given = rng.choice([str(saved), f"{home.name}/model", f"toys/{kind.replace(' ', '-')}-{seed}"])
    if given.startswith("toys/"):
        cached, commit = folder / f"hub/models--{given.replace('/', '--')}", f"{seed:040x}"
        (cached / "snapshots").mkdir(parents=True)
        (cached / "refs").mkdir()
        (cached / "refs/main").write_text(commit)
        saved = saved.rename(cached / "snapshots" / commit)
    about = {"seed": seed, "body": name, "dtype": dtype, "lora": lora, "modules": str(model).split()} | options
    return Toy(given, saved, kind, family, about, base if lora == "bare" else None)
