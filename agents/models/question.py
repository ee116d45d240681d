"""A kind of question to a model: how its form is enforced, read and asked for again, and what its outcome is called.

Server, deadline, re-ask and record are the same for all of them (streams/effects/model.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents.models.form import FUNCTION, function_schema, read_form
from agents.models.prompt import AGAIN
from schemas.base import Model
from schemas.tools import MODEL


@dataclass(frozen=True, slots=True)
class Question:
    """`read` raises BrokenFormError; `request` has one %s, for the fault of the form before (R-000-09)."""

    tool: str
    function: str
    schema: Callable[[], dict[str, Any]]
    read: Callable[[str], Model]
    request: str

    def again(self, raw: str, fault: str) -> list[dict[str, Any]]:
        """What is added when the form is asked for once more."""
        return [{"role": "assistant", "content": raw}, {"role": "user", "content": self.request % fault}]


READING = Question(MODEL, FUNCTION, function_schema, read_form, AGAIN)
