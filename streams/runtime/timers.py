"""Deadlines: one fires only when everything appended before it was handled (promise 6)."""

from __future__ import annotations

import asyncio
import hashlib
import heapq
from collections.abc import Callable, Mapping

from schemas.step import State
from schemas.system import TimerFired
from streams.runtime.crashpoints import crash
from streams.runtime.ports import Clock, Fact, OffsetsPort

SKEW_MS = 1_000  # the local clock must have passed a deadline by this before the broker is asked
POLL_S = 0.02  # how often the barrier looks whether the lanes have caught up
ASLEEP = ""  # no deadline's name
SKEWED_S = 1.0  # how often it looks again while the clocks disagree


class Timers:
    """The deadlines of one partition. `handled(topic)` is the offset below which all is handled."""

    def __init__(
        self,
        partition: int,
        clock: Clock,
        offsets: OffsetsPort,
        read: Callable[[str], State | None],
        handled: Callable[[], Mapping[str, int]],
        publish: Callable[[Fact], None],
        skewed: Callable[[], bool],
        measure: Callable[[], None],
    ) -> None:
        self._partition = partition
        self._clock = clock
        self._offsets = offsets
        self._read = read
        self._handled = handled
        self._publish = publish
        self._skewed = skewed
        self._measure = measure
        # (due, conversation, name, version that set it); a cancelled one stays until it is due and is then left out,
        # as looking for it in the heap would cost more than keeping it
        self._heap: list[tuple[int, str, str, int]] = []
        # published and not decided yet: it must not fire again meanwhile; the decision takes it out
        self._fired: set[tuple[str, str, int]] = set()
        self._changed = asyncio.Event()

    def committed(self, before: State, after: State) -> None:
        """Take over the deadlines that a committed decision set, and forget those it ended."""
        old, new = before["timers"], after["timers"]
        if old is new:
            return
        conversation = after["conversation"]
        for name, timer in new.items():
            if old.get(name) is not timer:
                heapq.heappush(self._heap, (timer["due"], conversation, name, timer["set_by"]))
                self._changed.set()
        for name, timer in old.items():
            if new.get(name) is not timer:
                self._fired.discard((conversation, name, timer["set_by"]))

    def recovered(self, state: State) -> None:
        """Deadlines of a loaded state."""
        for name, timer in state["timers"].items():
            heapq.heappush(self._heap, (timer["due"], state["conversation"], name, timer["set_by"]))

    def asleep(self, conversation: str, due: int) -> None:
        """A loaded state whose earliest deadline is at `due`: nothing of it is looked at before."""
        heapq.heappush(self._heap, (due, conversation, ASLEEP, 0))

    @property
    def next_due(self) -> int | None:
        """The earliest deadline in UTC milliseconds, if there is one (perhaps a cancelled one)."""
        return self._heap[0][0] if self._heap else None

    async def run(self) -> None:
        """For ever: wait for deadlines, pass the barrier, publish."""
        while True:
            await self._wait()
            due = self._due()
            # late is better than wrong: nothing fires while the clocks disagree on what time it is
            if due and self._skewed():
                self._put_back(due)
                self._measure()  # nobody else may come by and show that a clock was set right
                await asyncio.sleep(SKEWED_S)
            if not due or self._skewed():
                continue
            # asked after the deadline has passed: all that was appended before it lies below these ends
            ends = await self._offsets.ends(self._partition)
            # a paused topic holds up all deadlines of the partition: what it keeps may be what cancels them
            while not self._passed(ends):  # noqa: ASYNC110 (the lanes know nothing of barriers)
                await asyncio.sleep(POLL_S)
            for entry in due:
                self._fire(*entry)

    async def _wait(self) -> None:
        """Until the earliest deadline has passed by the skew, or an earlier one may have come."""
        due, self._changed = self.next_due, asyncio.Event()
        seconds = None if due is None else max(0.0, (due + SKEW_MS - self._clock.now_ms()) / 1000)
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return

    def _due(self) -> list[tuple[int, str, str, int]]:
        latest = self._clock.now_ms() - SKEW_MS
        due = []
        while self._heap and self._heap[0][0] <= latest:
            entry = heapq.heappop(self._heap)
            if entry[2] != ASLEEP:
                due.append(entry)
            elif (state := self._read(entry[1])) is not None:
                self.recovered(state)  # what is due of it is taken in this very loop
        return [entry for entry in due if self._index(*entry) is not None]

    def _put_back(self, due: list[tuple[int, str, str, int]]) -> None:
        for entry in due:
            heapq.heappush(self._heap, entry)

    def _passed(self, ends: Mapping[str, int]) -> bool:
        handled = self._handled()
        return all(handled.get(topic, 0) >= end for topic, end in ends.items())

    def _index(self, _due: int, conversation: str, name: str, set_by: int) -> int | None:
        state = self._read(conversation)
        timer = None if state is None else state["timers"].get(name)
        if timer is None or timer["set_by"] != set_by or (conversation, name, set_by) in self._fired:
            return None
        if timer.get("stopped"):
            return None
        index: int = timer["index"]
        return index

    def _fire(self, due: int, conversation: str, name: str, set_by: int) -> None:
        index = self._index(due, conversation, name, set_by)
        # cancelled by a record that the barrier waited for: what the barrier is there for
        if index is None:
            return
        state = self._read(conversation)
        data = {} if state is None else state["timers"][name]["data"]
        digest = hashlib.sha256(conversation.encode()).hexdigest()[:12]
        timer_id = f"t-{digest}.{set_by}.{index}"
        self._fired.add((conversation, name, set_by))
        crash("timer.before")
        self._publish(
            Fact(
                "timers.fired",
                conversation,
                timer_id,
                TimerFired(timer_id=timer_id, name=name, due=due, set_by=set_by, data=data),
            )
        )
