"""A language model for unit tests: random weights, words as tokens."""

from pathlib import Path

TEXT = """Sentence 1 : 2 . Do the two sentences have opposite meaning ? Yes or No . Answer : Document Query Which document is more
relevant to query Please choose , - 0 3 4 5 6 7 8 9 a dog cat man door house red green in not verbal absolute affixal lexical word
phrase Question A B C D"""
WORDS = TEXT.split()


def tiny_llama(folder: Path, *, seed: int = 7, hidden: int = 32, words: list[str] = WORDS) -> Path:
    """A random two-layer Llama with a word-level tokenizer, saved to `folder`."""
    import torch
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Digits, Sequence, Whitespace
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    vocabulary = {word: place for place, word in enumerate(dict.fromkeys(["<pad>", "<unk>", "<s>", "</s>", *words]))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Sequence([Whitespace(), Digits(individual_digits=True)])
    special = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **special).save_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        LlamaForCausalLM(LlamaConfig(
            vocab_size=len(vocabulary), hidden_size=hidden, intermediate_size=2 * hidden, num_hidden_layers=2,
            num_attention_heads=4, max_position_embeddings=512, initializer_range=0.2, pad_token_id=0, bos_token_id=2,
            eos_token_id=3,
        )).save_pretrained(folder)  # fmt: skip
    return folder


def ngrams(text, n):
    """All runs of n words."""
    return set(zip(*(text[start:] for start in range(n)), strict=False))
