"""The encoder card: what it says, and that it says it in the direction of the numbers."""

from dataclasses import replace

import pandas as pd
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from support.encoders import tiny

from nblib import corpora
from nblib.analysis import encoder_card
from nblib.benchmarks import catalogue, scoring
from nblib.corpora.authored import HEDGES, NEGATIONS
from nblib.models import embeddings
from nblib.models.systems import BiEncoder


def profile(share, **types):
    interval = {"correct_low": share - 3, "correct_high": share + 3, "n": 300}
    rows = [{"negation": n, "hedge": h, "correct": types.get(n, share), **interval} for n in NEGATIONS for h in HEDGES]
    return pd.DataFrame([*rows, {"negation": "all", "hedge": "all", "correct": share, **interval}])


def summary(task, value, metric=None):
    benchmark = catalogue.get(task)
    about = {"task": task, "split": "test", "part": "", "metric": metric or benchmark.main_metric, "n": 1383}
    return pd.DataFrame([{**about, "value": value, "ci_low": value - 1, "ci_high": value + 1}])


def test_the_nearest_published_systems_bracket_the_score():
    known = encoder_card.published_scores(catalogue.get("nevir"))
    nearest = encoder_card.with_published(summary("nevir", 10.0)).nearest.item()
    below, above = known.value[known.value <= 10].max(), known.value[known.value > 10].min()
    assert f"{below:g} (" in nearest and f"{above:g} (" in nearest
    equal = encoder_card.with_published(summary("nevir", 8.1)).nearest.item()
    assert "MPNet 8.1 (truong)" in equal and "all-mpnet-base-v2 8.1 (weller)" in equal, "in two papers"
    assert f"{known.value.max():g} (" in encoder_card.with_published(summary("nevir", 101)).nearest.item()


def test_what_makes_a_score_another_quantity_is_said():
    shown = encoder_card.with_published(summary("nevir_mini", 10.0)).iloc[0]
    assert shown.nearest == "" and "no published score is comparable" in shown.note
    assert shown.benchmark == "NevIR (mini)"
    assert "doesn't state its protocol" in encoder_card.with_published(summary("excluir", 70.0)).note.item()
    m3 = encoder_card.with_published(summary("m3", 70.0)).iloc[0]
    assert "isn't published" in m3.note and m3.nearest == "", "another set's scores are not near"


def test_cannots_printed_scores_are_near_pearsons_r_alone():
    both = pd.concat([summary("cannot_wmt", 34.9, metric) for metric in ("spearman", "pearson")])
    table = encoder_card.with_published(both).set_index("key")
    assert "MPNet 34.91 (truong)" in table.nearest.pearson and "fits Pearson" in table.note.pearson
    assert (table.nearest.spearman, table.note.spearman) == ("", "")


@pytest.mark.parametrize(
    ("share", "expected"),
    [(75, "E mostly keeps"), (51, "no better than chance"), (30, "hedge: the hedge is closer in 30.0 %")],
)
def test_the_profiles_description_follows_the_numbers(share, expected):
    assert expected in encoder_card.describe_profile("E", profile(share, lexical=share - 9, absolute=share + 9))


def test_the_profile_is_of_the_first_anchors_and_saved_with_the_scores(tmp_path, monkeypatch):
    monkeypatch.setenv("NBLIB_CACHE", str(tmp_path / "cache"))
    encoder, run = BiEncoder(tiny(tmp_path)), tmp_path / "run"
    predicted = encoder_card.score_profile(encoder, run, 20)
    assert predicted.cluster.nunique() == 20 and len(predicted) == 160
    pd.testing.assert_frame_equal(scoring.load_predictions(run, "tiny", "negation_profile"), predicted)


def test_the_largest_errors_come_first_with_their_texts(tmp_path):
    system, nevir = BiEncoder(tiny(tmp_path)), catalogue.get("nevir_mini")
    predictions = nevir.predict(system, nevir.rows())
    worst = encoder_card.largest_errors("nevir_mini", predictions, 3)
    assert worst.margin.tolist() == sorted(predictions.margin)[:3]
    table = corpora.load("nevir_mini").set_index("id").loc[worst.id]
    assert all(query in pair for query, pair in zip(worst["query"], zip(table.q1, table.q2, strict=True), strict=True))
    assert encoder_card.largest_errors("nevir_mini", predictions.assign(correct=True), 3).empty
    stsb = catalogue.get("stsb_mini")
    worst = encoder_card.largest_errors("stsb_mini", stsb.predict(system, stsb.rows()), 3)
    assert worst.rank_gap.abs().is_monotonic_decreasing and len(worst) == 3


def test_over_long_texts_are_counted_and_static_embeddings_do_not_say_what_they_read(tmp_path):
    encoder = tiny(tmp_path, max_length=32)
    table = corpora.load("nevir_mini")
    texts = sorted({*table.q1, *table.q2, *table.doc1, *table.doc2})
    tokens = embeddings.token_counts(encoder, texts)
    row = encoder_card.truncation(encoder, ["nevir_mini"]).iloc[0]
    assert (row.task, row.texts, row.tokens, row.longest) == ("nevir_mini", len(texts), tokens.sum(), tokens.max())
    assert row.truncated == (tokens > 32).sum() and 0 < row.share < 100
    static = StaticEmbedding(encoder.model.tokenizer.backend_tokenizer, embedding_dim=8)
    encoder = replace(encoder, model=SentenceTransformer(modules=[static], device="cpu"), fingerprint="static")
    read = encoder_card.truncation(encoder, ["stsb_mini"])
    assert read[["tokens", "longest", "truncated", "share"]].isna().all(axis=None) and read.texts.item() > 0
