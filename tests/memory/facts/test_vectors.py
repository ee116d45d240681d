"""The embedded vectors: the shop's words in both languages, the same on every machine."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from memory.facts.ranking import cosine
from memory.facts.vectors import SIZE, HashedVectors, hashed, meanings, tokens, unfit


@pytest.mark.parametrize(
    ("chinese", "english"),
    [("连衣裙", "dress"), ("耳机坏了", "the headphones are broken"), ("要求退款", "wants a refund"),
     ("换一双运动鞋", "exchange for sneakers"), ("发票", "invoices"), ("蓝色杯子", "blue cup"),
     ("保温杯", "thermos"), ("改地址", "new address"), ("羽绒服尺码", "down jacket size")],
)  # fmt: skip
def test_same_thing_is_near_in_the_other_language(chinese: str, english: str) -> None:
    """A thing is nearer to its name in the other language than to other things (R-002-18)."""
    others = ["suitcase", "rice cooker", "会员积分", "浴巾", "a toy for the weekend"]

    near = cosine(hashed(chinese), hashed(english))

    assert near > 0.25
    assert near > max(cosine(hashed(chinese), hashed(other)) for other in others) + 0.15


def test_vectors_are_the_same_everywhere() -> None:
    """A vector depends on nothing but the text: stored ones stay comparable over versions and machines."""
    text = "喜欢红色 dress, size M"

    thousandths = np.rint(hashed(text) * 1000).astype("<i2")
    assert "fbe5aa52" == hashlib.sha256(thousandths.tobytes()).hexdigest()[:8]
    assert (SIZE,) == hashed(text).shape
    assert abs(float(np.linalg.norm(hashed(text))) - 1) < 1e-6


def test_whole_words_only_in_english() -> None:
    """A word inside another is no word of it; plurals and phrases are known."""
    assert () == meanings("hatred of stationary bookings, scape")
    assert {"=hat", "=dress"} == set(meanings("Hats and DRESSES"))
    assert "=power_bank" in meanings("my power banks")


def test_tokens_hold_single_characters_and_pairs() -> None:
    """The keyword index holds a Chinese text's characters, pairs and meanings (case I07)."""
    assert {"收货", "货地", "地址", "收", "址", "=address"} <= set(tokens("收货地址"))


def test_vector_that_does_not_fit_is_told() -> None:
    """Another size, or a number that is none, is refused with the reason (case I03)."""
    vectors = HashedVectors()

    assert "7 numbers" in unfit(np.ones(7, dtype=np.float32), vectors)
    assert "finite" in unfit(np.full(SIZE, np.nan, dtype=np.float32), vectors)
    assert "" == unfit(hashed("tea"), vectors)
