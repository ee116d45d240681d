"""Rubbish around the value: headers, types, keys, Kafka nulls, ids that came before."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.partition import partition_of, system_conversation
from schemas.topics import TOPICS
from tests.fuzz.cases import Case, Expect, Maker
from tests.fuzz.values import Kind

REQUIRED = ("ce_specversion", "ce_id", "ce_source", "ce_type")


def kafka_null(maker: Maker, partition: int) -> Case:
    """No value at all: acknowledged and recorded, no dead letter."""
    return maker.valid(partition).but("kafka_null", Expect.NULL, value=None)


def unknown_version(maker: Maker, partition: int) -> Case:
    """A version of the topic that nobody has published."""
    kind = maker.topic.type.rpartition(".")[0]
    version = maker.rng.choice((b".v0", b".v2", b".v99", b".v-1", b".v1.0", b"", b".V1"))
    case = maker.valid(partition)
    return case.dead("unknown_version", "unknown_version", headers=case.header("ce_type", kind.encode() + version))


def unknown_type(maker: Maker, partition: int) -> Case:
    """Another topic's type, or nobody's."""
    others = [topic.type for topic in TOPICS.values() if topic.type != maker.topic.type]
    case = maker.valid(partition)
    kind = maker.rng.choice([*others, "com.example.thing", "退款"])
    return case.dead("unknown_type", "unknown_version", headers=case.header("ce_type", kind.encode()))


def missing_header(maker: Maker, partition: int) -> Case:
    """A required header is not there, empty, or null; or there is none at all."""
    case, name = maker.valid(partition), maker.rng.choice(REQUIRED)
    headers = maker.rng.choice((case.without(name), case.header(name, b""), case.header(name, None), ()))
    return case.dead("missing_header", "missing_header", headers=headers)


def two_headers(maker: Maker, partition: int) -> Case:
    """An attribute twice, with two values."""
    case, name = maker.valid(partition), maker.rng.choice((*REQUIRED, "ce_time", "content-type"))
    return case.dead("two_headers", "wrong_header", headers=(*case.headers, (name, b"1970-01-01T00:00:00Z")))


def garbled_header(maker: Maker, partition: int) -> Case:
    """Attributes that are not as CloudEvents asks."""
    name, value = maker.rng.choice((
        ("ce_specversion", b"0.3"), ("ce_specversion", b"1.0\n"), ("ce_time", b"yesterday"), ("ce_time", b"1767578"),
        ("ce_id", b"a\x00b"), ("ce_id", b"i" * 513), ("ce_source", b"\x1b[31m"), ("ce_subject", b"s" * 100_000),
        ("ce_dataschema", b"interlock:x:1.minus"), ("ce_dataschema", b"interlock:"), ("ce_position", b""),
        ("ce_position", b"a/b/c|-1|0"), ("ce_position", b"|1|0"), ("ce_position", b"a/b/c|1|99999999999999999999"),
        ("ce_previous", b"1"), ("ce_previous", b"1|2|3"), ("content-type", b"application/cloudevents+json"),
        ("ce_custom", b"\x07"),
    ))  # fmt: skip
    case = maker.valid(partition)
    return case.dead("garbled_header", "wrong_header", headers=case.header(name, value))


def binary_header(maker: Maker, partition: int) -> Case:
    """A header value that is not UTF-8."""
    case, name = maker.valid(partition), maker.rng.choice((*REQUIRED, "ce_extra", "content-type", "traceparent"))
    value = maker.rng.choice((b"\xff", b"\xed\xa0\x80", "退".encode("gb18030"), maker.rng.randbytes(40) + b"\xff"))
    return case.dead("binary_header", "wrong_header", headers=case.header(name, value))


def foreign_headers(maker: Maker, partition: int) -> Case:
    """Other tools' headers are theirs, whatever is in them; an attribute twice with one value is one."""
    case = maker.valid(partition)
    extra = (("x-trace", b"\xff\xfe"), ("", b"1"), ("名", None), ("b3", maker.rng.randbytes(300)), case.headers[0])
    return case.but("foreign_headers", Expect.HANDLED, headers=(*case.headers, *extra))


def newer_minor(maker: Maker, partition: int) -> Case:
    """A record of a newer minor version, with a field that this reader does not know: it is handled."""
    case = maker.valid(partition, lambda value: value.update({"later_field": {"a": [1, 2]}}))
    schema = f"interlock:{maker.name}:1.7".encode()
    return case.but("newer_minor", Expect.HANDLED, headers=case.header("ce_dataschema", schema))


def no_key(maker: Maker, partition: int) -> Case:
    """A valid record without a key."""
    return maker.valid(partition).dead("no_key", "bad_key", key=None)


_LONG = f"{'s' * 64}/{'c' * 64}/{'u' * 70}"
_SHAPES = ("a{}//c", "/b{}/c", "a/b{}/", "//{}", _LONG + "{}", "a{}/" + "b" * 3_000 + "/c")
_KEYS = (
    b"", b"\xff\xfe", b"\xed\xa0\x80/a/b", b"plain", b"a/b", b"a/b/c/d", b"a/\x00/c", b"a/b\n/c", b"~9/a/b", b"~",
    b"~x", b"~-1", "a/\N{RIGHT-TO-LEFT OVERRIDE}/c".encode(), b"k" * 4_000, b"\x80" * 3,
)  # fmt: skip


def bad_key(maker: Maker, partition: int) -> Case:
    """A valid record whose key is no conversation's, half of them on the very partition of that key."""
    key = maker.rng.choice(_KEYS)
    if maker.rng.random() < 0.5:
        shape = maker.rng.choice(_SHAPES)
        tries = (shape.format(number).encode() for number in range(10_000))
        key = next(one for one in tries if partition_of(one, maker.partitions) == partition)
    return maker.valid(partition).dead("bad_key", "bad_key", key=key)


def other_partition(maker: Maker, partition: int) -> Case:
    """A record on a partition that is not its key's."""
    other = (partition + 1) % maker.partitions
    case = maker.valid(partition)
    key = maker.key(other).encode() if maker.name != "system.events" else system_conversation(other).encode()
    return case.dead("other_partition", "bad_key", key=key)


def system_key(maker: Maker, partition: int) -> Case:
    """A customer's record on the partition's own conversation, which is not anybody's."""
    case = maker.valid(partition)
    if maker.name in ("system.events", "timers.fired"):
        return case
    return case.dead("system_key", "bad_key", key=system_conversation(partition).encode())


KINDS: Mapping[str, Kind] = {
    kind.__name__: kind
    for kind in (
        kafka_null, unknown_version, unknown_type, missing_header, two_headers, garbled_header, binary_header,
        foreign_headers, newer_minor, no_key, bad_key, other_partition, system_key,
    )
}  # fmt: skip
