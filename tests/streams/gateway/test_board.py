"""The board of open requests, from the two topics' records."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.base import Model
from schemas.people import HumanDecision, HumanRequest
from streams.gateway.board import Board
from streams.runtime.ports import Fact, Record
from streams.runtime.wire import fact_record
from tests.streams.gateway.local import CONVERSATION, NOW, FixedClock, web


def record(topic: str, record_id: str, value: Model, conversation: str = CONVERSATION) -> Record:
    """A record as a reader gets it."""
    made = fact_record(Fact(topic, conversation, record_id, value), 0, NOW)
    return Record(topic, 0, 0, NOW, made.key, made.value, made.headers)


def request(name: str = "q-1", **changes: Any) -> Record:
    """A request on human.requests."""
    values = {
        "request_id": name,
        "session_id": "s",
        "kind": "review",
        "rule": "planning.review",
        "reason": "money",
        "requested_at": NOW,
        "expires_at": NOW + 600_000,
        "call_hash": "h",
        "tool": "create_refund",
        **changes,
    }
    return record("human.requests", name, HumanRequest(**values))


def decision(kind: Any, name: str | None = "q-1", by: str = "staff-1", call_hash: str | None = "h") -> Record:
    """A decision on human.decisions."""
    value = HumanDecision(decision_id=f"d-{kind}", kind=kind, by=by, decided_at=NOW, request_id=name,
                          call_hash=call_hash)  # fmt: skip
    return record("human.decisions", value.decision_id, value)


def shown(*records: Record, later_ms: int = 0) -> list[str]:
    """What is open after these records."""
    clock = FixedClock()
    board = Board(clock)
    for one in records:
        board.apply(one)
    clock.now += later_ms
    return [one["request_id"] for one in board.open()]


def test_a_review_is_open_until_it_is_decided() -> None:
    """Approval or refusal takes it off the board (R-003-18)."""
    assert ["q-1"] == shown(request())
    assert [] == shown(request(), decision("approve"))
    assert [] == shown(request(), decision("refuse"))
    assert ["q-1"] == shown(request(), decision("approve", "q-2"))


def test_a_decision_read_before_its_request_counts() -> None:
    """Two topics have no common order: what was decided is never shown as open."""
    assert [] == shown(decision("approve"), request())


@pytest.mark.parametrize("call_hash", [None, "another call's"])
def test_an_approval_of_another_call_leaves_the_review_open(call_hash: str | None) -> None:
    """An approval is bound to one call: with another hash nothing was decided, and people still see it (R-003-18)."""
    wrong = decision("approve", call_hash=call_hash)
    assert ["q-1"] == shown(request(), wrong)
    assert ["q-1"] == shown(wrong, request())
    assert [] == shown(request(), decision("refuse", call_hash=call_hash))


def test_a_takeover_ends_the_reviews_of_its_conversation() -> None:
    """Who has the conversation decides in it: what was asked before it is not asked any more, in either order (X9)."""
    taken = decision("takeover", None)
    assert [] == shown(request(), taken)
    assert [] == shown(taken, request())
    assert ["q-1"] == shown(taken, request(requested_at=NOW + 1))


def test_an_expired_review_is_not_shown() -> None:
    """After its expiry nobody is asked any more."""
    assert ["q-1"] == shown(request(), later_ms=599_999)
    assert [] == shown(request(), later_ms=600_000)


def test_a_handover_stays_until_the_release() -> None:
    """Taken over, it shows by whom; released, it goes."""
    asked = request(kind="handover", expires_at=None, call_hash=None, tool=None)
    board = Board(FixedClock())
    board.apply(asked)
    board.apply(decision("takeover", None))

    assert ["staff-1"] == [one["taken_by"] for one in board.open()]
    assert [] == shown(asked, decision("takeover", None), decision("release", None))


def test_requests_come_oldest_first_and_once() -> None:
    """A record read twice is one request."""
    assert ["q-0", "q-1"] == shown(request(), request("q-0", requested_at=NOW - 1), request())


def test_what_can_not_be_read_is_left_to_the_dead_letters() -> None:
    """A broken record on the topic does not stop the board."""
    broken = Record("human.requests", 0, 0, NOW, CONVERSATION.encode(), b"{", request().headers)
    keyless = Record("human.requests", 0, 1, NOW, b"\xff", b"{}", ())

    assert ["q-1"] == shown(broken, keyless, request())


async def test_the_api_shows_what_is_open() -> None:
    """GET /v1/requests gives conversation, hash and masked arguments: what an approver needs."""
    async with web() as w:
        w.gateway.board.apply(request(args={"amount_fen": 5000}))
        (found,) = (await w.client.get("/v1/requests")).json()["requests"]

        assert (CONVERSATION, "h", {"amount_fen": 5000}) == (found["conversation"], found["call_hash"], found["args"])


def test_a_review_that_was_taken_back_leaves_at_once() -> None:
    """Closed by planning, it is not shown until it expires; in either order of reading, and for good."""
    closed = request(status="closed")
    assert [] == shown(request(), closed)
    assert [] == shown(closed, request())


def test_the_first_who_takes_it_keeps_it() -> None:
    """A second takeover does not replace the first on the board (X9)."""
    board = Board(FixedClock())
    handover = request(kind="handover", expires_at=None, call_hash=None, tool=None)
    for one in (handover, decision("takeover", by="staff-1"), decision("takeover", by="staff-2")):
        board.apply(one)

    assert "staff-1" == board.open()[0]["taken_by"]


def test_asked_again_it_stays_in_its_place() -> None:
    """A hand-over that nobody took says how often it was asked, and waits since the first time."""
    board = Board(FixedClock())
    for asked in (1, 2):
        board.apply(request(kind="handover", expires_at=None, asked=asked))

    assert [(2, NOW)] == [(one["asked"], one["requested_at"]) for one in board.open()]
