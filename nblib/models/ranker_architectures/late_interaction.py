"""Rankers by tokens (late interaction): ColBERT, and MaxSim over the tokens of any encoder."""

import string
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from nblib.models.encoders import Encoder
from nblib.models.ranker_architectures.base import Ranker, RankerError

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder

CHUNK = 64  # documents whose token vectors are held at once: half a megabyte each


class LateInteraction(Ranker):
    """A vector for each token; a document's score is the sum, over the query's tokens, of the greatest similarity with any
    of its tokens (MaxSim; ColBERT, Khattab and Zaharia 2020)."""

    kind = "late-interaction"

    def __init__(
        self, model: "MultiVectorEncoder", name: str, source: str, prompts: tuple[str | None, str | None] = (None, None)
    ) -> None:
        super().__init__(model, name, source)
        self.query_prompt, self.document_prompt = prompts  # None: the model's own

    def score(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        pairs = pd.DataFrame({"query": list(queries), "document": list(documents)})
        asked = pairs["query"].unique().tolist()
        ask = dict(zip(asked, self.model.encode_query(asked, prompt=self.query_prompt), strict=True))
        # sorted: a batch has little padding, and nearly identical documents share one
        distinct = sorted(pairs.document.unique(), key=lambda text: (len(text), text))
        scores = np.empty(len(pairs))
        for start in tqdm(range(0, len(distinct), CHUNK), desc=self.name, unit=f"{CHUNK} documents"):
            chunk = distinct[start : start + CHUNK]
            vectors = self.model.encode_document(chunk, prompt=self.document_prompt, batch_size=8)
            answer = dict(zip(chunk, vectors, strict=True))
            part = pairs[pairs.document.isin(answer)]
            found = self.model.similarity_pairwise(
                [ask[query] for query in part["query"]], [answer[document] for document in part.document]
            )
            scores[part.index] = found.cpu().numpy()
        return scores

    def alignment(self, query: str, document: str) -> pd.DataFrame:
        """What MaxSim sees of one pair (Weller's Figures 9 and 10): a row per query token and document token.

        Returns:
            query_place, query_token, document_place, document_token, similarity, greatest (whether the query token's score
            is that of this document token).
        """
        ask, query_tokens = self._tokens(query, "query", self.query_prompt)
        answer, document_tokens = self._tokens(document, "document", self.document_prompt)
        similarity = ask @ answer.T
        rows, columns = np.indices(similarity.shape).reshape(2, -1)
        return pd.DataFrame({
            "query_place": rows, "query_token": np.array(query_tokens)[rows],
            "document_place": columns, "document_token": np.array(document_tokens)[columns],
            "similarity": similarity.ravel(), "greatest": similarity.argmax(axis=1)[rows] == columns,
        })  # fmt: skip

    def _tokens(self, text: str, side: str, prompt: str | None) -> tuple[np.ndarray, list[str]]:
        """The vectors of the tokens that count, [tokens, dimension], and the tokens."""
        encode = self.model.encode_query if side == "query" else self.model.encode_document
        features = encode(text, prompt=prompt, output_value=None)
        counts = features["attention_mask"].bool()
        tokens = self.model.tokenizer.convert_ids_to_tokens(features["input_ids"][counts].tolist())
        return features["token_embeddings"][counts].cpu().double().numpy(), tokens


def token_maxsim(encoder: Encoder) -> LateInteraction:
    """MaxSim over the token vectors of an encoder that was trained for one vector per text: not ColBERT.

    As in ColBERT similarity is cosine, the special tokens count, and a document's punctuation doesn't.

    Raises:
        RankerError: the encoder has no tokens to ask for.
    """
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    if not isinstance(encoder.model, SentenceTransformer) or not isinstance(encoder.model[0], Transformer):
        raise RankerError(
            f"{encoder.name} has no token vectors to compare: it is no transformer of sentence-transformers."
        )
    mask = MultiVectorMask(skiplist_words=list(string.punctuation))
    modules = [encoder.model[0], mask, Normalize(module_input_name="token_embeddings")]
    model = MultiVectorEncoder(modules=modules, device=str(encoder.model.device)).eval()
    prompts = (encoder.spec.prompt("query"), encoder.spec.prompt("document"))
    return LateInteraction(model, f"maxsim-{encoder.name}", f"token vectors of {encoder.name}", prompts)
