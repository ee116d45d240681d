"""Times that customers name, placed on their clock: 5 January 2026, ten in the morning, in China."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.understanding.port import Context
from agents.understanding.times import mentioned, placed
from tests.agents.understanding.reader import RULES

NOW = Context(at=1_767_578_400_000, zone=480)


def _placed(text: str, context: Context = NOW) -> list[str | None]:
    return [placed(value, context) for _, value, _, _ in mentioned(text)]


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("昨天买的", "2026-01-04/2026-01-05"),
        ("上周三下的单", "2025-12-31/2026-01-01"),
        ("十一点前送到", "../2026-01-05T11:00"),
        ("九点前送到", "../2026-01-06T09:00"),
        ("晚上七点后有人", "2026-01-05T19:00/.."),
        ("前天晚上八点半", "2026-01-03T20:30/2026-01-03T20:31"),
        ("三天前", "2026-01-02/2026-01-03"),
        ("半个月前", "2025-12-21/2025-12-22"),
        ("去年12月", "2025-12-01/2026-01-01"),
        ("双十一买的", "2025-11-11/2025-11-12"),
        ("3月5日前收到", "../2026-03-05"),
        ("二零二六年一月三号", "2026-01-03/2026-01-04"),
        ("月底", "2026-01-25/2026-02-01"),
        ("2026-01-03", "2026-01-03/2026-01-04"),
        ("I bought it last Friday", "2026-01-02/2026-01-03"),
        ("two weeks ago", "2025-12-22/2025-12-23"),
        ("December 24", "2025-12-24/2025-12-25"),
        ("3rd of March 2025", "2025-03-03/2025-03-04"),
        ("by 5pm", "../2026-01-05T17:00"),
        ("within two weeks", "2026-01-05/2026-01-20"),
        ("in the last 30 days", "2025-12-06/2026-01-06"),
        ("yesterday evening", "2026-01-04T18:00/2026-01-05"),
        ("after next week", "2026-01-19/.."),
    ],
)
def test_a_time_is_an_interval_of_the_customers_clock(text: str, interval: str) -> None:
    """A named time is an interval in the customer's local time; "before" and "after" leave one end open (case F11)."""
    assert interval == RULES.read(text, NOW).time_reference


@pytest.mark.parametrize("text", ["几天前", "2月31日", "25点前", "上次", "recently"])
def test_what_has_no_place_stays_as_it_was_said(text: str) -> None:
    """A vague word and a date that does not exist are kept in the customer's words, never guessed."""
    assert text == RULES.read(text, NOW).time_reference


def test_midnight_is_the_customers() -> None:
    """An instant lies on two days at once: whose midnight counts is the customer's, not the server's (R-002-03)."""
    late = Context(at=1_767_628_800_000, zone=480)  # 2026-01-06 00:00 there, still the 5th in Greenwich

    assert ["2026-01-06/2026-01-07"] == _placed("今天", late)
    assert ["2026-01-05/2026-01-06"] == _placed("今天", Context(at=late.at, zone=0))


def test_without_a_clock_a_time_stays_as_it_was_said() -> None:
    """Who reads a text without its time gets the words."""
    assert ["昨天"] == _placed("昨天", Context())


@pytest.mark.parametrize("text", ["5号楼", "1001号", "等了三天", "退2件", "may I return it", "size 10"])
def test_other_numbers_are_no_time(text: str) -> None:
    """A building, an order, a count or a modal verb is no time."""
    assert [] == list(mentioned(text))


@given(st.text(alphabet="0123456789一三五十月日号点半前后上下周天年个去今昨明最:/-. pam", max_size=30))
def test_any_text_of_dates_can_be_placed(text: str) -> None:
    """Whatever is found is placed or given back, and never raises (promise 10)."""
    assert all(_placed(text))
