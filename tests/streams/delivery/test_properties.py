"""Whatever the order of receipts: no state is lowered, none is forgotten, and the end depends on the set alone."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.delivery import DeliveryStatus
from streams.delivery.table import RANK
from tests.streams.delivery.chat import Chat

STATES = ("queued", "sent", "delivered", "displayed", "read")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from((*STATES, "failed")), st.sampled_from([None, 1, 2])),
        st.tuples(st.just("attempt"), st.integers(2, 4)),
        st.tuples(st.just("wait"), st.sampled_from([100, 6_000, 16_000, 40_000, 130_000, 700_000])),
        st.tuples(st.sampled_from(["heartbeat", "offline"]), st.none()),
    ),
    max_size=14,
)


def _play(steps: list[tuple[str, Any]]) -> Chat:
    chat, at = Chat(), 0
    chat.waits()
    chat.reply()
    for what, value in steps:
        at += 10
        if what == "attempt":
            chat.reply(at=at, attempt=value)
        elif what == "wait":
            at += value
            chat.later(at)
        elif what in ("heartbeat", "offline"):
            chat.customer(at, what)
        else:
            chat.receipt(what, at, attempt=value, reason="blocked" if what == "failed" else "")  # type: ignore[arg-type]
    return chat


def _lowered(before: DeliveryStatus, after: DeliveryStatus) -> bool:
    revived = before.state == "failed" and after.attempt > before.attempt
    return RANK[after.state] < RANK[before.state] and not revived


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_no_order_lowers_a_state(steps: list[tuple[str, Any]]) -> None:
    """Any mix of receipts, attempts, silence and presence: rank never falls, but by a new attempt (A01, A05, A07)."""
    statuses = _play(steps).statuses()
    lowered = [pair for pair in itertools.pairwise(statuses) if _lowered(*pair)]
    assert [] == lowered


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_published_states_make_a_chain(steps: list[tuple[str, Any]]) -> None:
    """Each status names the one before it, so the register of a message has no gap."""
    statuses = _play(steps).statuses()
    assert [status.state for status in statuses[:-1]] == [status.previous for status in statuses[1:]]


@settings(max_examples=25, deadline=None)
@given(st.permutations(STATES), st.integers(1, len(STATES)))
def test_the_end_is_the_highest_report(order: list[str], count: int) -> None:
    """Without failures the end is the highest state reported, whatever the order (case A07)."""
    chat = Chat()
    chat.reply()
    for number, state in enumerate(order[:count]):
        chat.receipt(state, number * 10, ts=number)  # type: ignore[arg-type]

    assert max(order[:count], key=STATES.index) == chat.message()["state"]
    assert set(order[:count]) == set(chat.message()["at"])


@settings(max_examples=25, deadline=None)
@given(st.permutations(STATES), st.integers(0, len(STATES)))
def test_parking_changes_nothing(order: list[str], before: int) -> None:
    """However many receipts come before the message, it ends as if it had been there first (case A03)."""
    chat = Chat()
    for number, state in enumerate(order):
        if number == before:
            chat.reply(at=number * 10)
        chat.receipt(state, number * 10)  # type: ignore[arg-type]
    if before == len(order):
        chat.reply(at=100)

    assert ("read", set(STATES)) == (chat.message()["state"], set(chat.message()["at"]))


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_nothing_is_left_behind(steps: list[tuple[str, Any]]) -> None:
    """After everything has passed no deadline runs, at most four attempts were made, and one follow-up at most."""
    chat = _play(steps)
    chat.later(10_000_000)

    assert {} == chat.state["timers"]
    assert 4 >= chat.message()["attempt"]
    assert 1 >= len(chat.outbound("follow_up"))
