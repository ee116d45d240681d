"""Which partition a key goes to: Java's murmur2, as Kafka's own producers have it (promise 1)."""

from __future__ import annotations

import struct
from functools import lru_cache

_MASK = 0xFFFF_FFFF
_SEED = 0x9747_B28C
_MULTIPLIER = 0x5BD1_E995


def murmur2(key: bytes) -> int:
    """MurmurHash2, 32 bits, unsigned, with the seed of Kafka's Java producer."""
    length = len(key)
    words = length >> 2
    value = _SEED ^ length
    for word in struct.unpack_from(f"<{words}I", key):
        mixed = word * _MULTIPLIER & _MASK
        value = (value * _MULTIPLIER & _MASK) ^ ((mixed ^ mixed >> 24) * _MULTIPLIER & _MASK)
    if tail := key[words * 4 :]:
        value = (value ^ int.from_bytes(tail, "little")) * _MULTIPLIER & _MASK
    value = (value ^ value >> 13) * _MULTIPLIER & _MASK
    return value ^ value >> 15


@lru_cache(maxsize=16_384)
def partition_of(key: bytes, count: int) -> int:
    """The partition of `key` among `count`, equal to Kafka's default for Java producers."""
    return (murmur2(key) & 0x7FFF_FFFF) % count


def system_conversation(partition: int) -> str:
    """The conversation of a partition itself: dead letters without a usable key, window closings, counts."""
    return f"~{partition}"


def place(conversation: str, count: int) -> int:
    """The partition of any conversation: a system conversation says it itself, others are hashed.

    Raises ValueError for a system conversation that is no partition of `count`.
    """
    if not conversation.startswith("~"):
        return partition_of(conversation.encode(), count)
    number = conversation[1:]
    if not (number.isascii() and number.isdigit()) or int(number) >= count or number != str(int(number)):
        message = f"{conversation!r} is no system conversation of {count} partitions; they are ~0 to ~{count - 1}"
        raise ValueError(message)
    return int(number)
