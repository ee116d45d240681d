"""Rubbish values: bytes that are no JSON, JSON that two readers read in two ways, and JSON of another shape."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from tests.fuzz.cases import Case, Expect, Maker

MIB = 1024 * 1024
Kind = Callable[[Maker, int], Case]
Path = tuple[str | int, ...]


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every scalar of a JSON value with its path."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from leaves(part, (*path, name))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from leaves(part, (*path, number))
    else:
        yield path, value


def put(value: Any, path: Path, leaf: Any) -> None:
    """Set the leaf at a path, in place."""
    for part in path[:-1]:
        value = value[part]
    value[path[-1]] = leaf


def spliced(maker: Maker, partition: int, wanted: type, text: bytes) -> Case:
    """A valid record whose value has raw JSON text in the place of one leaf of a type (or of any, if it has none)."""
    case = maker.valid(partition)
    value = orjson.loads(case.value or b"")
    found = [path for path, leaf in leaves(value) if type(leaf) is wanted] or [path for path, _ in leaves(value)]
    put(value, maker.rng.choice(found), "@@HERE@@")
    return case.but("spliced", Expect.EITHER, value=orjson.dumps(value).replace(b'"@@HERE@@"', text, 1))


def random_bytes(maker: Maker, partition: int) -> Case:
    """Bytes of any value, also none at all."""
    rng = maker.rng
    return maker.valid(partition).dead("random_bytes", value=rng.randbytes(rng.choice((0, 1, 7, 64, 500, 5_000))))


def cut_json(maker: Maker, partition: int) -> Case:
    """A valid value that ends too early."""
    case = maker.valid(partition)
    value = case.value or b""
    return case.dead("cut_json", "not_json", "not_utf8", value=value[: maker.rng.randrange(len(value))])


def wrong_types(maker: Maker, partition: int) -> Case:
    """Scalars, lists and empty objects, or a list where an id must be."""
    case = maker.valid(partition)
    value = maker.rng.choice((b"1", b'"text"', b"true", b"[]", b"{}", b"[{}]", b"1.5", b'{"id":[]}'))
    if maker.rng.random() < 0.5:
        plain = orjson.loads(case.value or b"")
        plain[next(iter(plain))] = maker.rng.choice(([], [1], True, 1.5, {}))
        value = orjson.dumps(plain)
    return case.dead("wrong_types", value=value)


def repeated_key(maker: Maker, partition: int) -> Case:
    """The first key twice, with the same or another value."""
    case = maker.valid(partition)
    value = orjson.loads(case.value or b"")
    name = next(iter(value))
    twin = maker.rng.choice((value[name], "other"))
    head = orjson.dumps({name: twin})[:-1] + b","
    return case.dead("repeated_key", "repeated_key", value=head + (case.value or b"")[1:])


def json_null(maker: Maker, partition: int) -> Case:
    """JSON's null, which is no Kafka null."""
    return maker.valid(partition).dead("json_null", value=maker.rng.choice((b"null", b" null\n")))


def deep(maker: Maker, partition: int) -> Case:
    """Nested deeper than the topic takes, up to where parsers end."""
    case = maker.valid(partition)
    depth = maker.rng.choice((65, 70, 200, 1_100, 20_000))
    text = maker.rng.choice((b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth, b"[" * depth))
    if maker.rng.random() < 0.5:
        text = (case.value or b"")[:-1] + b',"deep":' + text + b"}"
    return case.dead("deep", value=text)


def not_a_number(maker: Maker, partition: int) -> Case:
    """NaN, Infinity and numbers beyond a double."""
    text = maker.rng.choice((b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"nan", b"1e400000"))
    return spliced(maker, partition, int, text).dead("not_a_number")


def huge_int(maker: Maker, partition: int) -> Case:
    """Integers beyond 64 bits, up to thousands of digits."""
    digits = maker.rng.choice((21, 40, 41, 400, 5_000, 20_000))
    text = maker.rng.choice((b"", b"-")) + b"9" * digits
    return spliced(maker, partition, int, text).dead("huge_int")


def two_mib(maker: Maker, partition: int) -> Case:
    """More bytes than the topic takes: noise, padded JSON, one endless text."""
    case = maker.valid(partition)
    value = maker.rng.choice((
        maker.rng.randbytes(2 * MIB),
        (case.value or b"")[:-1] + b" " * (2 * MIB) + b"}",
        orjson.dumps({"text": "退款" * (MIB // 3)}),
    ))  # fmt: skip
    return case.dead("two_mib", "too_large", value=value)


def surrogate(maker: Maker, partition: int) -> Case:
    """Half of a surrogate pair, escaped or as bytes, in a text or a key."""
    rng = maker.rng
    half = rng.choice((rb"\ud800", rb"\udc00", rb"\udfff\ud800", b"\xed\xa0\x80", b"\xed\xbf\xbf"))
    if rng.random() < 0.3:
        case = maker.valid(partition)
        return case.dead("surrogate", "not_utf8", value=b'{"' + half + b'":1,' + (case.value or b"")[1:])
    return spliced(maker, partition, str, b'"a' + half + b'b"').dead("surrogate", "not_utf8")


def not_utf8(maker: Maker, partition: int) -> Case:
    """Bytes of other encodings inside a text."""
    others = ("退款".encode("gb18030"), "é".encode("latin-1"), b"\xff\xfe", b"\xc0\x80", b"\xf5\x80\x80\x80")
    text = maker.rng.choice(others)
    return spliced(maker, partition, str, b'"' + text + b'"').dead("not_utf8", "not_utf8", "not_json")


def unknown_field(maker: Maker, partition: int) -> Case:
    """A field that the version does not have."""
    name = maker.rng.choice(("extra", "Id", "__proto__", "constructor", "", "字段", "a" * 300))
    return maker.valid(partition, lambda value: value.update({name: 1})).dead("unknown_field", "unknown_field")


def missing_field(maker: Maker, partition: int) -> Case:
    """A required field is not there."""
    first = next(iter(maker.data(maker.key(partition))))
    return maker.valid(partition, lambda value: value.pop(first)).dead("missing_field", "missing_field")


def whitespace(maker: Maker, partition: int) -> Case:
    """Valid JSON that is not canonical: spaces, escapes, another order. It must be handled."""
    case = maker.valid(partition)
    value = orjson.loads(case.value or b"")
    items = list(value.items())
    maker.rng.shuffle(items)
    text = orjson.dumps(dict(items), option=orjson.OPT_INDENT_2).decode()
    escaped = "".join(char if ord(char) < 128 else f"\\u{ord(char):04x}" for char in text if ord(char) < 0x10000)
    return case.but("whitespace", Expect.HANDLED, value=b" \n\t" + escaped.encode() + b"\r\n")


def mutated(maker: Maker, partition: int) -> Case:
    """A valid value with flipped bits, or a field dropped, swapped, or filled with something else."""
    case = maker.valid(partition)
    change = maker.rng.choice((_flip, _flip, _drop, _swap, _fill, _fill, _fill))
    return case.but("mutated", Expect.EITHER, value=change(maker.rng, case.value or b""))


def _flip(rng: random.Random, value: bytes) -> bytes:
    changed = bytearray(value)
    for _ in range(rng.choice((1, 1, 2, 8))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _drop(rng: random.Random, value: bytes) -> bytes:
    plain = orjson.loads(value)
    place = rng.choice([plain, *(part for part in plain.values() if isinstance(part, dict) and part)])
    del place[rng.choice(list(place))]
    return orjson.dumps(plain)


def _swap(rng: random.Random, value: bytes) -> bytes:
    plain = orjson.loads(value)
    one, other = rng.sample(list(plain), 2)
    plain[one], plain[other] = plain[other], plain[one]
    return orjson.dumps(plain)


_FILL: tuple[Any, ...] = (
    "", " ", "\0", "\x7f", "\u202e", "\u200b", "a" * 300, "中" * 20_001, "1" * 20_000, "a@" * 5_000, "-1" * 9_000,
    "x/y", "~0", "../..", "'; drop table orders; --", 0, -1, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1,
    -(2**63), 0.1, 1e308, -0.0, 5e-324, 1.0, True, False, None, [], {}, [None], {"": None}, {"a/b~c": 1}, [[[]]],
    1_767_578_400, 253_402_300_799_999, ["read"] * 30, {"kind": "message"},
)  # fmt: skip


def _fill(rng: random.Random, value: bytes) -> bytes:
    plain = orjson.loads(value)
    found = [path for path, _ in leaves(plain)] + [(name,) for name in plain]
    for _ in range(rng.choice((1, 1, 2))):
        path = rng.choice(found)
        try:
            put(plain, path, rng.choice(_FILL))
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    return orjson.dumps(plain)


KINDS: Mapping[str, Kind] = {
    kind.__name__: kind
    for kind in (
        random_bytes, cut_json, wrong_types, repeated_key, json_null, deep, not_a_number, huge_int, surrogate, not_utf8,
        unknown_field, missing_field, whitespace, mutated, mutated, mutated,
    )
}  # fmt: skip
