"""The open human requests, from human.requests and human.decisions: what people still have to answer."""

from __future__ import annotations

import logging
from typing import Any, TypeVar

from schemas.errors import BadRecordError
from schemas.people import HumanDecision, HumanRequest
from streams.runtime.ports import Clock, Record
from streams.runtime.wire import read

MAX_OPEN = 10_000
TOPICS = ("human.requests", "human.decisions")
REFUSED = "refused"  # in place of a hash: whatever the call was
K = TypeVar("K")
V = TypeVar("V")

log = logging.getLogger(__name__)


class Board:
    """Requests by id. A hand-over leaves with its release; a review when it expires, is refused or approved.

    A review that is taken back leaves, too. A takeover ends the conversation's reviews. An approval that carries
    another call's hash ends none (R-003-18).
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[str, dict[str, Any]] = {}
        # a decision may be read before its request: two topics, two orders
        self._decided: dict[tuple[str, str], None] = {}  # request and approved hash; REFUSED: any
        self._taken: dict[str, int] = {}  # conversation, and when it was taken over

    def apply(self, record: Record) -> None:
        """Take in one record of either topic; one that can't be read is left to the dead letters."""
        try:
            conversation = (record.key or b"").decode()
            value = read(record, conversation).value
        except (BadRecordError, UnicodeDecodeError) as error:
            log.warning("%s-%s@%s is not shown: %s", record.topic, record.partition, record.offset, error)
            return
        if isinstance(value, HumanRequest):
            self._asked(conversation, value)
        elif isinstance(value, HumanDecision):
            self._answered(conversation, value)

    def open(self) -> list[dict[str, Any]]:
        """What waits for a person, oldest first."""
        now = self._clock.now_ms()
        waiting = [one for one in self._open.values() if one["expires_at"] is None or one["expires_at"] > now]
        return sorted(waiting, key=lambda one: (one["requested_at"], one["request_id"]))

    def _asked(self, conversation: str, request: HumanRequest) -> None:
        known = self._open.get(request.request_id)
        if request.status == "closed":  # taken back: also one that is read after its end is not shown
            self._judged(request.request_id, REFUSED)
            return
        if known is not None and request.asked > known["asked"]:  # nobody took it: it says so, in its old place
            self._open[request.request_id] = {**known, **request.model_dump(mode="json")}
            return
        hashes = (REFUSED, request.call_hash or "")
        if known is not None or any((request.request_id, one) in self._decided for one in hashes):
            return
        if request.kind == "review" and request.requested_at <= self._taken.get(conversation, -1):
            return
        self._open[request.request_id] = {
            "conversation": conversation, "taken_by": None, **request.model_dump(mode="json"),
        }  # fmt: skip
        if len(self._open) > MAX_OPEN:
            oldest = next(iter(self._open))
            log.error("more than %d open requests: %s is not shown any more", MAX_OPEN, oldest)
            del self._open[oldest]

    def _answered(self, conversation: str, decision: HumanDecision) -> None:
        if decision.kind in {"approve", "refuse"} and decision.request_id is not None:
            self._judged(decision.request_id, REFUSED if decision.kind == "refuse" else decision.call_hash or "")
        elif decision.kind == "takeover":
            _put(self._taken, conversation, decision.decided_at)
        for request_id, one in list(self._open.items()):
            if one["conversation"] != conversation:
                continue
            if decision.kind == "takeover" and one["kind"] == "handover":
                one["taken_by"] = one["taken_by"] or decision.by  # the first keeps it, as planning has it
            elif (decision.kind, one["kind"]) in {("takeover", "review"), ("release", "handover")}:
                del self._open[request_id]

    def _judged(self, request_id: str, call_hash: str) -> None:
        _put(self._decided, (request_id, call_hash), None)
        one = self._open.get(request_id)
        if one is not None and call_hash in (REFUSED, one["call_hash"]):
            del self._open[request_id]


def _put(known: dict[K, V], key: K, value: V) -> None:
    """The newest MAX_OPEN are enough: what is older has expired."""
    known[key] = value
    while len(known) > MAX_OPEN:
        del known[next(iter(known))]
