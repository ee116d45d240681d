"""Presence: a client that beats and then falls silent is held to be gone, and nobody has to say so (R-002-37)."""

from __future__ import annotations

from streams.delivery.step import PRESENCE
from tests.streams.conversation import T0
from tests.streams.delivery.chat import Chat


def online(chat: Chat) -> tuple[bool, int]:
    """Whether the customer is there, and when they were seen last, ms after T0."""
    return chat.get("actions", "online"), chat.get("actions", "last_online") - T0


def test_a_connection_drops_thirty_seconds_after_its_last_beat() -> None:
    """29,999 ms after the last beat the client is there, at 30,000 it is not; when it was seen stays (R-002-37)."""
    chat = Chat()
    for at in (0, 10_000, 20_000):
        chat.customer(at, "heartbeat")
    chat.advance(T0 + 49_999)
    assert (True, 20_000) == online(chat)
    chat.advance(T0 + 50_000)
    assert (False, 20_000) == online(chat)
    assert "delivery.dropped" == chat.decided[-1].diff["reasons"][-1]["rule"]


def test_whatever_the_client_does_keeps_it_there() -> None:
    """A message or a receipt counts like a beat; a beat after the drop brings the customer back (R-002-37)."""
    chat = Chat()
    chat.customer(0, "heartbeat")
    chat.customer(25_000)
    chat.advance(T0 + 54_000)
    assert online(chat)[0]
    chat.advance(T0 + 60_000)
    assert not online(chat)[0]
    chat.customer(70_000, "heartbeat")
    assert (True, 70_000) == online(chat)


def test_a_channel_without_beats_is_not_judged() -> None:
    """A customer whose client never beats is not taken for gone: nothing is known of them (R-002-37)."""
    chat = Chat()
    chat.customer(0)
    chat.advance(T0 + 3_600_000)
    assert online(chat)[0]
    assert PRESENCE not in chat.get("timers")


def test_beats_do_not_set_the_deadline_anew() -> None:
    """One deadline runs, and a beat changes the time of the last one only: diffs stay small."""
    chat = Chat()
    chat.customer(0, "heartbeat")
    chat.customer(10_000, "heartbeat")
    changed = {change["path"] for change in chat.decided[-1].diff["changes"]}
    assert {"/actions/last_online"} == {path for path in changed if path.startswith(("/actions", "/timers"))}


def test_a_farewell_ends_the_deadline() -> None:
    """Offline that was said is offline, last seen by the beat before, and nothing is left to fire."""
    chat = Chat()
    chat.customer(0, "heartbeat")
    chat.customer(5_000, "offline")
    assert (False, 0) == online(chat)
    assert PRESENCE not in chat.get("timers")
