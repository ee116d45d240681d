"""Reading and writing what is known: each write names what was there before it; state and register agree."""

from __future__ import annotations

import re
from typing import Any, Literal

from agents.remembering.port import Value
from schemas.memory import MemoryRestore, MemoryWrite
from schemas.step import Draft, same

TOPIC = "memory.writes"
# Each is a thing of its own and never said again: beyond so many the state forgets the oldest, the stores do not.
ONCE, ONCE_MOST = ("complaint", "promise", "problem"), 24
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-")

_NOTHING_BEHIND: Value = {"before": None, "prior": None, "before_said": None}

Source = Literal["assistant", "task_summary", "customer", "staff"]


class Book:
    """The memory of one conversation, in one decision."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        found = _TRACEPARENT.match(draft.cause.trace)
        self.trace = found[1] if found else draft.cause.id
        self.session: str = (draft.get("session") or {}).get("id") or "none"

    def entry(self, key: str) -> Value | None:
        """What is known under `kind/subject`, with its write; None when the state never heard of it."""
        found: Value | None = self.draft.get("memory", "known", key)
        return found

    def value(self, key: str) -> Value | None:
        """The value alone."""
        entry = self.entry(key)
        return entry["value"] if entry else None

    def before(self, key: str, message_id: str) -> Value | None:
        """What a preference is laid over: an edit is laid over what stood before the message that it replaces."""
        entry = self.entry(key)
        if entry is None:
            return None
        found: Value | None = entry["before"] if entry["message_id"] == message_id else entry["value"]
        return found

    def write(self, key: str, value: Value | None, source: Source, why: str, *, message_id: str | None = None) -> bool:
        """One write, unless it says what is known anyway (R-004-08)."""
        entry = self.entry(key)
        before = entry["value"] if entry else None
        if same(before, value):
            return False
        # Said again by the same message (an edit, a later reading): behind it stands what stood before the message.
        again = entry is not None and message_id is not None and entry["message_id"] == message_id
        behind = _behind(entry) if again else _as_behind(entry)
        write_id = self._emit(key, before, value, source, why)
        self._know(key, {"value": value, "write_id": write_id, "message_id": message_id, **behind})
        return True

    def take_back(self, key: str, source: Source, why: str) -> None:
        """What stood before the key's last message stands again."""
        entry = self.entry(key)
        if entry is None:
            return
        write_id = self._emit(key, entry["value"], entry["before"], source, why, undoes=(entry["write_id"],),
                              restores=entry["prior"])  # fmt: skip
        # it is its own message's again, which may be taken back in turn
        self._know(key, {"value": entry["before"], "write_id": write_id, "message_id": entry.get("before_said"),
                         **_NOTHING_BEHIND})  # fmt: skip

    def unsay_behind(self, message_id: str, why: str) -> None:
        """What the message said before another said otherwise never stands again."""
        known: dict[str, Any] = self.draft.get("memory", "known", default={})
        for key, entry in list(known.items()):
            if entry.get("before_said") == message_id:
                self.draft.set({**entry, **_NOTHING_BEHIND}, "memory", "known", key)
                self.draft.reason("memory.unsaid", f"{key}: {why}", message_id)

    def set_by_staff(self, wanted: MemoryRestore, why: str) -> str | None:
        """Set a key, or set it back, as a member of staff asked (R-004-11); why not, if it can't be."""
        conversation, kind, subject = wanted.key.rsplit("/", 2)
        key, entry = f"{kind}/{subject}", self.entry(f"{kind}/{subject}")
        if conversation != self.draft.conversation:
            return f"{wanted.key} is another customer's"
        if entry is not None and entry["write_id"] != wanted.head:
            return f"{key} was written again since, by {entry['write_id']}"
        before = entry["value"] if entry else wanted.now
        if same(before, wanted.value):
            return f"{key} has that value already"
        write_id = self._emit(key, before, wanted.value, "staff", why, undoes=wanted.undoes, restores=wanted.restores)
        self._know(key, {"value": wanted.value, "write_id": write_id, "message_id": None, "before": before,
                         "prior": wanted.head, "before_said": entry["message_id"] if entry else None})  # fmt: skip
        return None

    def _emit(self, key: str, before: Value | None, after: Value | None, source: Source, why: str, *,
              undoes: tuple[str, ...] = (), restores: str | None = None) -> str:  # fmt: skip
        draft = self.draft
        write_id = draft.new_id("w")
        draft.emit(TOPIC, MemoryWrite(
            write_id=write_id, trace_id=self.trace, session_id=self.session, key=f"{draft.conversation}/{key}",
            value_before=before, value_after=after, source=source, trigger_context=why, timestamp=draft.now,
            undoes=undoes, restores=restores,
        ))  # fmt: skip
        shown = "nothing" if after is None else str(after.get("summary", ""))
        draft.reason("memory.write", f"{key}: {shown} ({source}; {why})", write_id)
        return write_id

    def _know(self, key: str, entry: dict[str, Any]) -> None:
        self.draft.set({**entry, "at": self.draft.now}, "memory", "known", key)
        known: dict[str, Any] = self.draft.get("memory", "known")
        once = sorted((one["at"], name) for name, one in known.items() if name.partition("/")[0] in ONCE)
        for _, oldest in once[: max(0, len(once) - ONCE_MOST)]:
            self.draft.delete("memory", "known", oldest)


def _behind(entry: Value | None) -> Value:
    """What stands behind an entry: the value, its write, and the message that said so."""
    return {name: (entry or {}).get(name) for name in _NOTHING_BEHIND}


def _as_behind(entry: Value | None) -> Value:
    """The entry itself, as what will stand behind the next."""
    if entry is None:
        return _NOTHING_BEHIND
    return {"before": entry["value"], "prior": entry["write_id"], "before_said": entry["message_id"]}
