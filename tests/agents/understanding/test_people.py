"""Names, emails, zip codes, accounts and places: read where something says what they are, each with its span."""

from __future__ import annotations

import pytest

from agents.understanding.slots import entities


def _standing(text: str, field: str) -> list[str]:
    """The raw text of each find of a field."""
    return [text[found.start : found.end] for found in entities(text) if found.field == field]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("my name is Ada Lovelace and my zip is 10001", "Ada Lovelace"),
        ("my name is ada lovelace and i want a refund", "ada lovelace"),
        ("Hi, I'm Ada Lovelace.", "Ada Lovelace"),
        ("the invoice from Ms. Lovelace please", "Ms. Lovelace"),
        ("dwnload the bll ffom Ada Lovelace", "Ada Lovelace"),
        ("我叫王小明，帮我查订单", "王小明"),
        ("收件人甲，13800000000", "甲"),
        ("找李女士", "李女士"),
    ],
)
def test_a_name_stands_behind_its_cue(text: str, name: str) -> None:
    """A person's name is read behind words that announce one, in any spelling of the cue (R-002-48)."""
    assert [name] == _standing(text, "person_name")


@pytest.mark.parametrize(
    "text",
    ["I am very angry", "my name is wrong", "I'm in New York", "我是老客户", "我叫什么来着", "see you at Green Park"],
)
def test_other_words_are_no_name(text: str) -> None:
    """What merely stands where a name could is none."""
    assert [] == _standing(text, "person_name")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("my zip code is 19122.", "19122"),
        ("zipcode 28236", "28236"),
        ("I live in Denver, 80280", "80280"),
        ("Elm Street, Houston, TX 77001", "77001"),
        ("postcode SW1A 1AA", "SW1A 1AA"),
        ("邮编是518000", "518000"),
        ("zip code one nine one two two", "one nine one two two"),
        ("my zip code? let me see, it was 98186", "98186"),
    ],
)
def test_a_zip_code_is_no_order(text: str, code: str) -> None:
    """A zip code is read where it is named or stands behind a place, and never as an order number (case F07)."""
    assert [code] == _standing(text, "zip_code")
    assert [] == _standing(text, "order_id")


def test_an_email_is_read_where_it_touches_chinese() -> None:
    """Case F09: an email needs no space around it."""
    assert ["abc@example.com"] == _standing("邮箱abc@example.com收不到", "email")


@pytest.mark.parametrize(
    ("text", "field", "found"),
    [
        ("my user id is ada_lovelace_1815", "user_id", "ada_lovelace_1815"),
        ("会员号:VIP20260105", "user_id", "VIP20260105"),
        ("refund to gift_card_4855547", "payment_id", "gift_card_4855547"),
        ("switch to the Pro accuont", "account_type", "Pro"),
        ("I have a freemium account", "account_type", "freemium"),
        ("怎么升级成黄金会员", "account_type", "黄金"),
        ("do you deliver to Finland?", "country", "Finland"),
        ("can I order from Toledo", "city", "Toledo"),
        ("能寄到日本吗", "country", "日本"),
    ],
)
def test_accounts_and_places_have_a_span(text: str, field: str, found: str) -> None:
    """User and payment ids, kinds of account, countries and cities are found with the words that name them."""
    assert [found] == _standing(text, field)
