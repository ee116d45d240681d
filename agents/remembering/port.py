"""The port of the memory writer (R-003-24): what of a turn is worth keeping. Rules first, a model may come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from schemas.messages import NormalizedMessage

Value = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Something that shall be known under `kind/subject`; `value` None: nothing any more.

    `likes` and `avoids` instead of a value: a preference, which is laid over what is known already.
    """

    kind: str
    subject: str
    rule: str
    value: Value | None = None
    likes: tuple[str, ...] = ()
    avoids: tuple[str, ...] = ()
    clears: bool = False

    @property
    def key(self) -> str:
        """`kind/subject`, as the state has it."""
        return f"{self.kind}/{self.subject}"


class Remembering(Protocol):
    """Finds in a customer's message what persists. Pure: the same message gives the same (promise 5)."""

    def __call__(self, message: NormalizedMessage) -> Sequence[Wanted]:
        """What to keep, at most one a key."""
        ...
