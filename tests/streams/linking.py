"""Customers on several channels for the tests of identity links: who they are, what they see, and what was decided."""

from __future__ import annotations

from typing import Any

from schemas.delivery import OutboundMessage
from schemas.events import IdentityLinkBody
from tests.promises.stand import DIFFS, Person, Stand

WISH = "我要退款，订单号1001，衣服太大了"
OWNER = "c-zh-refund"  # whose orders the demo shop has under that sender
ROOT = f"demo/web/{OWNER}"


async def both(stand: Stand, **options: Any) -> tuple[Person, Person]:
    """The customer on WeChat, not known yet, and on the web, where the shop knows them."""
    return await stand.person("w-1", channel="wechat", **options), await stand.person(OWNER, **options)


async def link(person: Person, root: str, *, proof: str = "login", name: str = "l-1", ms: int = 1_000) -> str:
    """The channel says that this sender is the customer of `root`; the event's id."""
    event = await person.send(person.raw(name, IdentityLinkBody(kind="identity_link", root=root, proof=proof)))
    if ms:
        await person.stand.pass_ms(ms)
    return event.event_id


def shown(person: Person) -> list[OutboundMessage]:
    """The messages in the person's own channel, in order."""
    return list(person.stand.world.inbox._kept.get(person.conversation, {}).values())


def templates(person: Person) -> list[str]:
    """What kind of messages they are."""
    return [one.template_id for one in shown(person)]


def rules(person: Person) -> list[str]:
    """The rules of every decision on the person's conversation, in order."""
    return [reason["rule"] for diff in person.values(DIFFS) for reason in diff["reasons"]]


def why(person: Person, rule: str) -> str:
    """What the last reason of that rule says."""
    found = [one["text"] for diff in person.values(DIFFS) for one in diff["reasons"] if one["rule"] == rule]
    return str(found[-1])


def root_of(person: Person) -> str | None:
    """Where the person's messages go now."""
    found: str | None = person.state.get("identity", {}).get("root")
    return found
