"""What a model may see beside the message: a window of the conversation, and the orders that it may be about."""

from __future__ import annotations

from dataclasses import dataclass

from agents.context import window_of
from agents.understanding import things
from agents.understanding.port import Reading, Wish
from memory.windows import Window
from schemas.messages import NormalizedMessage
from schemas.step import Draft

ORDERS = 10


@dataclass(frozen=True, slots=True)
class Sight:
    """All of it is masked, as the state keeps it; `asked` is what the agent waits for, empty for nothing."""

    window: Window
    orders: tuple[str, ...]
    asked: str


def sight(draft: Draft, message: NormalizedMessage, asked: str) -> Sight:
    """What is shown beside `message`: the same window that references were looked for in (R-000-27)."""
    reading = Reading((Wish(message.intent, message.confidence),))
    window = window_of(draft, reading, message.text, message.ref.message_id)
    shown = (thing for turn in reversed(window.kept) for said in turn.said for thing in said.things)
    named = (thing.name for thing in (*shown, *things.known(draft.state)) if thing.kind == "order")
    return Sight(window, tuple(dict.fromkeys(named))[:ORDERS], asked)
