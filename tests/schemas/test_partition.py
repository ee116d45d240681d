"""Keys to partitions, against known answers and against Kafka's own Python driver."""

from __future__ import annotations

import pytest
from aiokafka.partitioner import DefaultPartitioner
from aiokafka.partitioner import murmur2 as driver_murmur2
from hypothesis import given
from hypothesis import strategies as st

from schemas.partition import murmur2, partition_of, place, system_conversation

# Signed 32-bit values of Java's murmur2 for keys that Kafka's own producer tests use, and one in Chinese.
KNOWN = {
    b"21": -973_932_308,
    b"foobar": -790_332_482,
    b"a-little-bit-long-string": -985_981_536,
    b"a-little-bit-longer-string": -1_486_304_829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58_897_971,
    "shop-1/web/顾客".encode(): -1_252_750_832,
}


@pytest.mark.parametrize(("key", "signed"), KNOWN.items())
def test_known_answers(key: bytes, signed: int) -> None:
    """The hash is Java's murmur2 with Kafka's seed (promise 1)."""
    assert signed % (1 << 32) == murmur2(key)


@given(st.binary(max_size=80), st.integers(1, 300))
def test_same_as_the_driver(key: bytes, count: int) -> None:
    """Any key goes where Kafka's default partitioner sends it (promise 1)."""
    assert driver_murmur2(key) % (1 << 32) == murmur2(key)
    assert DefaultPartitioner()(key, list(range(count)), list(range(count))) == partition_of(key, count)


def test_a_conversation_is_hashed() -> None:
    """A conversation's partition is that of its UTF-8 key."""
    assert partition_of("shop-1/web/顾客".encode(), 12) == place("shop-1/web/顾客", 12)


@pytest.mark.parametrize("partition", [0, 3, 11])
def test_a_system_conversation_names_its_partition(partition: int) -> None:
    """`~3` is on partition 3, wherever murmur2 would put it."""
    assert partition == place(system_conversation(partition), 12)


@pytest.mark.parametrize("name", ["~12", "~-1", "~", "~03", "~x", "~mark/3", "~３"])
def test_no_system_conversation(name: str) -> None:
    """What only looks like a system conversation is refused, with the range that there is."""
    with pytest.raises(ValueError, match="~0 to ~11"):
        place(name, 12)
