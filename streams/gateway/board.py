"""The open human requests, from human.requests and human.decisions: what people still have to answer."""

from __future__ import annotations

import logging
from typing import Any

from schemas.errors import BadRecordError
from schemas.people import HumanDecision, HumanRequest
from streams.runtime.ports import Clock, Record
from streams.runtime.wire import read

MAX_OPEN = 10_000
TOPICS = ("human.requests", "human.decisions")

log = logging.getLogger(__name__)


class Board:
    """Requests by id. A review leaves with its approval, refusal or expiry; a hand-over with its release."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[str, dict[str, Any]] = {}
        self._decided: dict[str, None] = {}  # a decision may be read before its request: two topics, two orders

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
        if request.request_id in self._decided or request.request_id in self._open:
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
            self._decided[decision.request_id] = None
            self._open.pop(decision.request_id, None)
            while len(self._decided) > MAX_OPEN:
                del self._decided[next(iter(self._decided))]
        for request_id, one in list(self._open.items()):
            if one["conversation"] == conversation and one["kind"] == "handover":
                if decision.kind == "takeover":
                    one["taken_by"] = decision.by
                elif decision.kind == "release":
                    del self._open[request_id]
