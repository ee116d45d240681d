"""Promise 1, one key: everything about a conversation has one key, one partition number, one order."""

from __future__ import annotations

from collections import defaultdict

from schemas.partition import partition_of
from schemas.topics import INPUT_TOPICS
from tests.promises.stand import Person, Stand, whole

PEOPLE = ("c-zh-refund", "c-en-logistics", "c-zh-address", "c-en-unknown", "c-zh-many")
LINES = (
    "我要退款，订单号1001，衣服太大了", "Where is my order OD100008?",
    "订单1006帮我改一下地址，改成上海市浦东新区世纪大道100号",
    "I want a refund for order OD999999, it arrived broken", "转人工",
)  # fmt: skip


async def _busy(stand: Stand) -> list[Person]:
    """Five customers, each at something else, all at once, with deadlines and a score in the end."""
    people = [await stand.person(sender) for sender in PEOPLE]
    for person, line in zip(people, LINES, strict=True):
        await person.say(line, ms=0)
    await stand.pass_ms(4_000)
    for person in people:
        await person.say("确认", ms=20)
    await stand.pass_ms(330_000)
    return people


def test_one_key_and_one_partition_on_every_topic() -> None:
    """What any topic holds about a conversation has its key and its murmur2 partition (promise 1, R-002-01)."""

    async def body(stand: Stand) -> None:
        people = await _busy(stand)
        topics = defaultdict(set)
        for record in stand.everything():
            key = (record.key or b"").decode()
            if not key.startswith("~"):
                topics[key].add(record.topic)
                assert partition_of(key.encode(), 4) == record.partition, record
        assert {person.conversation for person in people} == set(topics)
        assert {"timers.fired", "tools.results", "feedback.health", "delivery.states"} <= topics[people[0].conversation]
        for diff in stand.values("state.diffs"):
            assert {emit["key"] for emit in diff["emits"]} <= {diff["conversation"]}

    whole(body)


def test_one_order() -> None:
    """A burst of all customers is decided in each one's own order, topic by topic (promise 1, case B23)."""

    async def body(stand: Stand) -> None:
        people = [await stand.person(sender) for sender in PEOPLE]
        await people[0].say("我要退款，订单号1001，衣服太大了", ms=1)
        for number in range(12):
            for person in people:
                await person.write(f"message {number}")
        await stand.pass_ms(10_000)
        for person in people:
            seen = [(diff["cause"]["topic"], diff["cause"]["offset"]) for diff in person.values("state.diffs")]
            for topic in INPUT_TOPICS:
                offsets = [offset for name, offset in seen if name == topic]
                assert sorted(set(offsets)) == offsets
            texts = [one["text"] for one in person.values("messages.normalized") if one["text"].startswith("message")]
            assert [f"message {number}" for number in range(12)] == texts

    whole(body)
