"""The embedded vectors: deterministic, of length 1, and nearer for what is alike."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.embedding import nearest, similarity, vector


@pytest.mark.parametrize(
    ("text", "like", "unlike"),
    [
        ("蓝色杯子到哪了", "那个蓝色的杯子", "红色外套退款"),
        ("the blue cup", "Blue cups", "red coat"),
        ("订单1001", "1001", "1002"),
    ],
)
def test_what_is_alike_is_nearer(text: str, like: str, unlike: str) -> None:
    """Chinese, English and numbers (R-002-11)."""
    assert similarity(vector(text), vector(like)) > similarity(vector(text), vector(unlike))


@given(st.text(max_size=80))
def test_a_text_is_most_like_itself(text: str) -> None:
    """Length 1, or nothing to compare."""
    assert round(similarity(vector(text), vector(text)), 9) in (0.0, 1.0)


def test_another_process_gives_the_same_vector() -> None:
    """No hash seed: a replay a year later sees the same order (promise 5, R-002-11)."""
    code = "from memory.embedding import vector; print(sorted(vector('退款 blue cup 1001').items()))"
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    )

    assert str(sorted(vector("退款 blue cup 1001").items())) == other.stdout.strip()


def test_a_first_look_keeps_what_shares_most() -> None:
    """Of many texts those that share n-grams are compared, then the later ones."""
    assert [2, 3] == nearest("蓝色杯子", ["天气", "你好", "蓝色的", "再见"], 2)
