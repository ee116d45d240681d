"""One conversation driven by real steps through the runtime's own `decide`, on a time that the test sets."""

from __future__ import annotations

from typing import Any

import orjson

from memory.bus import empty
from schemas.base import Model
from schemas.codec import decode
from schemas.step import Input, Step
from schemas.system import TimerFired
from schemas.topics import INPUT_TOPICS, TOPICS
from streams.runtime.decide import Decided, decide
from streams.runtime.table import Row

T0 = 1_767_578_400_000  # 2026-01-05 02:00:00 UTC, on a five-minute edge


def row(name: str, step: Step, *inputs: str) -> Row:
    """A row for a step under test."""
    return Row(name, inputs or INPUT_TOPICS, step, "none", "none", "none")


class Conversation:
    """State, log of emits, and the loop: emits that are inputs come back, deadlines fire when they are due."""

    def __init__(self, *rows: Row, conversation: str = "shop-1/web/li", session: str = "s-1") -> None:
        self.rows = rows
        self.id = conversation
        self.now = T0
        self.state: dict[str, Any] = empty(conversation)
        self.decided: list[Decided] = []
        self.emitted: list[tuple[str, Any]] = []
        self._offsets = 0
        self._ids = 0
        self.begin(session)

    def begin(self, session: str) -> None:
        """A session as perception opens it, now."""
        shop, channel, sender = self.id.split("/")
        number = (self.state["session"] or {"number": 0})["number"] + 1
        self.state = {**self.state, "session": {
            "id": session, "number": number, "shop": shop, "channel": channel, "sender": sender, "started": self.now,
            "last_customer_at": self.now,
        }}  # fmt: skip

    def put(self, topic: str, value: Model, at: int | None = None) -> Decided:
        """Decide one record, appended at `at`; what it emits to an input topic is decided next."""
        self.now = max(self.now, at or self.now)
        first = self._decide(topic, value)
        waiting = list(first.diff["emits"])
        while waiting:
            emit = waiting.pop(0)
            model = decode(emit["topic"], orjson.dumps(emit["data"]))
            self.emitted.append((emit["topic"], model))
            if any(emit["topic"] in row.inputs for row in self.rows):
                waiting += self._decide(emit["topic"], model).diff["emits"]
        return first

    def advance(self, until: int) -> None:
        """Let time pass: every deadline that is due by then fires, in order, at its time."""
        while True:
            due = sorted((timer["due"], name) for name, timer in self.state["timers"].items() if timer["due"] <= until)
            if not due:
                break
            when, name = due[0]
            timer = self.state["timers"][name]
            self._ids += 1
            fired = TimerFired(timer_id=f"t-{self._ids}", name=name, due=when, set_by=timer["set_by"])
            self.put("timers.fired", fired, when)
        self.now = max(self.now, until)

    def sent(self, topic: str) -> list[Any]:
        """Everything emitted to a topic, oldest first."""
        return [value for emitted, value in self.emitted if emitted == topic]

    def rules(self) -> list[str]:
        """The rules of all reasons given so far."""
        return [reason["rule"] for decided in self.decided for reason in decided.diff["reasons"]]

    def get(self, *path: str) -> Any:
        """The value at the path of the state."""
        value: Any = self.state
        for part in path:
            value = value[part]
        return value

    def _decide(self, topic: str, value: Model) -> Decided:
        self._offsets += 1
        cause = Input(topic, 3, self._offsets, self.now, self.id, f"r-{self._offsets}", TOPICS[topic].type, value)
        decided = decide([row for row in self.rows if topic in row.inputs], self.state, cause)
        self.state = decided.after
        self.decided.append(decided)
        return decided
