"""Masking in Chinese and English text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.masking import mask


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("138****0000", "13800000000"),
        ("手机号138****0000打不通", "手机号13800000000打不通"),
        ("**138****0000**", "**13800000000**"),
        ("tel138****0000now", "tel13800000000now"),
        ("+86 138-****-0000", "+86 138-0000-0000"),
        ("0086138****0000", "008613800000000"),
        ("86-138****0000", "86-13800000000"),
        ("138 **** 0000", "138 0000 0000"),
        ("138\u200b****\u200b0000", "138\u200b0000\u200b0000"),
        ("1 3 8 * * * * 0 0 0 0", "1 3 8 0 0 0 0 0 0 0 0"),
        ("１３８****００００", "１３８００００００００"),
        ("幺三八****零零零零", "幺三八零零零零零零零零"),
        ("138****0000 139****0001", "13800000000 13900000001"),
        ("0571-****8888", "0571-88888888"),
        ("+44 20 **** 0321", "+44 20 7946 0321"),
        ("(415) ***-*100", "(415) 555-0100"),
    ],
)
def test_phone_is_shown_without_its_middle_four_digits(shown: str, text: str) -> None:
    """A phone loses its middle four digits, however it is written and whatever it touches (R-000-12, case F09)."""
    masked, found = mask(text)
    assert shown == masked
    assert {"phone"} == {item.kind for item in found}


@pytest.mark.parametrize(
    "text",
    [
        "流水20138000000001234",
        "订单号 200801000001 到了吗",
        "order 1234567890123456",
        "单号1390000000012345",
        "1.5 2.5 3.5 4.5 5.5 6",
        "2026-01-05 10:00:00 to 2026-01-06 12:30:00",
        "价格 1380.00，数量 3，共 4140.00",
        "UUID 01940000-0000-7000-8000-000000000000",
        "SKU12800000000",
        "11010519491231002",
        "",
    ],
)
def test_other_numbers_stay(text: str) -> None:
    """Order numbers, serial numbers, amounts and times are left as they are (case F07)."""
    assert (text, []) == mask(text)


def test_order_number_beside_a_phone_stays() -> None:
    """Of an order number, a name and a phone only the phone is masked (case F07)."""
    assert "200801000001，收件人甲，138****0000" == mask("200801000001，收件人甲，13800000000")[0]


@pytest.mark.parametrize(
    ("kind", "shown", "text"),
    [
        ("id_card", "身份证110***********002X。", "身份证11010519491231002X。"),
        ("id_card", "110*** ******** 002x", "110105 19491231 002x"),
        ("bank_card", "卡号************7894转账", "卡号6222021234567894转账"),
        ("bank_card", "**** **** **** 7894 123", "6222 0212 3456 7894 123"),
        ("bank_card", "****-****-****-1111", "4111-1111-1111-1111"),
        ("email", "邮箱a**@example.com收不到", "邮箱abc@example.com收不到"),
        ("email", "j********@mail.example.co.uk.", "jane.d+ab@mail.example.co.uk."),
        ("email", "*@example.org", "x@example.org"),
        ("email", "ａ**＠example．com", "ａｂｃ＠example．com"),
    ],
)
def test_cards_and_emails_are_masked(kind: str, shown: str, text: str) -> None:
    """Identity cards, bank cards and emails are masked, touching Chinese text or not (promise 9, case F09)."""
    masked, found = mask(text)
    assert shown == masked
    assert [kind] == [item.kind for item in found]


@pytest.mark.parametrize(
    "text",
    ["110105194912310021", "110105199902300020", "6222021234567895", "1234567890123456", "@example.com", "a@b"],
)
def test_a_wrong_check_digit_is_no_card(text: str) -> None:
    """A number with a wrong checksum, date or Luhn sum is no card, and half an address no email (case F07)."""
    assert text == mask(text)[0]


def test_spans_index_the_given_text() -> None:
    """A span means the same value in the clear and in the masked text, which are of equal length (R-002-48)."""
    text = "我是甲，电话１３８００００００００，邮箱abc@example.com"
    masked, found = mask(text)
    assert len(text) == len(masked)
    assert ["１３８００００００００", "abc@example.com"] == [text[item.start : item.end] for item in found]
    assert [item.shown for item in found] == [masked[item.start : item.end] for item in found]


@pytest.mark.parametrize(
    ("plain", "text"),
    [
        ("13800000000", "+86 138-0000-0000"),
        ("13800000000", "幺三八零零零零零零零零"),
        ("13800000000", "１３８ ００００ ００００"),
        ("11010519491231002X", "110105 19491231 002x"),
        ("abc@example.com", "abc＠example.com"),
    ],
)
def test_plain_is_the_value_as_tools_take_it(plain: str, text: str) -> None:
    """The clear value is read off in ASCII, without separators and country prefix (R-000-12)."""
    assert [plain] == [item.plain for item in mask(text)[1]]


_PIECES = st.one_of(
    st.sampled_from(["13800000000", "138 0000 0000", "0571-88888888", "11010519491231002X", "4111111111111111",
                     "abc@example.com", "+86", "-", " ", "1", "0", "三", "幺三八零零零零零零零零", "*", "电话"]),
    st.text(alphabet="0123456789 -*@.aX一三", max_size=12),
)  # fmt: skip


@given(st.lists(_PIECES, max_size=12).map("".join))
def test_masking_masked_text_changes_nothing(text: str) -> None:
    """Masking is idempotent and keeps the length, and no span overlaps another (promise 9)."""
    masked, found = mask(text)
    assert (masked, []) == mask(masked)
    assert len(text) == len(masked)
    assert all(left.end <= right.start for left, right in pairwise(found))


@given(st.from_regex(r"\A1[3-9][0-9]{9}\Z"), st.text(alphabet="我的电话是，。 abc", max_size=8))
def test_every_mobile_number_is_masked(phone: str, around: str) -> None:
    """No mobile number gets through, whatever letters stand around it (promise 9, case F09)."""
    assert f"{around}{phone[:3]}****{phone[7:]}{around}" == mask(around + phone + around)[0]


def test_a_long_text_of_phones_is_masked_quickly() -> None:
    """The longest text that a topic takes is masked in one go, so that no sender can stall intake (promise 9)."""
    masked, found = mask("13800000000 " * 1_600)
    assert 1_600 == len(found)
    assert "13800000000" not in masked


@pytest.mark.parametrize("said", ["one three eight zero zero zero zero zero zero zero zero",
                                  "One three eight, double zero double zero double zero double zero"])  # fmt: skip
def test_a_phone_said_in_english_is_masked(said: str) -> None:
    """A voice transcript's phone is masked like a written one, and masking keeps the length (cases F09, F11)."""
    shown, found = mask(f"call {said} please")

    assert ["13800000000"] == [one.plain for one in found]
    assert len(f"call {said} please") == len(shown)
    assert "zero zero zero" not in shown
    assert mask(shown)[0] == shown


def test_an_order_number_said_in_english_is_not_masked() -> None:
    """Twelve digits are no mobile number (case F07)."""
    text = "order two oh two six eight two seven nine eight five nine two"

    assert (text, []) == mask(text)
