"""Token counts: a bound that holds for texts whose real counts are known, and grows with the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.tokens import count


@pytest.mark.parametrize(
    ("text", "most_real"),  # the highest count of o200k, Qwen 2.5, Qwen 3.6 and DeepSeek V4
    [
        ("你好 world", 2),
        ("", 0),
        ("订单OD100001已签收，感谢您的耐心等待。", 17),
        ("我要退那条蓝色裙子，尺码不合适，请尽快处理！", 19),
        ("Where is my parcel? It should have arrived.", 10),
    ],
)
def test_the_bound_is_not_below_real_tokenizers(text: str, most_real: int) -> None:
    """The count is never below what a model's tokenizer says (R-003-23)."""
    assert most_real <= count(text) <= max(2.5 * most_real, most_real + 6)


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_part_never_costs_more_than_the_whole(left: str, right: str) -> None:
    """A budget that holds for a text holds for its beginning; two parts cost no less than both together."""
    assert max(count(left), count(right)) <= count(left + right) <= count(left) + count(right)


@given(st.text(min_size=1, max_size=80))
def test_every_character_counts(text: str) -> None:
    """No character is free: a text of any script is bounded by its length, spaces by a fifth of theirs."""
    assert count(text) >= len(text) / 5 or text.isascii()
