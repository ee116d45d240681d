"""Sessions and event time."""

from __future__ import annotations

from uuid import UUID

import pytest

from schemas.events import event_time
from tests.agents.heard import T0, Heard

MINUTE = 60_000


@pytest.mark.parametrize(
    ("occurred_at", "expected"),
    [
        (T0, (T0, False)),
        (T0 - 5, (T0 - 5, False)),
        (T0 - 600_000, (T0 - 600_000, False)),
        (T0 - 600_001, (T0, True)),
        (T0 + 1, (T0, True)),
        (None, (T0, True)),
        (1_767_578_400_000_000 // 1_000 + 86_400_000, (T0, True)),
    ],
)
def test_a_customers_clock_is_believed_within_bounds(occurred_at: int | None, expected: tuple[int, bool]) -> None:
    """Event time is never ahead of the append time and at most 10 min behind it, else assumed (case D15)."""
    assert expected == event_time(occurred_at, T0)


def test_a_clock_that_is_wrong_is_marked() -> None:
    """A message whose clock can't be right carries the append time, marked, and the decision says so (case D15)."""
    heard = Heard()
    message = heard.read("退款", occurred_at=T0 + 3_600_000)

    assert (T0, True) == (message.ref.at, message.ref.time_assumed)
    assert "perception.time_assumed" in heard.rules()


def test_a_missing_clock_is_marked_without_a_reason() -> None:
    """A channel without a clock is no fault: the time is marked as assumed, no more."""
    heard = Heard()

    assert heard.read("退款").ref.time_assumed
    assert "perception.time_assumed" not in heard.rules()


def test_a_session_id_holds_its_first_append_time() -> None:
    """A session id is a UUIDv7 of the first input's append time, so that a replay can seek to it."""
    session = UUID(Heard().read("你好").ref.session_id)

    assert (7, T0, "specified in RFC 4122") == (session.version, session.int >> 80, session.variant)


def test_a_session_id_is_derived() -> None:
    """The same event gives the same session id at every replay, another sender another (promise 5)."""
    first, again, other = Heard(), Heard(), Heard(sender="u-2")

    assert first.read("你好").ref.session_id == again.read("你好").ref.session_id
    assert first.state["session"]["id"] != other.read("你好").ref.session_id


def test_silence_counts_from_the_last_message() -> None:
    """Messages every 4 min for 32 min are one session: the clock runs from the last one (case J13)."""
    heard = Heard()
    sessions = {heard.read("在吗", f"m-{n}", T0 + n * 4 * MINUTE).ref.session_id for n in range(9)}

    assert 1 == len(sessions)
    assert T0 + 32 * MINUTE == heard.state["session"]["last_customer_at"]


@pytest.mark.parametrize(("silence", "number"), [(30 * MINUTE - 1, 1), (30 * MINUTE, 2), (14 * 24 * 60 * MINUTE, 2)])
def test_long_silence_ends_a_session(silence: int, number: int) -> None:
    """After 30 min of silence, or 14 days, the next message opens a new session (cases J11, J13)."""
    heard = Heard()
    first = heard.read("你好", "m-1").ref.session_id
    second = heard.read("在吗", "m-2", T0 + silence).ref.session_id

    assert number == heard.state["session"]["number"]
    assert (number == 2) == (first != second)
    assert (number == 2) == ("perception.session" in heard.rules())


def test_a_late_message_does_not_turn_the_clock_back() -> None:
    """A message that was written before the last one leaves the session's last time as it is."""
    heard = Heard()
    heard.read("你好", "m-1", T0)
    heard.read("在吗", "m-2", T0 + 1_000, occurred_at=T0 - 60_000)

    assert T0 == heard.state["session"]["last_customer_at"]


def test_a_session_names_its_place() -> None:
    """A session knows shop, channel and sender, and its number."""
    heard = Heard()
    heard.read("你好")
    session = heard.state["session"]

    assert ("demo", "web", "u-1", 1, T0) == tuple(
        session[key] for key in ("shop", "channel", "sender", "number", "started")
    )
