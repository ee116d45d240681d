"""The web channel's HTTP API: strict bodies, exact ids, one event an id, answers after the broker's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from schemas import cloudevents
from schemas.delivery import Receipt
from schemas.events import ChannelEvent
from schemas.people import HumanDecision
from streams.gateway import publisher, reading
from tests.streams.gateway.local import CONVERSATION, NOW, event, outbound, web


async def test_an_event_is_answered_with_its_id() -> None:
    """202 carries the event's id; the record is keyed by the conversation, with that id in its headers."""
    async with web() as w:
        answer = await w.post("/v1/events", event())
        (record,) = w.broker.log.records("channel.events")

        assert 202 == answer.status_code
        assert CONVERSATION.encode() == record.key
        assert answer.json()["event_id"] == cloudevents.parse_headers("channel.events", record.headers).id
        assert 1 == w.counted("event", "accepted")


async def test_the_same_client_id_twice_is_one_event() -> None:
    """Two posts of one id, side by side and later, give one record and the same answer (A15)."""
    async with web() as w:
        first, second = await asyncio.gather(w.post("/v1/events", event()), w.post("/v1/events", event()))
        third = await w.post("/v1/events", event())

        assert first.json() == second.json() == third.json()
        assert 1 == len(w.broker.log.records("channel.events"))
        assert (1, 2) == (w.counted("event", "accepted"), w.counted("event", "repeated"))


async def test_the_same_id_of_two_senders_is_two_events() -> None:
    """Producer ids count per channel and sender (B01)."""
    async with web() as w:
        one = await w.post("/v1/events", event(sender="u-A", id="6500000000000000001"))
        two = await w.post("/v1/events", event(sender="u-B", id="6500000000000000001"))

        assert one.json() != two.json()
        assert 2 == len(w.broker.log.records("channel.events"))


async def test_ids_that_come_as_numbers_stay_exact() -> None:
    """64-bit ids as JSON numbers become exact decimal text, and two neighbours stay two (B05)."""
    body = (b'{"id": %d, "shop": "acme", "channel": "web", "sender": "u-1", '
            b'"body": {"kind": "message", "message_id": %d, "text": "x"}}')  # fmt: skip
    async with web() as w:
        for number in (9007199254740992, 9007199254740993, 2**63 + 1):
            assert 202 == (await w.post("/v1/events", body % (number, number))).status_code
        events: list[ChannelEvent] = w.values("channel.events")

        assert {"9007199254740992", "9007199254740993", "9223372036854775809"} == {one.id for one in events}
        assert {one.id for one in events} == {getattr(one.body, "message_id", "") for one in events}


async def test_an_emoji_sent_as_escapes_is_one_character() -> None:
    """An escaped surrogate pair is stored as one emoji; half of one is refused (B15)."""
    whole = event(body={"kind": "message", "message_id": "m", "text": "T"})
    async with web() as w:
        good = await w.post("/v1/events", _with_text(whole, rb"\ud83d\ude2d\u9000\u6b3e"))
        bad = await w.post("/v1/events", _with_text(whole, rb"\ud83d"))

        assert (202, 400) == (good.status_code, bad.status_code)
        assert "\U0001f62d退款" == w.values("channel.events")[0].body.text
        assert "not_utf8" == bad.json()["error"]["code"]


def _with_text(body: dict[str, Any], text: bytes) -> bytes:
    import orjson

    return orjson.dumps(body).replace(b'"T"', b'"' + text + b'"')


async def test_a_phone_reaches_the_topic_masked_only() -> None:
    """The record holds no clear phone, and a seal (R-000-12, promise 9)."""
    async with web() as w:
        body = {"kind": "message", "message_id": "m", "text": "电话 13912345678"}
        await w.post("/v1/events", event(body=body))
        (record,) = w.broker.log.records("channel.events")

        assert b"13912345678" not in (record.value or b"")
        assert w.values("channel.events")[0].seal is not None


@pytest.mark.parametrize(("changes", "field"), [
    ({"shop": "a/b"}, "shop"), ({"sender": ""}, "sender"), ({"occurred_at": 1_790_000_000}, "occurred_at"),
    ({"id": ""}, "id"), ({"id": True}, "id"), ({"body": {"kind": "dance"}}, "body.kind"),
    ({"channel": None}, "channel"), ({"surprise": 1}, "surprise"), ({"event_id": "ev-1"}, "event_id"),
])  # fmt: skip
async def test_a_wrong_field_is_named(changes: dict[str, Any], field: str) -> None:
    """422 names the field, and nothing is sent."""
    async with web() as w:
        answer = await w.post("/v1/events", event(**changes))

        assert (422, field) == (answer.status_code, answer.json()["error"]["field"])
        assert [] == w.broker.log.records("channel.events")
        assert 1 == w.counted("event", "refused")


@pytest.mark.parametrize(("body", "status"), [
    (b"{", 400), (b"", 400), (b"\xff\xfe", 400), (b'{"id": "1", "id": "2"}', 400), (b'{"a": NaN}', 400), (b"[]", 422),
    (b"7", 422), (b'"x"', 422), (b"[" * 100 + b"]" * 100, 400),
])  # fmt: skip
async def test_a_body_that_is_no_event_is_refused(body: bytes, status: int) -> None:
    """What can't be read is refused with a code and words, whatever the bytes are."""
    async with web() as w:
        answer = await w.post("/v1/events", body)

        assert status == answer.status_code
        assert answer.json()["error"]["message"]


async def test_a_body_and_a_record_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many bytes or too many events are refused before anything is sent."""
    monkeypatch.setattr(reading, "MAX_BODY", 200_000)
    async with web() as w:
        large = await w.post("/v1/events", b" " * 200_001)
        many = await w.post("/v1/events", [event(id=str(n)) for n in range(reading.MAX_BATCH + 1)])

        assert (413, 422) == (large.status_code, many.status_code)
        assert [] == w.broker.log.records("channel.events")


async def test_a_batch_is_taken_whole_or_not_at_all() -> None:
    """A batch gives its ids in order; one wrong event refuses all and is named by its place."""
    async with web() as w:
        good = await w.post("/v1/events", [event(id=str(n)) for n in range(500)])
        bad = await w.post("/v1/events", [event(id="a"), event(id="b", sender="/")])

        assert 500 == len(set(good.json()["event_ids"])) == len(w.broker.log.records("channel.events"))
        assert (422, "[1].sender") == (bad.status_code, bad.json()["error"]["field"])


async def test_the_answer_waits_for_the_broker() -> None:
    """No 202 before the broker has the event (promise 10)."""
    async with web() as w:
        w.broker.hold = True
        waiting = asyncio.create_task(w.post("/v1/events", event()))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        w.broker.release()

        assert 202 == (await waiting).status_code


async def test_a_silent_broker_is_told_and_the_same_id_is_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the broker does not answer in time: 503; the same id later is still one event."""
    monkeypatch.setattr(publisher, "ACK_SECONDS", 0.05)
    async with web() as w:
        w.broker.hold = True
        late = await w.post("/v1/events", event())
        w.broker.release()
        again = await w.post("/v1/events", event())

        assert (503, "broker_slow", "1") == (
            late.status_code, late.json()["error"]["code"], late.headers["Retry-After"])  # fmt: skip
        assert 202 == again.status_code
        assert 1 == len(w.broker.log.records("channel.events"))


async def test_a_refusal_of_the_broker_is_not_remembered_as_sent() -> None:
    """What the broker refused is sent again by the next try: a delivery error is never taken for success (C21)."""
    async with web() as w:
        w.broker.error = RuntimeError("no leader")
        failed = await w.post("/v1/events", event())
        w.broker.error = None
        again = await w.post("/v1/events", event())

        assert (503, 202) == (failed.status_code, again.status_code)
        assert 1 == len(w.broker.log.records("channel.events"))
        assert (1, 1) == (w.counted("event", "failed"), w.counted("event", "accepted"))


async def test_too_many_waiting_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit of records in flight the gateway says so, instead of growing (C21)."""
    monkeypatch.setattr(publisher, "MAX_IN_FLIGHT", 3)
    async with web() as w:
        w.broker.hold = True
        waiting = [asyncio.create_task(w.post("/v1/events", event(id=str(n)))) for n in range(3)]
        await asyncio.sleep(0.05)
        refused = await w.post("/v1/events", event(id="4"))
        w.broker.release()

        assert (503, "busy") == (refused.status_code, refused.json()["error"]["code"])
        assert [202] * 3 == [(await one).status_code for one in waiting]


async def test_the_id_cache_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the last ids are kept here; an older repeat is a second record, which the state drops (A15)."""
    monkeypatch.setattr(publisher, "REMEMBERED", 2)
    async with web() as w:
        for number in ("1", "2", "3", "1"):
            await w.post("/v1/events", event(id=number))

        assert 4 == len(w.broker.log.records("channel.events"))


async def test_a_trace_goes_on() -> None:
    """The record is in the producer's trace; a header that is none begins one, and never makes a bad record."""
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    async with web() as w:
        await w.post("/v1/events", event(id="1"), traceparent=trace)
        await w.post("/v1/events", event(id="2"), traceparent="x" * 600)
        traces = [cloudevents.parse_headers("channel.events", record.headers).traceparent
                  for record in w.broker.log.records("channel.events")]  # fmt: skip

        assert trace[3:35] == traces[0][3:35]
        assert 55 == len(traces[1])


async def test_a_receipt_becomes_a_fact() -> None:
    """A client's receipt is a record under its own id, once."""
    body = {"conversation": CONVERSATION, "receipt_id": "r-1", "message_id": "o-1", "state": "displayed",
            "occurred_at": NOW, "source": "client"}  # fmt: skip
    async with web() as w:
        answers = [await w.post("/v1/receipts", body) for _ in range(2)]

        assert [{"receipt_id": "r-1"}] * 2 == [one.json() for one in answers]
        assert [Receipt.model_validate({k: v for k, v in body.items() if k != "conversation"})] == w.values(
            "delivery.receipts"
        )


@pytest.mark.parametrize("path", ["/v1/receipts", "/v1/decisions", "/v1/outbox"])
@pytest.mark.parametrize("conversation", [None, 7, "acme/web", "a/b/c/d", "acme//u", "acme/web/~x", "acme/web/u\n"])
async def test_a_conversation_must_be_one(path: str, conversation: Any) -> None:
    """What is about a conversation names one; anything else is refused by that field."""
    async with web() as w:
        answer = await w.post(path, {"conversation": conversation})

        assert (422, "conversation") == (answer.status_code, answer.json()["error"]["field"])


async def test_a_decision_gets_an_id_and_a_time() -> None:
    """A person's word needs neither id nor time from the client; a given id makes it repeatable."""
    body = {"conversation": CONVERSATION, "kind": "approve", "by": "staff-1", "request_id": "q-1", "call_hash": "h"}
    async with web() as w:
        first = await w.post("/v1/decisions", body)
        same = [await w.post("/v1/decisions", {**body, "decision_id": "d-1"}) for _ in range(2)]
        decisions: list[HumanDecision] = w.values("human.decisions")

        assert [first.json()["decision_id"], "d-1"] == [one.decision_id for one in decisions]
        assert same[0].json() == same[1].json()
        assert {NOW} == {one.decided_at for one in decisions}


async def test_a_message_is_stored_before_the_answer() -> None:
    """202 on the outbox means that a stream can read the message; a repeat is told and changes nothing (A13)."""
    body = {"conversation": CONVERSATION, **outbound().model_dump(mode="json")}
    async with web() as w:
        first = await w.post("/v1/outbox", body)
        again = await w.post("/v1/outbox", body)
        wrong = await w.post("/v1/outbox", {**body, "text": 7})

        assert {"message_id": "o-1", "repeated": False, "at": NOW} == first.json()
        assert again.json()["repeated"]
        assert (422, "text") == (wrong.status_code, wrong.json()["error"]["field"])
        assert 1 == len(w.gateway.outbox)


async def test_health_and_routes() -> None:
    """The gateway says that it lives; an unknown path and a wrong method are refused."""
    async with web() as w:
        health = await w.client.get("/healthz")
        none = await w.client.get("/v1/nothing")
        method = await w.client.get("/v1/events")

        assert ({"status": "ok"}, 404, 405) == (health.json(), none.status_code, method.status_code)


@pytest.mark.parametrize(("kind", "given", "field"), [
    ("approve", {"call_hash": "h"}, "request_id"), ("approve", {"request_id": "q-1"}, "call_hash"),
    ("refuse", {}, "request_id"), ("reply", {"request_id": "q-1"}, "text"),
])  # fmt: skip
async def test_a_decision_that_could_do_nothing_is_refused(kind: str, given: dict[str, str], field: str) -> None:
    """A word about no request, about no call, or without words is told at once instead of being lost (promise 10)."""
    async with web() as w:
        answer = await w.post("/v1/decisions", {"conversation": CONVERSATION, "kind": kind, "by": "staff-1", **given})

        assert (422, field) == (answer.status_code, answer.json()["error"]["field"])
        assert [] == w.broker.log.records("human.decisions")


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/", 404), ("GET", "/v1/events", 405)])
async def test_a_wrong_path_names_the_right_ones(method: str, path: str, status: int) -> None:
    """Who tries a wrong path or method reads which ones there are."""
    async with web() as w:
        answer = await w.client.request(method, path)

        assert (status, "no_such_path") == (answer.status_code, answer.json()["error"]["code"])
        assert "POST /v1/events" in answer.json()["error"]["message"]
