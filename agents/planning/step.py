"""The planning step: every input that it knows, handled on one desk, written back once."""

from __future__ import annotations

from agents.planning import calls, decisions, handover, linked, messages, recalls, results
from agents.planning.desk import Desk
from agents.planning.pack import Config, Pack
from schemas.events import ChannelEvent, IdentityLinkBody, MessageBody, RecallBody
from schemas.messages import NormalizedMessage
from schemas.people import HumanDecision
from schemas.step import Draft, Input, Step
from schemas.system import TimerFired
from schemas.tools import READINGS, ToolResult

_HEARD = (RecallBody, IdentityLinkBody)  # of channel.events; messages come as perception read them
INPUTS = ("channel.events", "messages.normalized", "tools.results", "human.decisions", "timers.fired")


def make_step(pack: Pack, config: Config | None = None) -> Step:
    """The pure step over one shop's files: the same state and inputs give the same decision (promise 5)."""
    numbers = config or Config()

    def step(draft: Draft, cause: Input) -> None:
        value = cause.value
        if isinstance(value, ChannelEvent) and not (isinstance(value.body, _HEARD) or _wordless(value)):
            return
        if isinstance(value, TimerFired) and not value.name.startswith((calls.REVIEW_TIMER, handover.TIMER)):
            return
        if isinstance(value, HumanDecision) and value.kind == "memory":
            return  # the memory step's own
        if isinstance(value, ToolResult) and value.tool in READINGS:
            return  # no call of a plan: whoever asked listens to it
        desk = Desk(draft, pack, numbers)
        _dispatch(desk, value)
        linked.settle(desk)
        desk.close()

    return step


def _wordless(event: ChannelEvent) -> bool:
    return isinstance(event.body, MessageBody) and event.body.wordless


def _dispatch(desk: Desk, value: object) -> None:
    if isinstance(value, NormalizedMessage):
        messages.on_message(desk, value)
    elif isinstance(value, ToolResult):
        results.on_result(desk, value)
    elif isinstance(value, HumanDecision):
        decisions.on_decision(desk, value)
    elif isinstance(value, TimerFired) and value.name.startswith(handover.TIMER):
        handover.ask_again(desk, value.name.removeprefix(handover.TIMER))
    elif isinstance(value, TimerFired):
        decisions.expire(desk, value.name.removeprefix(calls.REVIEW_TIMER))
        messages.proceed(desk)
    elif isinstance(value, ChannelEvent) and isinstance(value.body, IdentityLinkBody):
        linked.on_link(desk, value)
    elif isinstance(value, ChannelEvent) and isinstance(value.body, MessageBody):
        desk.in_reply_to = value.body.message_id
        messages.wordless(desk, value.body)
    elif isinstance(value, ChannelEvent) and isinstance(value.body, RecallBody):
        desk.in_reply_to = value.body.message_id
        recalls.withdraw(desk, value.body.message_id)
        messages.proceed(desk)
