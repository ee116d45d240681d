"""Any order of customers' words, recalls, staff's corrections and rollbacks keeps the register's invariants."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agents.remembering.step import make_step
from memory.bus import apply, empty, pointer
from memory.register import Register, Rollback
from schemas.base import Model
from schemas.cloudevents import root
from schemas.events import ChannelEvent, RecallBody, Seal
from schemas.messages import MessageRef, NormalizedMessage
from schemas.people import HumanDecision
from schemas.step import MISSING, Draft, Input
from streams.replay.memory import decisions_for, setting

WHO, T0 = "demo/web/u-1", 1_767_578_400_000
SAID = (
    "我喜欢发顺丰", "以后不要顺丰", "以后都发京东快递", "以后不要中通", "以后快递随便", "请晚上联系我",
    "不要早上打电话", "以后都给我发M码，不要打电话，发短信", "please reply in English",
)  # fmt: skip


class RollbacksMachine(RuleBasedStateMachine):
    """One conversation: its state through the real memory step, and the register that the topic would hold."""

    def __init__(self) -> None:
        super().__init__()
        self.state, self.register = empty(WHO), Register()
        self.step = make_step(lambda *_: Seal(key_id="k", nonce="", sealed=""))
        self.traces: list[str] = []
        self.messages = 0
        self.recalled = False
        self.kept: Rollback | None = None  # worked out, and not carried out yet

    def _feed(self, topic: str, value: Model) -> str:
        offset = self.state["version"]
        cause = Input(topic, 0, offset, T0 + offset, WHO, f"r{offset}", "test", value, root(f"r{offset}"))
        draft = Draft(self.state, cause)
        self.step(draft, cause)
        decision = draft.finish()
        changes = [{"path": pointer(path), **({} if after is MISSING else {"after": after})}
                   for path, _, after in decision.changes]  # fmt: skip
        self.state = apply(self.state, {
            "conversation": WHO, "base": offset, "version": offset + 1, "now": draft.now, "changes": changes,
            "emits": [], "cause": {"topic": topic, "offset": offset, "time": cause.time, "id": cause.id},
        })  # fmt: skip
        for emit in decision.emits:
            self.register.add(emit.value)  # type: ignore[arg-type]
        trace = cause.trace[3:35]
        self.traces.append(trace)
        return trace

    def _roll_back(self, plan: Rollback) -> str:
        (decision,) = decisions_for(plan, f"dec-{self.state['version']}", "staff", "", T0).values()
        return self._feed("human.decisions", decision)

    def _values(self) -> dict[str, Any]:
        return {key: self.register.value(key) for key in self.register.keys}

    @rule(text=st.sampled_from(SAID), again=st.booleans())
    def says(self, text: str, *, again: bool) -> None:
        """The customer writes, or edits the last message."""
        self.messages += not (again and self.messages)
        ref = MessageRef(message_id=f"m-{self.messages}", event_id="e", session_id="s", at=T0, revision=1 + again)
        message = NormalizedMessage(ref=ref, intent="inform", confidence=0.9, evidence=(), language="zh",
                                    sentiment="neutral", text=text)  # fmt: skip
        self._feed("messages.normalized", message)

    @precondition(lambda self: self.messages > 0)
    @rule(back=st.integers(0, 3))
    def takes_back(self, back: int) -> None:
        """The customer takes a message back: what stood before its first word stands again, or nothing.

        Nothing, where what stood before was taken back, or said no more, itself: neither is ever anyone's word again.
        """
        message_id = f"m-{max(1, self.messages - back)}"
        entries = self.state["memory"]["known"]
        wanted = {key: self._before(f"{WHO}/{key}", message_id)
                  for key, entry in entries.items() if entry["message_id"] == message_id}  # fmt: skip
        body = RecallBody(kind="recall", message_id=message_id)
        event = ChannelEvent(id="x", event_id="x", shop="demo", channel="web", sender="u-1", body=body)
        self._feed("channel.events", event)
        found = {key: self.register.value(f"{WHO}/{key}") for key in wanted}
        assert found == {key: value if not self.recalled or found[key] else None for key, value in wanted.items()}
        left = self.state["memory"]["known"].values()
        assert all(message_id not in (entry["message_id"], entry["before_said"]) for entry in left)
        self.recalled = True

    def _before(self, key: str, message_id: str) -> Any:
        history = self.register.history(key)
        own = takewhile(lambda one: one.trigger_context.startswith(f"{message_id}: preference"), reversed(history))
        return next((write.value_before for write in reversed(list(own))), None)

    @rule(summary=st.sampled_from(["by hand", None]))
    def staff_sets(self, summary: str | None) -> None:
        """A colleague writes a key by hand."""
        value = summary and {"summary": summary, "choice": [], "avoid": []}
        one = setting(self.register, f"{WHO}/preference/carrier", value)  # type: ignore[arg-type]
        number = self.state["version"]
        self._feed("human.decisions", HumanDecision(decision_id=f"set-{number}", kind="memory", by="staff",
                                                    decided_at=T0, memory=(one,)))  # fmt: skip

    @precondition(lambda self: self.traces)
    @rule(data=st.data(), over=st.booleans())
    def rolls_back(self, data: st.DataObject, *, over: bool) -> None:
        """A trace is rolled back: what it changed is as before, what others changed later is left (R-004-11)."""
        plan = self.register.rollback(data.draw(st.sampled_from(self.traces)), self.register.keys if over else ())
        if not plan.restores:
            return
        before = self._values()
        own = self._roll_back(plan)
        for one in plan.restores:
            first = next(write for write in self.register.history(one.key) if write.write_id == one.undoes[-1])
            assert first.value_before == self.register.value(one.key)
        for conflict in plan.conflicts:
            assert conflict.later
            assert before[conflict.key] == self.register.value(conflict.key)
        if data.draw(st.booleans()):
            back = self.register.rollback(own)
            assert () == back.conflicts
            if back.restores:
                self._roll_back(back)
                assert before == self._values(), "a rollback that is rolled back never was"

    @precondition(lambda self: self.traces)
    @rule(data=st.data())
    def works_one_out(self, data: st.DataObject) -> None:
        """A rollback is worked out, and carried out later, or never."""
        self.kept = self.register.rollback(data.draw(st.sampled_from(self.traces)))

    @precondition(lambda self: self.kept is not None and self.kept.restores)
    @rule()
    def carries_it_out_late(self) -> None:
        """What was written since then is not overwritten: the decision knows the write that it saw (R-004-11)."""
        assert self.kept is not None
        before = self._values()
        heads = {one.key: self.register.history(one.key)[-1].write_id for one in self.kept.restores}
        self._roll_back(self.kept)
        for one in self.kept.restores:
            wanted = one.value if heads[one.key] == one.head else before[one.key]
            assert wanted == self.register.value(one.key)
        self.kept = None

    @invariant()
    def every_key_is_a_chain(self) -> None:
        """Each write's value before is the value after of the one before it (R-004-08)."""
        assert [] == list(self.register.breaks())
        assert all(history[0].value_before is None for history in map(self.register.history, self.register.keys))

    @invariant()
    def what_stands_again_is_named(self) -> None:
        """A write that takes others back has the value of the write that it restores, or nothing."""
        writes = {one.write_id: one for key in self.register.keys for one in self.register.history(key)}
        for one in writes.values():
            stands = writes[one.restores].value_after if one.restores else None
            assert not one.undoes or stands == one.value_after

    @invariant()
    def the_state_agrees(self) -> None:
        """The state knows of every key the last write and its value."""
        entries = self.state["memory"]["known"]
        known = {f"{WHO}/{key}": (entry["write_id"], entry["value"]) for key, entry in entries.items()}
        assert {key: (self.register.history(key)[-1].write_id, self.register.value(key))
                for key in self.register.keys} == known  # fmt: skip


RollbacksMachine.TestCase.settings = settings(
    max_examples=200, stateful_step_count=14, deadline=None, suppress_health_check=list(HealthCheck)
)
TestRollbacks = RollbacksMachine.TestCase
TestRollbacks.__doc__ = "200 random interleavings of writes and rollbacks (R-004-08, R-004-10, R-004-11)."
