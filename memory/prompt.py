"""The budget of a prompt (R-003-23): system 1,200 tokens, profile 800, recalled facts three of 200, then the window.

What was cut is told, so that the record shows what a model did not see (R-000-27).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory.tokens import count
from memory.windows import RECALLED, RECALLED_TOKENS, Window, cut_to

SYSTEM_TOKENS, PROFILE_TOKENS = 1_200, 800


class PromptError(ValueError):
    """The system message is above its budget. It holds the rules: it is shortened by its author, never cut."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is sent: the parts as they are, the tokens of each at most, and which were shortened."""

    system: str
    profile: str
    recalled: tuple[str, ...]
    window: str
    tokens: dict[str, int]
    shortened: tuple[str, ...]


def assemble(
    system: str, profile: str, recalled: Sequence[str], window: Window, counted: Callable[[str], int] = count
) -> Prompt:
    """The parts within their budgets, no fact beyond the third. Raises PromptError for a system message above its."""
    if counted(system) > SYSTEM_TOKENS:
        message = f"system message: {counted(system)} tokens, at most {SYSTEM_TOKENS}; shorten it"
        raise PromptError(message)
    kept_profile = cut_to(profile, PROFILE_TOKENS, counted)
    facts = tuple(cut_to(fact, RECALLED_TOKENS, counted) for fact in recalled[:RECALLED])
    shortened = [*(["profile"] if kept_profile != profile else []),
                 *(["recalled"] if facts != tuple(recalled) else [])]  # fmt: skip
    tokens = {"system": counted(system), "profile": counted(kept_profile), "recalled": sum(map(counted, facts)),
              "window": window.tokens}  # fmt: skip
    return Prompt(system, kept_profile, facts, window.text, tokens, tuple(shortened))
