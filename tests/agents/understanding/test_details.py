"""Item, reason, time and choice."""

from __future__ import annotations

import pytest

from tests.agents.understanding.reader import read, slots, spans, values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("蓝裙子退了没", {"category": "dress", "colour": "blue"}),
        ("黑色的鞋子，42码，想退", {"category": "shoes", "colour": "black", "size": "42"}),
        ("I want to return the red dress, size M", {"category": "dress", "colour": "red", "size": "M"}),
        ("L码的外套要退货", {"category": "coat", "size": "L"}),
        ("均码裤子退货", {"category": "trousers", "size": "free"}),
    ],
)
def test_the_item_is_described(text: str, expected: dict[str, str]) -> None:
    """Category, colour and size are read into canonical values (R-002-03)."""
    assert expected == slots(text)


@pytest.mark.parametrize("text", ["我明白了，退款", "红包怎么退款", "I'm so glad"])
def test_a_colour_character_inside_a_word_is_no_colour(text: str) -> None:
    """白 in 明白 and 红 in 红包 are no colours."""
    assert "colour" not in slots(text)


@pytest.mark.parametrize(
    ("text", "reason", "kind"),
    [
        ("我要退款，质量太差", "质量太差", "quality"),
        ("退货，尺码不合适", "尺码不合适", "wrong_size"),
        ("我要退1012，不喜欢", "不喜欢", "changed_mind"),
        ("退款，发错货了", "发错货了", "wrong_item"),
        ("refund OD100001, it arrived damaged", "damaged", "quality"),
        ("I want a refund because it is too big for me", "it is too big for me", "wrong_size"),
        ("因为颜色和图片不一样，我要退款", "颜色和图片不一样", "not_as_described"),
        ("降价了，退差价", "降价了", "price"),
    ],
)
def test_the_reason_is_kept_in_the_customers_words(text: str, reason: str, kind: str) -> None:
    """The reason is the customer's own words, and its kind where the lexicon knows one (R-003-07 ask_reason)."""
    assert reason == read(text).reason
    assert [kind] == values(text, "reason_kind")
    assert [reason] == spans(text, "reason")


def test_a_late_parcel_is_no_reason_to_refund() -> None:
    """Where nothing is asked back, the complaint about a parcel is no refund reason."""
    assert read("快递太慢了，到哪了").reason is None


@pytest.mark.parametrize(
    ("text", "time"),
    [("昨天买的，要退", "昨天"), ("上周三下的单", "上周三"), ("三天前签收的", "三天前"), ("十一点前送到", "十一点前"),
     ("我2026年1月5日买的", "2026年1月5日"), ("I bought it last week", "last week"), ("2 days ago", "2 days ago"),
     ("退款", None)],
)  # fmt: skip
def test_a_time_reference_is_kept_as_said(text: str, time: str | None) -> None:
    """A time that the customer cites is kept in their words (R-002-03, case F11)."""
    assert time == read(text).time_reference


@pytest.mark.parametrize(
    ("text", "number"), [("1", "1"), ("选2", "2"), ("第3个", "3"), ("option 2", "2"), (" ② ", "2"), ("3吧", "3")]
)
def test_a_bare_choice_is_read(text: str, number: str) -> None:
    """A choice number alone informs, with or without a question that planning still has in the making (case B25)."""
    assert ("inform", [number]) == (read(text).wishes[0].intent, values(text, "choice"))


@pytest.mark.parametrize("text", ["0", "12", "退2件", "1个杯子"])
def test_other_small_numbers_are_no_choice(text: str) -> None:
    """A count or a number without a choice is none."""
    assert [] == values(text, "choice")
