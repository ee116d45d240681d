"""Windows: what of a conversation is looked at to understand a message (R-002-08 to R-002-11, R-003-23, X3).

Strong, weak and long range each have a trigger and a budget of tokens; the last five whole turns are only the
fallback. A window says which rule fired, what was kept and dropped, and the exact text that a model would see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from memory.cues import cites_past, deictic
from memory.embedding import NAME as EMBEDDING
from memory.embedding import Embed, embedded, nearest, similarity
from memory.summaries import summarise
from memory.tokens import NAME as COUNTER
from memory.tokens import count
from memory.turns import Said, Turn

Kind = Literal["strong", "weak", "long_range", "fallback"]
STRONG_TURNS, WEAK_TURNS, FALLBACK_TURNS = 3, 2, 5
RECALLED, RECALLED_TOKENS = 3, 200  # R-003-23
_SHORTEST = 6  # tokens of a line that says anything
_DATED = re.compile(
    r"[0-9]{1,2}[月:点][0-9]{0,2}|[0-9]{4}-[0-9]{2}|昨天|今天|明天|\b(?:today|yesterday|tomorrow)\b", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Budgets:
    """Tokens that each kind of window may take."""

    strong: int = 1_024
    weak: int = 512
    long_range: int = 2_048
    fallback: int = 2_048  # the documents give none: whole turns, but no more than the largest window

    def of(self, kind: Kind) -> int:
        """The budget of a kind."""
        return int(getattr(self, kind))


@dataclass(frozen=True, slots=True)
class Window:
    """What was chosen to be looked at, and why (R-000-27). `message` may be in clear; the rest is masked.

    `kept` holds whole turns, or of an older one the messages that matter; `dropped` the ids of all other messages;
    `text` is what a model would see, `tokens` what it costs at most; `ahead` is the number of the turn that begins,
    `earlier` that of the last turn of an earlier session, where whoever chose the window knows of sessions.
    """

    kind: Kind
    reason: str
    budget: int
    tokens: int
    message: str
    ahead: int
    kept: tuple[Turn, ...]
    dropped: tuple[str, ...]
    summaries: tuple[str, ...] = ()
    recalled: tuple[str, ...] = ()
    text: str = ""
    counted_by: str = COUNTER
    ordered_by: str = EMBEDDING
    earlier: int = 0

    @property
    def rule(self) -> str:
        """The rule that fired, as reasons name it."""
        return f"window.{self.kind}"

    def record(self) -> dict[str, Any]:
        """All of it as JSON, for the register (R-000-27)."""
        return {
            "rule": self.rule, "reason": self.reason, "budget": self.budget, "tokens": self.tokens,
            "kept": [one.message_id for turn in self.kept for one in turn.said], "dropped": list(self.dropped),
            "summaries": list(self.summaries), "recalled": list(self.recalled), "text": self.text,
            "counted_by": self.counted_by, "ordered_by": self.ordered_by,
        }  # fmt: skip


Recall = Callable[[str, int], Sequence[str]]
"""`(text, how many) -> summaries` from the stores; a pure step hands in what was gathered for it (promise 5)."""


@dataclass(frozen=True, slots=True)
class Chooser:
    """How windows are chosen: budgets, the vectors that order by similarity, and the counter of tokens."""

    budgets: Budgets = Budgets()
    embed: Embed = embedded
    ordered_by: str = EMBEDDING
    count: Callable[[str], int] = count
    counted_by: str = COUNTER
    compared: int = 64  # older messages that are embedded: those that share most n-grams with the message

    def choose(self, turns: Sequence[Turn], text: str, *, new_intent: bool, recall: Recall | None = None) -> Window:
        """The window for `text`, said after `turns` (oldest first)."""
        kind, reason = _rule(turns, text, new_intent=new_intent)
        packing = _Packing(self, self.budgets.of(kind), turns)
        recalled: tuple[str, ...] = ()
        if kind == "strong":
            packing.whole(turns[-STRONG_TURNS:])
            packing.singles(text, [one for one in _messages(turns[:-STRONG_TURNS]) if _lasting(one)])
        elif kind == "weak":
            packing.whole(turns[-WEAK_TURNS:])
        elif kind == "long_range":
            recalled = packing.facts(recall(text, RECALLED) if recall else ())
            packing.whole(turns[-1:])
            packing.singles(text, _messages(turns[:-1]))
        else:
            packing.whole(turns[-FALLBACK_TURNS:])
        if kind != "weak":
            packing.summarised()
        return packing.window(kind, reason, text, recalled)


def choose(turns: Sequence[Turn], text: str, *, new_intent: bool, recall: Recall | None = None) -> Window:
    """The window by the documents' budgets, the embedded vectors and the measured bound of tokens."""
    return _DEFAULT.choose(turns, text, new_intent=new_intent, recall=recall)


def _rule(turns: Sequence[Turn], text: str, *, new_intent: bool) -> tuple[Kind, str]:
    past = cites_past(text)
    if past is not None:
        return "long_range", f"cites the past: {past}"
    pointing = deictic(text)
    if pointing is not None and any(one.things for one in _messages(turns[-STRONG_TURNS:])):
        return "strong", f"points to something: {pointing}"
    if new_intent:
        return "weak", "a new intent"
    return "fallback", "no other rule fires"


def _messages(turns: Iterable[Turn]) -> list[Said]:
    return [one for turn in turns for one in turn.said]


def _lasting(one: Said) -> bool:
    """Orders, items and times are kept, however long ago they were said (R-002-08)."""
    return bool(one.things) or _DATED.search(one.text) is not None


def _line(one: Said) -> str:
    return f"{one.who}: {_one_line(one.text)}"


def _one_line(text: str) -> str:
    """A text with a new line in it must not look like two: the second might begin like the agent's."""
    return " ".join(text.split())


@dataclass(slots=True)
class _Packing:
    """A window in the making: what still fits goes in, most important first."""

    by: Chooser
    budget: int
    turns: Sequence[Turn]
    used: int = 0
    kept: dict[str, str] = field(default_factory=dict)
    summaries: list[str] = field(default_factory=list)

    def _takes(self, line: str) -> bool:
        cost = self.by.count(line) + 1  # the end of the line
        if self.used + cost > self.budget:
            return False
        self.used += cost
        return True

    def whole(self, turns: Sequence[Turn]) -> None:
        """Newest first; of a turn that is too long, its newest messages, the last of them cut rather than lost."""
        for turn in reversed(turns):
            for one in reversed(turn.said):
                line = _line(one) if self.kept else cut_to(_line(one), self.budget - self.used - 2, self.by.count)
                if not self._takes(line):
                    return
                self.kept[one.message_id] = line

    def singles(self, text: str, messages: Sequence[Said]) -> None:
        """The most similar first; of two alike the newer."""
        if self._all_fit(messages):  # then nothing need be ordered
            self.kept.update((one.message_id, _line(one)) for one in messages if self._takes(_line(one)))
            return
        looked_at = [messages[at] for at in nearest(text, [one.text for one in messages], self.by.compared)]
        asked, *vectors = self.by.embed([text, *(one.text for one in looked_at)])
        order = sorted(zip(looked_at, vectors, strict=True), key=lambda pair: similarity(asked, pair[1]), reverse=True)
        for one, _ in order:
            if self.used + _SHORTEST > self.budget:
                return
            if self._takes(_line(one)):
                self.kept[one.message_id] = _line(one)

    def _all_fit(self, messages: Sequence[Said]) -> bool:
        left = self.budget - self.used
        for one in messages:
            left -= self.by.count(_line(one)) + 1
            if left < 0:
                return False
        return True

    def facts(self, found: Sequence[str]) -> tuple[str, ...]:
        """What the stores gave: at most three, each cut to its share."""
        cut = [cut_to(_one_line(fact), RECALLED_TOKENS - 4, self.by.count) for fact in found[:RECALLED]]
        return tuple(fact for fact in cut if fact and self._takes(f"recalled: {fact}"))

    def summarised(self) -> None:
        """Of turns that are left out whole, their summaries, newest first, as far as the budget goes."""
        for turn in reversed(self.turns):
            if any(one.message_id in self.kept for one in turn.said):
                continue
            summary = _one_line(summarise(turn))
            if not self._takes(f"earlier: {summary}"):
                return
            self.summaries.insert(0, summary)

    def window(self, kind: Kind, reason: str, message: str, recalled: tuple[str, ...]) -> Window:
        """What is kept, in the order in which it was said."""
        kept = [Turn(turn.number, said, turn.intent) for turn in self.turns
                if (said := tuple(one for one in turn.said if one.message_id in self.kept))]  # fmt: skip
        lines = [*(f"recalled: {fact}" for fact in recalled), *(f"earlier: {one}" for one in self.summaries),
                 *(self.kept[one.message_id] for one in _messages(kept))]  # fmt: skip
        return Window(
            kind, reason, self.budget, self.used, message, self.turns[-1].number + 1 if self.turns else 1, tuple(kept),
            tuple(one.message_id for one in _messages(self.turns) if one.message_id not in self.kept),
            tuple(self.summaries), recalled, "\n".join(lines), self.by.counted_by, self.by.ordered_by,
        )  # fmt: skip


def cut_to(text: str, most: int, count: Callable[[str], int] = count) -> str:
    """The beginning of the text that costs at most `most` tokens."""
    if count(text) <= most:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle] + "…") <= most else (low, middle - 1)
    return text[:low].rstrip() + "…" if low else ""


_DEFAULT = Chooser()
