"""Order: inputs of a conversation one at a time, in order; acknowledgements strictly in offset order (promise 3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from streams.runtime.ports import Record


class Watermark:
    """One topic partition: below `handled` everything is handled; gaps in the offsets are no records."""

    __slots__ = ("_done", "_open", "_position")

    def __init__(self, position: int) -> None:
        self._position = position
        # in offset order, so the lowest open record is at the head; `_done` has only what ended before its turn
        self._open: deque[int] = deque()
        self._done: set[int] = set()

    def offered(self, offset: int) -> bool:
        """A record was read. False when it was read before: it must not be queued again."""
        if offset < self._position:
            return False
        self._open.append(offset)
        self._position = offset + 1
        return True

    def progress(self, position: int) -> None:
        """The reader stands at `position`: there are no records between the last one and it."""
        self._position = max(self._position, position)

    def done(self, offset: int) -> None:
        """The record at `offset` is handled."""
        self._done.add(offset)
        while self._open and self._open[0] in self._done:
            self._done.remove(self._open.popleft())

    @property
    def handled(self) -> int:
        """The offset below which all is handled."""
        return self._open[0] if self._open else self._position


@dataclass(frozen=True, slots=True)
class PauseRequest(Record):
    """The runtime's own input of the system conversation: pause this record's topic."""


class Lanes:
    """The queues of one partition: one a conversation, its head ready when nothing of it is in flight."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Record]] = {}
        self._ready: deque[str] = deque()
        self._taken: dict[str, int] = {}  # heads that are decided now; they stay in their lane until `end`
        self.in_flight = 0

    def add(self, conversation: str, record: Record) -> None:
        """Queue a record behind what the conversation has."""
        self.in_flight += 1
        queue = self._queues.get(conversation)
        if queue is None:
            self._queues[conversation] = deque((record,))
            self._ready.append(conversation)
        else:
            queue.append(record)

    def take(self) -> Iterator[tuple[str, Record]]:
        """Heads to decide, oldest lane first. Each one taken must be ended with `end`."""
        # asked anew each time: a lane that becomes ready while the batch is decided is still in it
        while self._ready:
            conversation = self._ready.popleft()
            self._taken[conversation] = 1
            yield conversation, self._queues[conversation][0]

    def more(self, conversation: str) -> Record | None:
        """The next record behind those that are taken, to be decided on top of them in the same transaction."""
        taken, queue = self._taken[conversation], self._queues[conversation]
        if taken == len(queue):
            return None
        self._taken[conversation] += 1
        return queue[taken]

    def end(self, conversation: str) -> None:
        """A taken record of the conversation is handled; after the last of them the next one is ready."""
        queue = self._queues[conversation]
        # the head stays in its lane while it is decided, so the conversation counts as busy until here
        queue.popleft()
        self.in_flight -= 1
        self._taken[conversation] -= 1
        if self._taken[conversation]:
            return
        del self._taken[conversation]
        if queue:
            self._ready.append(conversation)
        else:
            del self._queues[conversation]

    def withdraw(self, topic: str) -> list[tuple[str, Record]]:
        """Take out all records of a topic, each lane in its order; heads that were taken stay until their `end`."""
        found: list[tuple[str, Record]] = []
        for conversation, queue in list(self._queues.items()):
            taken = [queue.popleft() for _ in range(self._taken.get(conversation, 0))]
            found.extend((conversation, record) for record in queue if record.topic == topic)
            left = deque([*taken, *(record for record in queue if record.topic != topic)])
            if left:
                self._queues[conversation] = left
            else:
                del self._queues[conversation]
        self._ready = deque(conversation for conversation in self._ready if conversation in self._queues)
        self.in_flight -= len(found)
        return found

    def __contains__(self, conversation: str) -> bool:
        return conversation in self._queues

    def __bool__(self) -> bool:
        return bool(self._ready)
