"""Lanes and watermarks."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from streams.runtime.lanes import Lanes, Watermark
from streams.runtime.ports import Record


def _record(offset: int) -> Record:
    return Record("channel.events", 0, offset, 0, b"k", b"v")


@pytest.mark.parametrize("order", list(itertools.permutations((10, 11, 13, 14))))
def test_acknowledged_is_what_lies_below_every_open_record(order: tuple[int, ...]) -> None:
    """However records end, the handled offset never passes one that is open; a gap (12) is no record (case C19)."""
    mark = Watermark(10)
    for offset in (10, 11, 13, 14):
        mark.offered(offset)

    left = {10, 11, 13, 14}
    for offset in order:
        mark.done(offset)
        left.discard(offset)
        assert (min(left) if left else 15) == mark.handled


def test_record_below_the_position_is_not_offered_again() -> None:
    """A record that was read before is refused, so that it can't be queued twice."""
    mark = Watermark(5)

    assert mark.offered(5)
    assert not mark.offered(5)
    assert not mark.offered(4)


def test_markers_at_the_end_count_as_handled() -> None:
    """A transaction marker has an offset and no record: the reader's position passes it (cases C15, D01)."""
    mark = Watermark(0)
    mark.offered(0)
    mark.progress(2)

    assert mark.handled == 0
    mark.done(0)
    assert mark.handled == 2


def test_lane_gives_one_record_at_a_time_in_order() -> None:
    """A conversation's second record is ready only when the first has ended; others go on (promise 1, case B25)."""
    lanes = Lanes()
    for conversation, offset in (("a", 0), ("a", 1), ("b", 2)):
        lanes.add(conversation, _record(offset))

    assert [("a", 0), ("b", 2)] == [(name, record.offset) for name, record in lanes.take()]
    assert [] == list(lanes.take())
    lanes.end("a")
    assert [("a", 1)] == [(name, record.offset) for name, record in lanes.take()]


def test_in_flight_counts_what_has_not_ended() -> None:
    """Backpressure sees every record from when it is added until it has ended."""
    lanes = Lanes()
    lanes.add("a", _record(0))
    lanes.add("a", _record(1))
    list(lanes.take())
    lanes.end("a")

    assert lanes.in_flight == 1
    assert lanes


def test_withdrawn_topic_leaves_in_order_and_taken_heads_stay() -> None:
    """A paused topic's records leave each lane in order; what is being decided, and other topics, stay (promise 3)."""
    lanes = Lanes()
    for conversation, offset in (("a", 0), ("a", 1), ("a", 2), ("b", 3)):
        lanes.add(conversation, _record(offset))
    lanes.add("a", replace(_record(0), topic="delivery.receipts"))
    assert ("a", 0) == next((name, record.offset) for name, record in lanes.take())

    assert [("a", 1), ("a", 2), ("b", 3)] == [(name, one.offset) for name, one in lanes.withdraw("channel.events")]
    assert (2, False, True, False) == (lanes.in_flight, bool(lanes), "a" in lanes, "b" in lanes)
    lanes.end("a")
    assert ["delivery.receipts"] == [record.topic for _, record in lanes.take()]


def test_several_records_of_a_lane_are_taken_together() -> None:
    """What is taken behind the head stays in the lane until all of it has ended; a withdrawal leaves it there."""
    lanes = Lanes()
    for offset in range(4):
        lanes.add("a", _record(offset))
    next(lanes.take())
    first = lanes.more("a")

    assert first is not None
    assert [2, 3] == [one.offset for _, one in lanes.withdraw("channel.events")]
    assert (1, None, 2) == (first.offset, lanes.more("a"), lanes.in_flight)
    lanes.add("a", _record(4))
    lanes.end("a")
    assert not lanes
    lanes.end("a")
    assert [4] == [record.offset for _, record in lanes.take()]
