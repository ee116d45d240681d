"""Sessions: when a stretch of a conversation begins, and the id that it has."""

from __future__ import annotations

from uuid import UUID

from schemas.sections import SessionState
from schemas.step import Draft, Input


def hold_session(draft: Draft, cause: Input, at: int, gap_ms: int) -> str:
    """The id of the session that a customer message at `at` belongs to; a new one after `gap_ms` of silence.

    The silence counts from the last customer message, not from the start (cases J11, J13).
    """
    session = draft.get("session")
    if session is not None and at - session["last_customer_at"] < gap_ms:
        # A late event must not turn the clock back: silence counts from the latest word.
        draft.set(max(at, session["last_customer_at"]), "session", "last_customer_at")
        return str(session["id"])
    return open_session(draft, cause, at)


def open_session(draft: Draft, cause: Input, at: int) -> str:
    """A new session: its id is a UUIDv7 of the append time, so that a replay can seek to it."""
    # By the key and not by the event: one that was forwarded was written by another sender (R-003-05).
    shop, channel, sender = draft.conversation.split("/", 2)
    before = draft.get("session")
    session = SessionState(
        id=_uuid7(cause.time, draft.new_id("s")), number=before["number"] + 1 if before else 1, shop=shop,
        channel=channel, sender=sender, started=cause.time, last_customer_at=at,
    )  # fmt: skip
    draft.set(session.model_dump(mode="json"), "session")
    draft.reason("perception.session", "first message" if before is None else "the customer was silent for long",
                 session.id)  # fmt: skip
    return session.id


def _uuid7(millis: int, derived: str) -> str:
    """RFC 9562: 48 bits of time, then version, variant and 74 bits, here of a derived id and not random (promise 5)."""
    bits = int(derived.rpartition("-")[2], 16)
    value = (millis << 80) | (0x7 << 76) | ((bits >> 62 & 0xFFF) << 64) | (0b10 << 62) | (bits & ((1 << 62) - 1))
    return str(UUID(int=value))
