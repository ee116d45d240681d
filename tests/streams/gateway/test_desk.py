"""Batches item by item and CloudEvents over HTTP: each event by itself, errors with place and field."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from schemas import cloudevents
from streams.metrics import Metrics
from streams.runtime.sender import SendError
from tests.streams.gateway.local import CONVERSATION, NOW, event, web

CLOUD = {"specversion": "1.0", "id": "A-1", "source": "/crm", "type": "com.example.chat", "subject": CONVERSATION,
         "data": {"kind": "message", "message_id": "m-9", "text": "hello"}}  # fmt: skip
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
STRUCTURED = {"content-type": "application/cloudevents+json; charset=utf-8"}
BATCHED = {"content-type": "application/cloudevents-batch+json"}


def said(number: int, **changes: Any) -> dict[str, Any]:
    """An event of a phone's queue: who it is from stands at the batch."""
    body = {"kind": "message", "message_id": f"m-{number}", "text": str(number)}
    return {"id": f"c-{number}", "occurred_at": NOW + number, "body": body, **changes}


WHO = {"shop": "acme", "channel": "app", "sender": "u-1"}


async def test_a_phones_queue_comes_in_at_once_and_in_order() -> None:
    """Hours-old events are taken as they are, with the time of then, in the order of the list (case D15)."""
    old = [said(number, occurred_at=NOW - 7_200_000 + number) for number in range(50)]
    async with web() as w:
        answer = await w.post("/v1/batch", {**WHO, "events": old})
        events = w.values("channel.events")

        assert (202, 50, 0) == (answer.status_code, answer.json()["accepted"], answer.json()["refused"])
        assert [one["id"] for one in old] == [one.id for one in events]
        assert [one["occurred_at"] for one in old] == [one.occurred_at for one in events]
        assert [one.event_id for one in events] == [one["event_id"] for one in answer.json()["results"]]


async def test_one_bad_event_holds_up_no_other() -> None:
    """207 names each refused item by its place and field; the others are taken."""
    items = [said(0), said(1, body={"kind": "dance"}), "x", said(3, occurred_at=7), said(4)]
    async with web() as w:
        answer = await w.post("/v1/batch", {**WHO, "events": items})
        results = answer.json()["results"]

        assert (207, 2, 3) == (answer.status_code, answer.json()["accepted"], answer.json()["refused"])
        assert ["c-0", "c-4"] == [one.id for one in w.values("channel.events")]
        refused = [(one["index"], one.get("id"), one["error"].get("field")) for one in results if "error" in one]
        assert [(1, "c-1", "body.kind"), (2, None, None), (3, "c-3", "occurred_at")] == refused
        assert (2, 3) == (w.counted("event", "accepted"), w.counted("event", "refused"))


async def test_a_batch_that_comes_again_says_so() -> None:
    """The same ids twice are the same events, marked as repeats, in one batch and in the next (A15)."""
    async with web() as w:
        first = await w.post("/v1/batch", {**WHO, "events": [said(1), said(1)]})
        second = await w.post("/v1/batch", {**WHO, "events": [said(1), said(2)]})

        assert [False, True] == [one["repeated"] for one in first.json()["results"]]
        assert [True, False] == [one["repeated"] for one in second.json()["results"]]
        assert 2 == len(w.broker.log.records("channel.events"))


async def test_what_the_broker_did_not_take_may_come_again() -> None:
    """While the broker is away a batch is 503 as a whole; beside bad items each says whether to retry."""
    async with web() as w:
        w.broker.error = SendError("away")
        whole = await w.post("/v1/batch", {**WHO, "events": [said(1), said(2)]})
        mixed = await w.post("/v1/batch", {**WHO, "events": [said(1), said(2, id="")]})

        assert (503, "1") == (whole.status_code, whole.headers["retry-after"])
        assert [True, False] == [one["error"]["retry"] for one in mixed.json()["results"]]


@pytest.mark.parametrize(("body", "field"), [
    ({"events": {}}, "events"), ({"events": []}, "events"), ({"events": [1] * 501}, "events"), ({}, "events"),
    ({"events": [{}], "surprise": 1}, "surprise"), (7, "events"),
])  # fmt: skip
async def test_a_batch_that_is_none_is_refused(body: Any, field: str) -> None:
    """No list, an empty or too long one, or a field that a batch has not: 422 names it."""
    async with web() as w:
        answer = await w.post("/v1/batch", body)

        assert (422, field) == (answer.status_code, answer.json()["error"]["field"])


@pytest.mark.parametrize("body", [
    {"kind": "recall", "message_id": "m-1"}, {"kind": "edit", "message_id": "m-1", "text": "new"},
    {"kind": "heartbeat"}, {"kind": "presence", "status": "offline"},
    {"kind": "rating", "thumb": "down", "message_id": "o-1", "text": "slow"},
    {"kind": "message", "message_id": "m", "text": "", "attachments": [{"kind": "image", "ref": "https://f.example/1"}]},
])  # fmt: skip
async def test_an_app_sends_all_that_a_customer_does(body: dict[str, Any]) -> None:
    """Recall, edit, heartbeat, presence, rating and files by reference come in over the batch (R-003-05, R-002-42)."""
    async with web() as w:
        answer = await w.post("/v1/batch", {**WHO, "events": [{"id": "c-1", "body": body}]})

        assert 202 == answer.status_code
        assert body["kind"] == w.values("channel.events")[0].body.kind


@pytest.mark.parametrize("part", [
    {"kind": "image", "ref": "data:image/png;base64,iVBORw0KGgo="}, {"kind": "link", "ref": "JavaScript:alert(1)"},
    {"kind": "file", "ref": "file:///etc/passwd"}, {"kind": "image", "ref": " blob:x"},
])  # fmt: skip
async def test_an_attachment_is_a_reference_only(part: dict[str, str]) -> None:
    """Content, a place on the sender's machine or something that runs is no reference: 422 names the field."""
    body = {"kind": "message", "message_id": "m", "text": "", "attachments": [part]}
    async with web() as w:
        answer = await w.post("/v1/events", event(body=body))

        assert (422, "body.attachments.0.ref") == (answer.status_code, answer.json()["error"]["field"])


async def test_a_structured_cloudevent_comes_in() -> None:
    """The envelope gives id and conversation, and its trace goes on into the record (R-003-05)."""
    async with web() as w:
        answer = await w.post("/v1/cloudevents", {**CLOUD, "traceparent": TRACE}, **STRUCTURED)
        (record,) = w.broker.log.records("channel.events")
        (taken,) = w.values("channel.events")

        assert (202, taken.event_id) == (answer.status_code, answer.json()["event_id"])
        assert (CONVERSATION, "A-1", "/crm") == (taken.conversation, taken.id, taken.source)
        assert TRACE[3:35] == cloudevents.parse_headers("channel.events", record.headers).traceparent[3:35]


async def test_a_binary_cloudevent_is_the_same_event() -> None:
    """Attributes as ce-* headers, the data as body: the same id of the same source is a repeat (R-003-05, A15)."""
    headers = {f"ce-{name}": value for name, value in CLOUD.items() if isinstance(value, str)}
    async with web() as w:
        first = await w.post("/v1/cloudevents", CLOUD, **STRUCTURED)
        second = await w.post("/v1/cloudevents", CLOUD["data"], **headers, **{"content-type": "application/json"})

        assert (202, True) == (second.status_code, second.json()["repeated"])
        assert first.json()["event_id"] == second.json()["event_id"]


async def test_a_batch_of_cloudevents_is_taken_item_by_item() -> None:
    """One envelope without a source beside a good one: 207 names it; an empty batch is a batch."""
    async with web() as w:
        bad = {name: value for name, value in CLOUD.items() if name != "source"}
        answer = await w.post("/v1/cloudevents", [bad, CLOUD], **BATCHED)
        empty = await w.post("/v1/cloudevents", [], **BATCHED)

        assert (207, (1, 1)) == (answer.status_code, (answer.json()["accepted"], answer.json()["refused"]))
        assert (0, "source") == (answer.json()["results"][0]["index"], answer.json()["results"][0]["error"]["field"])
        assert (202, 0) == (empty.status_code, empty.json()["accepted"])


@pytest.mark.parametrize(("kind", "body", "status", "field"), [
    ("application/cloudevents+avro", b"x", 415, "content-type"), ("application/json", b"{}", 422, "ce-specversion"),
    ("application/cloudevents+json", b"[", 400, None), ("application/cloudevents+json", b"[]", 422, None),
    ("application/cloudevents-batch+json", b"{}", 422, "events"),
])  # fmt: skip
async def test_what_is_no_cloudevent_is_refused(kind: str, body: bytes, status: int, field: str | None) -> None:
    """The answer says which mode or attribute is missing, and nothing is sent."""
    async with web() as w:
        answer = await w.post("/v1/cloudevents", body, **{"content-type": kind})

        assert (status, field) == (answer.status_code, answer.json()["error"].get("field"))
        assert [] == w.broker.log.records("channel.events")


async def test_customers_make_no_series() -> None:
    """500 senders on 3 channels, good and bad: the gateway has the same number of series as before (case G01)."""
    async with web() as w:
        w.gateway.metrics = metrics = Metrics()
        series = len(metrics.exposition().splitlines())
        for channel in ("web", "app", "voice"):
            items = [said(n, shop="acme", channel=channel, sender=f"u-{n}", id=f"c-{n % 400}") for n in range(499)]
            assert 207 == (await w.post("/v1/batch", [*items, {}])).status_code

        assert series == len(metrics.exposition().splitlines())
        assert 1_497 == len({one.conversation for one in w.values("channel.events")})


async def test_numbers_as_ids_stay_exact_in_every_mode() -> None:
    """Two 64-bit ids that a double rounds to one stay two events (B05)."""
    ids = (9007199254740992, 9007199254740993)
    async with web() as w:
        for number in ids:
            body = orjson.dumps({**CLOUD, "id": "?"}).replace(b'"?"', str(number).encode())
            assert 202 == (await w.post("/v1/cloudevents", body, **STRUCTURED)).status_code

        assert [str(number) for number in ids] == [one.id for one in w.values("channel.events")]
