"""Amounts: exact yuan as fen, everything else named and refused."""

from __future__ import annotations

from decimal import Decimal

import pytest

from agents.understanding.numerals import number
from tests.agents.understanding.reader import read, slots, values


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("退我50元", 5_000),
        ("退款￥50.00", 5_000),
        ("¥ 50.5", 5_050),
        ("50块", 5_000),
        ("50块钱", 5_000),
        ("五十元", 5_000),
        ("一百二十块", 12_000),
        ("一百二块", 12_000),
        ("三块五", 350),
        ("５０元", 5_000),
        ("1,299元", 129_900),
        ("1.5万元", 1_500_000),
        ("refund 50 yuan please", 5_000),
        ("RMB 30", 3_000),
        ("退款金额改成30", 3_000),
        ("订单OD100001，50元", 5_000),
    ],
)
def test_exact_yuan_is_read_as_fen(text: str, amount: int) -> None:
    """Money is exact integer fen, whatever it was written with (case E11, R-002-03)."""
    assert amount == slots(text)["amount"]


@pytest.mark.parametrize("text", ["退款$50", "refund 50 dollars", "退50美元", "€20 back", "50 usd"])
def test_another_currency_is_no_amount(text: str) -> None:
    """Another currency is refused and flagged, never taken for yuan (case E11)."""
    assert "amount" not in slots(text)
    assert 1 == len(values(text, "foreign_amount"))


@pytest.mark.parametrize(
    "text", ["退款1e3元", "退款0.305元", "退款-50元", "退款1_000元", "退款inf元", "退款1,00元", "true元"]
)
def test_what_is_not_exact_money_is_refused(text: str) -> None:
    """A third decimal, an exponent, a sign or a broken grouping is no amount (case E11)."""
    assert "amount" not in slots(text)


def test_a_refused_amount_says_what_was_written() -> None:
    """What is refused stays as evidence in the customer's own words (case E11)."""
    assert ["0.305元"] == values("退款0.305元", "refused_amount")


@pytest.mark.parametrize(
    ("text", "amount"), [("30", 3_000), ("那就退30元", 3_000), ("三十", 3_000), (" 50.00 ", 5_000)]
)
def test_a_bare_number_answers_the_question_for_an_amount(text: str, amount: int) -> None:
    """Asked for an amount, a number alone is one (R-003-07 update_detail)."""
    reading = read(text, "amount")

    assert ("inform", amount) == (reading.wishes[0].intent, reading.wishes[0].slots.amount)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("五十", 50),
        ("十", 10),
        ("十五", 15),
        ("两百零五", 205),
        ("一万二千", 12_000),
        ("3千", 3_000),
        ("零", 0),
        ("12.5", Decimal("12.5")),
    ],
)
def test_chinese_numerals_are_exact(text: str, value: int | Decimal) -> None:
    """Numerals of amounts have one exact value."""
    assert value == number(text)


@pytest.mark.parametrize("text", ["", "元", "五元", "5点"])
def test_what_is_no_numeral_is_refused(text: str) -> None:
    """Text that is no numeral raises, and names itself."""
    with pytest.raises(ValueError, match=r"numeral|百"):
        number(text)


@pytest.mark.parametrize(("text", "value"), [
    ("退三百二十元", 32_000), ("退一百二元", 12_000), ("退一百零二元", 10_200), ("退三万五元", 3_500_000),
    ("退三万零五元", 3_000_500), ("退一千零一十元", 101_000), ("退零元", 0), ("退十二元", 1_200),
    ("退二三百元", None), ("退三百二百元", None), ("退一二三元", None), ("退十十元", None), ("退百千元", None),
])  # fmt: skip
def test_a_numeral_is_exact_or_refused(text: str, value: int | None) -> None:
    """Case E11: "二三百" is a guess and "三百二百" two sums; neither is read as some amount."""
    assert read(text).wishes[0].slots.amount == value


@pytest.mark.parametrize("text", ["refund ten dollars", "ten dollars", "a hundred bucks", "50刀", "refunding$50",
                                  "compensation of50 dollars"])  # fmt: skip
def test_money_in_words_is_not_passed_over(text: str) -> None:
    """Case E11: an amount in another currency is flagged also when it is said in words or touches one."""
    assert "amount" not in slots(text)
    assert 1 == len(values(text, "foreign_amount"))


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("refund fifty five yuan", 5_500),
        ("a hundred and twenty yuan", 12_000),
        ("退我五毛钱", 50),
        ("三块半", 350),
        ("壹佰贰拾元", 12_000),
        ("2k元", 200_000),
    ],
)
def test_money_in_words_is_exact(text: str, amount: int) -> None:
    """Numbers in English words, dimes and formal numerals have one exact value (case E11)."""
    assert amount == slots(text)["amount"]


@pytest.mark.parametrize(
    "text", ["1e3 dollars", "-50 dollars", "退款1_000元", "退款inf元", "twenty twenty yuan", "退true元"]
)
def test_what_is_not_exact_is_told(text: str) -> None:
    """Case E11: what stands where an amount would and is none is refused by name, with the words kept."""
    assert 1 == len(values(text, "refused_amount"))
    assert "amount" not in slots(text)
