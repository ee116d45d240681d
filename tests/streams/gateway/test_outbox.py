"""The outbox: one row a message, durable, in an order that streams can resume."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import orjson
import pytest

from memory.sealing import MemoryKeyStore
from streams.gateway.outbox import Outbox
from streams.privacy.search import Needles, in_files
from tests.streams.gateway.local import CONVERSATION, NOW, FixedClock, outbound


def ids(outbox: Outbox, after: int = 0) -> list[tuple[str, int]]:
    """Message ids and attempts after a place."""
    return [(one.message_id, one.attempt) for one in outbox.after(CONVERSATION, after)]


@pytest.fixture
def outbox() -> Outbox:
    """An outbox in memory."""
    return Outbox(None, FixedClock().now_ms)


async def test_messages_come_in_order_and_by_conversation(outbox: Outbox) -> None:
    """A conversation sees its own messages, in the order in which they were stored."""
    for number in (1, 2, 3):
        await outbox.put(CONVERSATION, outbound(message_id=f"o-{number}"))
    await outbox.put("acme/web/other", outbound(message_id="x"))

    assert [("o-1", 1), ("o-2", 1), ("o-3", 1)] == ids(outbox)
    second = outbox.after(CONVERSATION, 0)[1].seq
    assert [("o-3", 1)] == ids(outbox, second)
    assert 2 == len(outbox.after(CONVERSATION, 0, limit=2))


async def test_a_repeat_changes_nothing(outbox: Outbox) -> None:
    """The same attempt again, or an older one, keeps the row and its place (A13)."""
    first = await outbox.put(CONVERSATION, outbound(attempt=2))
    place = outbox.after(CONVERSATION, 0)[0].seq
    for attempt in (2, 1):
        again = await outbox.put(CONVERSATION, outbound(attempt=attempt, text="other"))
        assert (False, first.at) == (again.new, again.at)

    assert (place, 2) == (outbox.after(CONVERSATION, 0)[0].seq, outbox.after(CONVERSATION, 0)[0].attempt)


async def test_a_resend_moves_the_one_row_to_the_end(outbox: Outbox) -> None:
    """A higher attempt is shown again to who has read on, and stays one message (R-002-31, A13)."""
    await outbox.put(CONVERSATION, outbound(message_id="o-1"))
    await outbox.put(CONVERSATION, outbound(message_id="o-2"))
    read = outbox.after(CONVERSATION, 0)[-1].seq
    await outbox.put(CONVERSATION, outbound(message_id="o-1", attempt=2))

    assert [("o-2", 1), ("o-1", 2)] == ids(outbox)
    assert [("o-1", 2)] == ids(outbox, read)


async def test_one_id_in_two_conversations_is_two_messages(outbox: Outbox) -> None:
    """Message ids count inside a conversation (B01)."""
    await outbox.put(CONVERSATION, outbound())
    await outbox.put("acme/web/u-2", outbound())

    assert 2 == len(outbox)


async def test_it_survives_a_restart_and_places_never_come_back(tmp_path: Path) -> None:
    """A row is there after a restart; a place once given is never given again, so resuming never skips."""
    path = tmp_path / "outbox.sqlite"
    first = Outbox(path, FixedClock().now_ms)
    await first.put(CONVERSATION, outbound(message_id="o-1"))
    await first.put(CONVERSATION, outbound(message_id="o-1", attempt=2))
    last = first.after(CONVERSATION, 0)[0].seq
    first.prune(NOW + 1)
    first.close()
    second = Outbox(path, FixedClock().now_ms)
    await second.put(CONVERSATION, outbound(message_id="o-2"))

    assert [("o-2", 1)] == ids(second, last)
    second.close()


async def test_many_at_once_are_all_stored(outbox: Outbox) -> None:
    """Puts of one turn share a transaction; each is answered and each is there."""
    kept = await asyncio.gather(*(outbox.put(CONVERSATION, outbound(message_id=f"o-{n % 50}")) for n in range(100)))

    assert (50, 50) == (sum(one.new for one in kept), len(outbox))


async def test_a_watcher_hears_of_new_messages_only(outbox: Outbox) -> None:
    """News of the own conversation, not of repeats or of others; nothing is kept for who has left."""
    await outbox.put(CONVERSATION, outbound())
    news = outbox.watch(CONVERSATION)
    await outbox.put(CONVERSATION, outbound())
    await outbox.put("acme/web/u-2", outbound(message_id="o-2"))
    assert not news.is_set()
    await outbox.put(CONVERSATION, outbound(message_id="o-3"))
    assert news.is_set()
    outbox.unwatch(CONVERSATION, news)
    assert not outbox._news


async def test_old_messages_are_pruned(outbox: Outbox) -> None:
    """What is older than the retention goes."""
    await outbox.put(CONVERSATION, outbound())

    assert (0, 1) == (outbox.prune(NOW), len(outbox))
    assert (1, 0) == (outbox.prune(NOW + 1), len(outbox))


async def test_a_disk_that_fails_is_an_error_for_each(tmp_path: Path) -> None:
    """When it can't be written nobody is told that it was."""
    path = tmp_path / "outbox.sqlite"
    broken = Outbox(path, FixedClock().now_ms)
    broken._db.execute("pragma query_only = on")
    with pytest.raises(OSError, match="can't be written"):
        await broken.put(CONVERSATION, outbound())
    broken.close()


async def test_a_disk_that_fails_ends_no_pruning(tmp_path: Path) -> None:
    """Pruning is tried again the next hour, and says why it was not done; it raises nothing."""
    path = tmp_path / "outbox.sqlite"
    box = Outbox(path, FixedClock().now_ms)
    other = sqlite3.connect(path)
    other.execute("drop table outbox")
    other.close()
    assert 0 == box.prune(NOW)
    box.close()


async def test_a_row_is_sealed_whole(tmp_path: Path) -> None:
    """No word of a message stands in the file; the stream reads it; without its key nobody does (promise 9)."""
    keys, path = MemoryKeyStore(), tmp_path / "outbox.sqlite"
    box = Outbox(path, FixedClock().now_ms, keys)
    await box.put(CONVERSATION, outbound(text="goes to 742 Evergreen Terrace"))
    assert [] == list(in_files([tmp_path], Needles(["Evergreen"])))
    assert ["goes to 742 Evergreen Terrace"] == [
        orjson.loads(one.message)["text"] for one in box.after(CONVERSATION, 0)
    ]
    keys.destroy(CONVERSATION)
    assert [] == box.after(CONVERSATION, 0)
    box.close()
