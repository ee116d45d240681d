"""Promise 6, effects are declared first: in the log before they run, and once, or a person is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import orjson
import pytest

from memory.bus import unpointer
from streams.runtime.ports import Effect, Fact
from streams.scenario.format import Fault
from tests.promises.stand import DIFFS, Stand, whole


class Watched:
    """A handler that looks into the log before each effect; `hang` times the owner hears nothing after it."""

    def __init__(self, stand: Stand, kind: str, *, hang: str = "", before: bool = False) -> None:
        self.stand, self.inner = stand, stand.lock.ports.effects[kind]
        self.hang, self.before = hang, before
        self.runs: list[tuple[str, str, int]] = []
        stand.ports(effects={**stand.lock.ports.effects, kind: self})

    async def run(self, effect: Effect) -> Sequence[Fact]:
        """Only what stands in the log runs."""
        self._declared(effect)
        self.runs.append(("run", effect.key, self.stand.now))
        if self.hang and self.hang in str(effect.request):
            self.hang = ""
            if not self.before:
                await self.inner.run(effect)
            await asyncio.Event().wait()
        return await self.inner.run(effect)

    async def resolve(self, effect: Effect) -> Sequence[Fact]:
        """A successor's question."""
        self._declared(effect)
        self.runs.append(("resolve", effect.key, self.stand.now))
        assert self.stand.now >= effect.deadline + effect.timeout_ms, "the owner before may still be at it"
        return await self.inner.resolve(effect)

    def _declared(self, effect: Effect) -> None:
        diffs = (orjson.loads(record.value or b"") for record in self.stand.records(DIFFS, effect.conversation))
        found = next((change["after"] for diff in diffs for change in diff["changes"]
                      if unpointer(change["path"]) == ("pending", effect.id) and "after" in change), None)  # fmt: skip
        assert found is not None, f"{effect.id} runs and nobody declared it"
        assert (effect.key, dict(effect.request)) == (found["key"], found["request"])


def test_every_call_and_send_stands_in_the_log_before_it_runs() -> None:
    """A whole refund: each call and send is found declared, with key and request, when it begins (promise 6)."""

    async def body(stand: Stand) -> None:
        tools, sends = Watched(stand, "tool"), Watched(stand, "send")
        person = await stand.person("c-zh-refund")
        await person.say("我要退款，订单号1001，衣服太大了")
        await person.say("确认")
        assert ["refund.confirm", "refund.in_review", "refund.success"] == person.heard
        calls = [call["idempotency_key"] for call in person.values("tools.calls")]
        assert calls == [key for _, key, _ in tools.runs]
        assert sorted(one["message_id"] for one in person.values("actions.outbound")) == sorted(
            key for _, key, _ in sends.runs)  # fmt: skip
        assert [] == list(person.state["pending"])

    whole(body)


@pytest.mark.parametrize("before", [False, True], ids=["after-it-acted", "before-it-acted"])
def test_an_owner_that_dies_in_the_call_leaves_one_refund(before: bool) -> None:  # noqa: FBT001 (a parameter)
    """Its successor asks under the same key, after deadline and time-out, and tells (promise 6, cases A13, C11)."""

    async def body(stand: Stand) -> None:
        tools = Watched(stand, "tool", hang="create_refund", before=before)
        person = await stand.person("c-zh-refund")
        await person.say("我要退款，订单号1001，衣服太大了")
        await person.write("确认")
        await asyncio.sleep(2)
        await stand.lock.restart()
        await stand.pass_ms(30_000)

        assert [5_000] == [row["amount_fen"] for row in await person.ledger()]
        (key,) = {call["idempotency_key"] for call in person.values("tools.calls") if call["risk"] == "money"}
        assert ["run", "resolve"] == [how for how, used, _ in tools.runs if used == key]
        assert "refund.success" == person.heard[-1]

    whole(body)


def test_what_can_not_be_known_goes_to_a_person() -> None:
    """Answers lost and no way to ask: no success is claimed, no second attempt is made, a person has it (promise 6)."""

    async def body(stand: Stand) -> None:
        await stand.world.fault(Fault(path_prefix="/refunds", kind="lost_response", times=9))
        await stand.world.fault(Fault(path_prefix="/effects", method="GET", kind="error", status=500, times=99))
        person = await stand.person("c-zh-refund")
        await person.say("我要退款，订单号1001，衣服太大了")
        await person.say("确认", ms=20_000)

        assert "refund.success" not in person.heard
        assert "handover" in [request["kind"] for request in person.values("human.requests")]
        assert "unknown" in [result["status"] for result in person.values("tools.results")]
        assert len(await person.ledger()) <= 1

    whole(body)
