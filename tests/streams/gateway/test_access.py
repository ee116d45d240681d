"""Producer keys: what needs one, what a browser may do without, exchange while it runs, and nothing that shows one."""

from __future__ import annotations

import hashlib
import hmac
import logging
from pathlib import Path
from typing import Any

import pytest

from streams.gateway import access
from streams.gateway.access import (
    Access,
    ExposedError,
    KeyFileError,
    KeyRefusedError,
    bearer,
    check_exposure,
    read_keys,
)
from tests.streams.gateway.keys import DESK, HOLDERS, ORDERS, WORKER, key_file
from tests.streams.gateway.local import CONVERSATION, NOW, event, outbound, web

LINK = {"kind": "identity_link", "root": "acme/app/u-2", "proof": "login"}
UNKNOWN = "nobody-" + "x" * 40
CLOUD = {"specversion": "1.0", "id": "A-1", "source": "/crm", "type": "t", "subject": CONVERSATION,
         "data": {"kind": "heartbeat"}}  # fmt: skip
STRUCTURED = {"content-type": "application/cloudevents+json"}
BATCHED = {"content-type": "application/cloudevents-batch+json"}
BINARY = {f"ce-{name}": value for name, value in CLOUD.items() if isinstance(value, str)}
RECEIPT = {"conversation": CONVERSATION, "receipt_id": "r-1", "message_id": "o-1", "state": "read"}
DECISION = {"conversation": CONVERSATION, "kind": "takeover", "by": "li"}
SENT = {"conversation": CONVERSATION, **outbound().model_dump(mode="json")}
PRIVILEGED = {
    "a link": ("/v1/events", event(body=LINK), {}, ORDERS),
    "what has no words": ("/v1/events", event(body={"kind": "unsupported", "type": "x"}), {}, ORDERS),
    "a list of customers": ("/v1/events", [event(), event(sender="u-2")], {}, ORDERS),
    "a channel with an adapter": ("/v1/events", event(channel="wechat"), {}, ORDERS),
    "a link in a batch": ("/v1/batch", {"events": [event(), event(id="c-2", body=LINK)]}, {}, ORDERS),
    "a batch of customers": ("/v1/batch", [event(), event(sender="u-2")], {}, ORDERS),
    "a batch of a channel": ("/v1/batch", [event(channel="voice")], {}, ORDERS),
    "a structured CloudEvent": ("/v1/cloudevents", CLOUD, STRUCTURED, ORDERS),
    "a binary CloudEvent": ("/v1/cloudevents", CLOUD["data"], BINARY, ORDERS),
    "CloudEvents": ("/v1/cloudevents", [CLOUD], BATCHED, ORDERS),
    "a vendor's receipt": ("/v1/receipts", RECEIPT, {}, ORDERS),
    "a client's of a channel that sends itself": (
        "/v1/receipts", {**RECEIPT, "conversation": "acme/wechat/u-1", "source": "client"}, {}, ORDERS),
    "our own receipt": ("/v1/receipts", {**RECEIPT, "source": "sender"}, {}, ORDERS),
    "a takeover": ("/v1/decisions", DECISION, {}, DESK),
    "a message of ours": ("/v1/outbox", SENT, {}, WORKER),
}  # fmt: skip
ANYWHERE = "0.0.0.0"  # noqa: S104 (this is what is refused)
TOPICS = ("channel.events", "delivery.receipts", "human.decisions")


@pytest.mark.parametrize("name", PRIVILEGED)
async def test_what_a_browser_does_not_do_needs_a_key(name: str, tmp_path: Path) -> None:
    """No key or an unknown one is 401, one without the right 403, and nothing is written; the right one is taken."""
    path, body, headers, key = PRIVILEGED[name]
    other = DESK if key != DESK else ORDERS
    async with web(producer_key_file=key_file(tmp_path)) as w:
        refused = [await w.post(path, body, **headers, **bearer(one)) for one in ("", UNKNOWN, other)]
        written = [record for topic in TOPICS for record in w.broker.log.records(topic)]
        counted = w.metrics.value("interlock_security_refusals_total", "key")
        taken = await w.post(path, body, **headers, **bearer(key))

        assert [401, 401, 403] == [one.status_code for one in refused]
        assert ["key_missing", "key_unknown", "key_may_not"] == [one.json()["error"]["code"] for one in refused]
        assert ("Bearer", "authorization") == (
            refused[0].headers["www-authenticate"], refused[0].json()["error"]["field"])  # fmt: skip
        assert ([], 0, 3) == (written, len(w.gateway.outbox) - (key == WORKER), counted)
        assert 202 == taken.status_code


async def test_open_requests_are_shown_to_who_may_decide(tmp_path: Path) -> None:
    """The board holds customers' words and the hashes that an approval needs: it wants the same key as a decision."""
    async with web(producer_key_file=key_file(tmp_path)) as w:
        answers = [await w.client.get("/v1/requests", headers=bearer(key)) for key in ("", ORDERS, DESK)]

        assert [401, 403, 200] == [one.status_code for one in answers]


@pytest.mark.parametrize("body", [
    {"kind": "message", "message_id": "m", "text": "hello"}, {"kind": "recall", "message_id": "m"},
    {"kind": "edit", "message_id": "m", "text": "new"}, {"kind": "heartbeat"},
    {"kind": "presence", "status": "online"}, {"kind": "rating", "thumb": "up"},
])  # fmt: skip
@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer of-the-pages-own-login"}])
async def test_a_browser_needs_no_key(body: dict[str, Any], headers: dict[str, str], tmp_path: Path) -> None:
    """What its customer does, one by one and as a queue, and what it saw, is taken; another's token does not matter."""
    async with web(producer_key_file=key_file(tmp_path)) as w:
        one = await w.post("/v1/events", event(body=body), **headers)
        queue = await w.post("/v1/batch", [event(id=f"c-{n}", occurred_at=NOW, body=body) for n in range(3)], **headers)
        seen = await w.post("/v1/receipts", {**RECEIPT, "source": "client"}, **headers)

        assert [202, 202, 202] == [one.status_code, queue.status_code, seen.status_code]


async def test_without_a_file_nothing_needs_a_key() -> None:
    """As on a machine of one's own: every path is open, and a key that is shown does no harm."""
    async with web() as w:
        answers = [await w.post(path, body, **headers, **bearer(UNKNOWN))
                   for path, body, headers, _ in PRIVILEGED.values()]  # fmt: skip

        assert {202} == {one.status_code for one in answers}


@pytest.mark.parametrize(("origin", "status"), [
    ("http://localhost:8080", 202), ("http://127.0.0.1", 202), ("http://[::1]:3000", 202),
    ("https://evil.example", 403), ("http://localhost.evil.example:8080", 403), ("http://127.0.0.1.evil.example", 403),
    ("null", 403), ("", 403),
    ("http://localhost:8080@evil.example", 403), ("http://192.0.2.7:8080", 403),
])  # fmt: skip
async def test_without_a_file_no_page_of_the_web_is_let_in(origin: str, status: int) -> None:
    """A site that somebody on this machine looks at can post to loopback; of what needs a key elsewhere, nothing."""
    async with web() as w:
        answers = [await w.post(path, body, **headers, origin=origin)
                   for path, body, headers, _ in PRIVILEGED.values()]  # fmt: skip
        customer = await w.post("/v1/events", event(), origin=origin)

        assert {status} == {one.status_code for one in answers}
        assert 202 == customer.status_code
        assert (status == 403) == (w.metrics.value("interlock_security_refusals_total", "key") == len(answers))


async def test_a_key_of_many_rights_and_the_schemes_case(tmp_path: Path) -> None:
    """A holder may have several rights; `bearer` is the same as `Bearer`, and another scheme is no key."""
    holders = {"all": {"keys": [ORDERS], "may": ["publish", "decide", "deliver"]}}
    async with web(producer_key_file=key_file(tmp_path, holders)) as w:
        told = [await w.post("/v1/decisions", DECISION, authorization=f"{scheme} {ORDERS}")
                for scheme in ("bearer", "BEARER", "Basic")]  # fmt: skip
        sent = await w.post("/v1/outbox", SENT, **bearer(ORDERS))

        assert [202, 202, 401, 202] == [one.status_code for one in (*told, sent)]


async def test_keys_are_exchanged_while_it_runs(tmp_path: Path) -> None:
    """Old and new are good side by side; once the old one is out of the file it is refused, without a restart."""
    new, states = "orders-" + "n" * 40, []
    file = key_file(tmp_path)
    async with web(producer_key_file=file) as w:
        for keys in ([ORDERS], [new, ORDERS], [new]):
            key_file(tmp_path, {"orders": {"keys": keys, "may": ["publish"]}})
            states.append([(await w.post("/v1/events", event(body=LINK), **bearer(key))).status_code
                           for key in (ORDERS, new)])  # fmt: skip

        assert [[202, 401], [202, 202], [401, 202]] == states


@pytest.mark.parametrize("broken", [b"{", b"[]", b'{"orders": 1}', None])
def test_a_broken_exchange_leaves_the_keys(
    broken: bytes | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that can't be used any more, or is gone, changes nothing and is said once, without a key."""
    judge = Access(key_file(tmp_path))
    if broken is None:
        (tmp_path / "keys.json").unlink()
    else:
        key_file(tmp_path, broken)
    for _ in range(3):
        judge.need(bearer(ORDERS), "publish", "x")

    (line,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert "INTERLOCK_PRODUCER_KEY_FILE" in line.getMessage()
    assert ORDERS not in caplog.text


MISTAKES: dict[str, tuple[Any, str]] = {
    "no JSON": (b"orders=" + ORDERS.encode(), "not JSON"),
    "a list": ([ORDERS], "a name for each holder"),
    "nobody": ({}, "a name for each holder"),
    "a bare key": ({"orders": ORDERS}, "orders: expected"),
    "the wrong way round": ({ORDERS: "orders"}, "name in place 1"),
    "twice": (f'{{"{ORDERS}": 1, "{ORDERS}": 2}}'.encode(), "a name is there twice"),
    "a key as a field": ({"orders": {"keys": [ORDERS], "may": ["publish"], ORDERS: 1}}, "orders: expected"),
    "too short": ({"orders": {"keys": [ORDERS[:31]], "may": ["publish"]}}, "orders.keys.0"),
    "with a space": ({"orders": {"keys": [f"{ORDERS} "], "may": ["publish"]}}, "orders.keys.0"),
    "none": ({"orders": {"keys": [], "may": ["publish"]}}, "orders.keys"),
    "no right": ({"orders": {"keys": [ORDERS], "may": []}}, "orders.may"),
    "an unknown right": ({"orders": {"keys": [ORDERS], "may": [ORDERS]}}, "orders.may.0"),
    "shared": ({**HOLDERS, "else": {"keys": [ORDERS], "may": ["decide"]}}, "orders and else have the same key"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_file_that_is_wrong_is_named_without_a_key(name: str, tmp_path: Path) -> None:
    """The error says the setting, the file, the holder and the field, and never a key, wherever one was written."""
    holders, words = MISTAKES[name]
    with pytest.raises(KeyFileError, match="INTERLOCK_PRODUCER_KEY_FILE") as caught:
        Access(key_file(tmp_path, holders))

    assert words in str(caught.value)
    assert ORDERS[:20] not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Keys that were asked for and are missing are no open door."""
    with pytest.raises(KeyFileError, match="No such file"):
        Access(tmp_path / "none.json")


def test_every_key_is_compared_in_constant_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shown key's hash is compared with each held one by `hmac.compare_digest`, also after a match."""
    compared: list[tuple[bytes, bytes]] = []

    def noted(a: bytes, b: bytes) -> bool:
        compared.append((a, b))
        return hmac.compare_digest(a, b)

    monkeypatch.setattr(access, "compare_digest", noted)
    judge, held = Access(key_file(tmp_path)), (ORDERS, DESK, WORKER)
    judge.need(bearer(ORDERS), "publish", "x")

    assert [tuple(hashlib.sha256(key.encode()).digest() for key in (ORDERS, one)) for one in held] == compared


def test_a_key_is_never_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Neither a refusal's words, nor a log line, nor what is held in memory have a key in them."""
    caplog.set_level(logging.DEBUG)
    judge = Access(key_file(tmp_path))
    key_file(tmp_path, {**HOLDERS, "more": {"keys": ["more-" + "m" * 40], "may": ["publish"]}})
    told = [caplog.text, repr(vars(judge)), repr(read_keys(tmp_path / "keys.json"))]
    for key in (UNKNOWN, DESK):
        with pytest.raises(KeyRefusedError) as caught:
            judge.need(bearer(key), "publish", "x")
        told += [str(caught.value), repr(caught.value), caught.value.message]

    assert "producer keys of orders, desk, worker, more" in caplog.text
    assert not [words for words in (*told, caplog.text) for key in (ORDERS, DESK, UNKNOWN) if key[5:25] in words]


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1"])
def test_without_keys_loopback_is_warned_of(address: str, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """One line names the setting; with a file there is none."""
    check_exposure(key_file(tmp_path), address)
    assert [] == caplog.records
    check_exposure(None, address)

    (line,) = caplog.records
    assert (logging.WARNING, True) == (line.levelno, "INTERLOCK_PRODUCER_KEY_FILE" in line.getMessage())


@pytest.mark.parametrize("address", [ANYWHERE, "192.0.2.7", "::", "2001:db8::1", "fe80::1%eth0"])
def test_without_keys_no_other_address_is_served(address: str, tmp_path: Path) -> None:
    """It refuses to start, and says both ways out; with a file it starts anywhere."""
    check_exposure(key_file(tmp_path), address)
    with pytest.raises(ExposedError, match=r"INTERLOCK_PRODUCER_KEY_FILE, or INTERLOCK_HOST=127\.0\.0\.1"):
        check_exposure(None, address)
