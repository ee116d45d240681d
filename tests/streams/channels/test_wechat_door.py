"""Who may push to the WeChat door, and what is refused before it is read."""

from __future__ import annotations

import dataclasses

import pytest

from streams.channels.port import Push, SecurityError, Taken
from streams.channels.wechat import MAX_BYTES
from streams.channels.wechat.account import WeChatSettings
from streams.channels.wechat.door import Doorkeeper
from streams.gateway.reading import RefusedError
from tests.streams.channels import wechat_side as side

TEXT = side.fields("text", Content="我要退款", MsgId="6500000000000000001")


def keeper(*, aes: bool = False) -> Doorkeeper:
    """A doorkeeper of one account."""
    return Doorkeeper(WeChatSettings.model_validate(side.options(aes=aes)))


def refused(push: Push, door: Doorkeeper | None = None, *, aes: bool = False) -> RefusedError:
    """The refusal of a push."""
    with pytest.raises(RefusedError) as caught:
        (door or keeper(aes=aes)).push(push)
    return caught.value


def said(taken: Taken) -> list[str]:
    """The texts of the messages."""
    return [event.body.text for event in taken.events if event.body.kind == "message"]


def test_handshake_echoes_to_who_knows_the_token() -> None:
    """The server check is answered with the echo, and only when it is signed."""
    good = Push(side.NOW, query=side.query(echostr="7823910"), path={"shop": side.SHOP})

    assert b"7823910" == keeper().handshake(good).reply.body
    with pytest.raises(SecurityError):
        keeper().handshake(dataclasses.replace(good, query={**good.query, "signature": "0" * 40}))


@pytest.mark.parametrize("aes", [False, True])
def test_a_push_is_read_in_both_modes(aes: bool) -> None:  # noqa: FBT001 (a parameter of the test)
    """What another implementation signed and encrypted is read to the letter, and answered with `success`."""
    taken = keeper(aes=aes).push(side.encrypted(TEXT) if aes else side.push(TEXT))

    assert ["我要退款"] == said(taken)
    assert b"success" == taken.reply.body


@pytest.mark.parametrize("change", [
    {"signature": "f" * 40}, {"signature": "Ümlaut"}, {"timestamp": str(side.SECOND + 1)}, {"nonce": "1"},
])  # fmt: skip
def test_a_wrong_signature_is_refused(change: dict[str, str]) -> None:
    """A signature that does not fit token, timestamp and nonce is 403, counted, and names its field."""
    good = side.push(TEXT)
    error = refused(dataclasses.replace(good, query={**good.query, **change}))

    assert (403, "signature", "signature") == (error.status, error.code, error.field)


@pytest.mark.parametrize("name", ["signature", "timestamp", "nonce"])
def test_a_query_without_a_part_is_refused(name: str) -> None:
    """A missing or overlong part of the query is 400 with its name."""
    good = side.push(TEXT)
    for value in ("", "1" * 300):
        error = refused(dataclasses.replace(good, query={**good.query, name: value}))
        assert (400, name) == (error.status, error.field)


@pytest.mark.parametrize("seconds", [-301, 301, -(10**9)])
def test_an_old_signature_is_refused(seconds: int) -> None:
    """A push whose signature is older than five minutes, or ahead of us by more, is a replay."""
    error = refused(side.push(TEXT, side.SECOND + seconds))

    assert (403, "replay", "timestamp") == (error.status, error.code, error.field)


def test_a_signature_is_good_for_one_body() -> None:
    """The same signed push again is taken, its ids make it one event; with another body it is refused (case B03)."""
    door = keeper()
    first, again = door.push(side.push(TEXT)), door.push(side.push(TEXT))

    assert first.events == again.events
    error = refused(side.push({**TEXT, "Content": "我要退两次"}), door)
    assert (403, "replay") == (error.status, error.code)


def test_a_signature_is_good_for_one_split_of_what_it_signs() -> None:
    """A zero moved from the nonce to the time fits the same signature, and is no second push (case B03)."""
    door, good = keeper(), side.push(TEXT, nonce="000")
    moved = {**good.query, "timestamp": f"0{side.SECOND}", "nonce": "00"}
    other = dataclasses.replace(side.push({**TEXT, "Content": "我要退两次"}), query=moved)

    assert ["我要退两次"] == said(keeper().push(other))
    door.push(good)
    assert "replay" == refused(other, door).code


def test_an_encrypted_account_takes_nothing_in_clear() -> None:
    """With an AES key, a plain push is refused, though its query is signed: that signature covers no body."""
    assert "downgrade" == refused(side.push(TEXT), aes=True).code


def test_an_encrypted_push_must_be_whole_and_for_us() -> None:
    """A changed text, another account's and another key's are refused."""
    good = side.encrypted(TEXT)
    changed = good.body.replace(b"<Encrypt><![CDATA[", b"<Encrypt><![CDATA[A", 1)

    assert "signature" == refused(dataclasses.replace(good, body=changed), aes=True).code
    assert "not_encrypted" == refused(side.encrypted(TEXT, app_id="wx-other"), aes=True).code
    assert "not_encrypted" == refused(side.encrypted(TEXT, key="B" * 43), aes=True).code


@pytest.mark.parametrize("sealed", ["", "AAAA", "!!", "QUJD" * 16, "QUJDREVGR0hJSktMTU5PUA=="])
def test_rubbish_under_a_right_signature_is_refused(sealed: str) -> None:
    """What is signed and no encrypted text ends in a refusal, never in another error."""
    claimed = side.signature(side.TOKEN, str(side.SECOND), "1320562132", sealed)
    push = Push(side.NOW, side.xml({"Encrypt": sealed}), side.query(msg_signature=claimed), {"shop": side.SHOP})

    assert refused(push, aes=True).code in {"not_encrypted", "downgrade"}


BOMB = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))


@pytest.mark.parametrize("head", [
    f'<!DOCTYPE xml [<!ENTITY e0 "ha">{BOMB}]>', '<!DOCTYPE xml [<!ENTITY e11 SYSTEM "file:///etc/hostname">]>',
    '<!DOCTYPE xml SYSTEM "http://127.0.0.1:1/x.dtd">', "<!DOCTYPE xml>",
    '<!DOCTYPE xml [<!ENTITY % e11 SYSTEM "file:///etc/hostname"> %e11;]>',
])  # fmt: skip
@pytest.mark.parametrize("aes", [False, True])
def test_b21_no_document_type_is_read(head: str, aes: bool) -> None:  # noqa: FBT001
    """Entity bombs, external entities and any other document type are refused, also when encrypted (case B21)."""
    body = head.encode() + side.xml(TEXT).replace("我要退款".encode(), b"]]>&e11;<![CDATA[")
    error = refused(side.encrypted(body) if aes else side.push(body), aes=aes)

    assert isinstance(error, SecurityError)
    assert (400, "entity") == (error.status, error.kind)


@pytest.mark.parametrize("cut", [0, 1, 20, -1, -6])
def test_a_body_that_was_cut_is_refused(cut: int) -> None:
    """Half a body is 400 and says so."""
    error = refused(side.push(side.xml(TEXT)[:cut]))

    assert (400, "not_xml", "body") == (error.status, error.code, error.field)


@pytest.mark.parametrize("body", [
    b"<a/>", b"<xml><MsgType>text</MsgType><MsgType>event</MsgType></xml>", b"<xml>" + b"<a/>" * 65 + b"</xml>",
    b'<?xml version="1.0" encoding="gbk"?><xml/>', b'<?xml version="1.0" encoding="nonsense"?><xml/>',
    b"\xff\xfe<xml/>",
    b"<xml>\0</xml>", b"<xml>" + b"<a>" * (MAX_BYTES // 3), b"<xml/>", b'{"xml": 1}',
])  # fmt: skip
def test_other_bodies_are_refused(body: bytes) -> None:
    """What is no flat <xml> of fields that are there once is a 4xx with a field's name."""
    error = refused(side.push(body))

    assert 400 <= error.status < 500
    assert error.field


def test_an_unknown_shop_is_refused() -> None:
    """A shop without an account is 404."""
    assert 404 == refused(dataclasses.replace(side.push(TEXT), path={"shop": "nobody"})).status
