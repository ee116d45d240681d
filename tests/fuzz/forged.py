"""Forged records: positions of a conversation that never emitted, ids that came before, seals that were altered."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence

import orjson

from memory.sealing import KeyStore, seal
from schemas.events import Seal
from tests.fuzz.cases import Case, Expect, Maker

Story = Sequence[Case]  # records of one conversation that must stay in this order


def positions(maker: Maker, partition: int) -> Story:
    """Emits that nobody made: handled in their order, else dropped and counted; unreadable ones likewise."""
    source = f"{maker.fresh()}/web/x"
    first = maker.valid(partition)

    def emit(version: int, index: int, previous: tuple[int, int], *, readable: bool = True) -> Case:
        case = maker.valid(partition)
        value = case.value if readable else b"\xff{"
        place = (("ce_position", f"{source}|{version}|{index}".encode()),
                 ("ce_previous", f"{previous[0]}|{previous[1]}".encode()))  # fmt: skip
        return case.but("position", Expect.HANDLED, key=first.key, value=value, headers=(*case.headers, *place))

    return [
        emit(5, 0, (0, 0)),
        emit(5, 0, (0, 0)).but("position_again", Expect.REPEATED),
        emit(4, 7, (0, 0)).but("position_below", Expect.REPEATED),
        emit(9, 0, (7, 0)).but("position_ahead", Expect.AHEAD),
        emit(3, 0, (0, 0), readable=False).but("position_below_unreadable", Expect.REPEATED),
        emit(6, 0, (5, 0), readable=False).dead("position_unreadable", "not_utf8", "not_json"),
        emit(6, 1, (6, 0)),
        emit(10**18 - 1, 10**18 - 1, (6, 1)),
    ]


def same_id(maker: Maker, partition: int) -> Story:
    """A producer's id twice, with another value: the second is a duplicate by name."""
    first, second = maker.valid(partition), maker.valid(partition)
    again = second.but("same_id", Expect.DUPLICATE, key=first.key, headers=second.header("ce_id", _id(first)))
    return [first, again]


def _id(case: Case) -> bytes:
    return dict(case.headers)["ce_id"] or b""


Sealed = Callable[[KeyStore, str], Seal]


def _altered(keys: KeyStore, owner: str) -> Seal:
    good = seal(keys, owner, b'{"kind": "message", "message_id": "m", "text": "138"}')
    body = bytearray(base64.b64decode(good.sealed))
    body[len(body) // 2] ^= 1
    return good.model_copy(update={"sealed": base64.b64encode(body).decode()})


def _not_base64(keys: KeyStore, owner: str) -> Seal:
    return seal(keys, owner, b"{}").model_copy(update={"nonce": "***"})


def _others(keys: KeyStore, owner: str) -> Seal:
    return seal(keys, f"{owner}-other", b"{}")


def _no_json(keys: KeyStore, owner: str) -> Seal:
    return seal(keys, owner, b"\xff not json")


def _no_body(keys: KeyStore, owner: str) -> Seal:
    return seal(keys, owner, b'[{"text": 5}]')


def _odd_body(keys: KeyStore, owner: str) -> Seal:
    return seal(keys, owner, b'{"text": 5, "attachments": [7]}')


_BAD_SEALS: tuple[Sealed, ...] = (_altered, _not_base64, _others, _no_json, _no_body, _odd_body)


def sealed(maker: Maker, partition: int, keys: KeyStore) -> Story:
    """Events whose seal is of a key that we have and can't be opened, or holds something else than a body."""
    if maker.name != "channel.events":
        return [maker.valid(partition)]
    case = maker.valid(partition)
    value = orjson.loads(case.value or b"")
    if value["body"]["kind"] not in ("message", "edit"):
        value["body"] = {"kind": "message", "message_id": maker.fresh(), "text": "hello", "attachments": []}
    made = maker.rng.choice(_BAD_SEALS)
    value["seal"] = made(keys, (case.key or b"").decode()).model_dump(mode="json")
    gone = {**value, "seal": {"key_id": "k-destroyed", "nonce": "AAAA", "sealed": "AAAA"}, "id": maker.fresh()}
    return [
        case.dead("sealed", "bad_seal", value=orjson.dumps(value)),
        maker.valid(partition).but("key_gone", Expect.HANDLED, key=case.key, value=orjson.dumps(gone)),
    ]
