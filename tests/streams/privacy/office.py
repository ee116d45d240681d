"""Those who may look and those who may forget, at work on a system in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from schemas.events import Body, MessageBody
from schemas.partition import place
from streams.privacy.forget import Plan, carry_out, plan
from streams.privacy.unseal import Request, unseal
from streams.replay.local import LocalSource
from streams.runtime.ports import Outgoing
from tests.promises.stand import Person, Stand

ROLES = {"eye": ("investigator",), "law": ("privacy",)}
PHONE, ADDRESS, NAME = "13800000000", "世纪大道100号3栋201室", "王小明"
SAID = (f"订单1006改地址，改成上海市浦东新区{ADDRESS}，电话{PHONE}", f"我叫{NAME}")
NEEDLES = (PHONE, ADDRESS, NAME)


def source(stand: Stand) -> LocalSource:
    """The topics as a command reads them."""
    return LocalSource([record for record in stand.everything() if record.headers], 4)


async def told(stand: Stand) -> Person:
    """A customer who has told what must not be read."""
    person = await stand.person("c-zh-address")
    for text in SAID:
        await person.say(text)
    return person


def body(message_id: str, text: str) -> Body:
    """A message."""
    return MessageBody(kind="message", message_id=message_id, text=text)


def look(stand: Stand, conversation: str, by: str = "eye", **options: Any) -> list[dict[str, Any]]:
    """What `interlock unseal` shows; its word goes to the register."""
    request = Request(conversation, by, options.pop("reason", "complaint 7"), **options)
    return unseal(source(stand), stand.world.keys, ROLES, request, lambda records: _append(stand, records), f"u-{by}",
                  stand.now, 4)  # fmt: skip


def forget(stand: Stand, conversation: str) -> Plan:
    """What `interlock forget --yes` does to keys and states."""
    found = plan(source(stand), stand.world.keys, conversation)
    carry_out(found, stand.world.keys, lambda records: _append(stand, records), "law", "asked", "f", stand.now, 4)
    return found


def _append(stand: Stand, records: Sequence[Outgoing]) -> None:
    for one in records:
        assert one.key is not None
        assert one.partition == place(one.key.decode(), 4)
        stand.lock.log.append(one)


def reasons(person: Person, rule: str) -> list[str]:
    """What the register says under a rule."""
    return [one["text"] for diff in person.values("state.diffs") for one in diff["reasons"] if one["rule"] == rule]
