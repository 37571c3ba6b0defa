"""A finished training is found again by what it was trained from."""

import shutil

import pytest

from nblib.models.folders import model_folder
from nblib.training import finished

FROM = {"code_version": 1, "settings": {"epochs": 2, "targets": ("q", "v")}}
FROM |= {"texts_sha256": "t", "base_fingerprint": "b", "device": "cpu"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("code_version", 2),
        ("settings", {"epochs": 3}),
        ("texts_sha256", "u"),
        ("base_fingerprint", "c"),
        ("device", "cuda"),
    ],
)
def test_whatever_decides_the_result_is_in_the_fingerprint(key, value):
    assert finished.fingerprint(**FROM) == finished.fingerprint(**FROM)
    assert finished.fingerprint(**{**FROM, key: value}) != finished.fingerprint(**FROM)


def test_texts_count_in_their_order_and_where_one_ends():
    assert finished.texts_sha256([("a b", "c")]) != finished.texts_sha256([("a", "b c")])
    assert finished.texts_sha256([("a",), ("b",)]) != finished.texts_sha256([("b",), ("a",)])


def test_a_folder_is_finished_if_its_sidecar_says_from_what(tmp_path):
    folder, mine = tmp_path / "model-1.5", finished.fingerprint(**FROM)
    assert not finished.is_finished(folder, mine)
    with model_folder(folder, "a card", {finished.TRAINED_FROM: mine}) as draft:
        (draft / "weights").write_text("1.5")
    assert finished.is_finished(folder, mine) and not finished.is_finished(folder, "another")
    shutil.rmtree(folder)
    assert not finished.is_finished(folder, mine)
