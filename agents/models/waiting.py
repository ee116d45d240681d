"""Messages that wait, for a model or for what the stores recall: in the state, in order, for a bounded time.

Recalls, people and stops do not wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from agents import remembered
from agents.models import prompt
from agents.models.compare import compared
from agents.models.form import BrokenFormError, checked_form
from agents.models.sight import Sight
from agents.recalling import read_again
from agents.understanding.forged import FIELD
from agents.understanding.normalize import CONTRADICTS, UNREADABLE
from schemas.messages import NormalizedMessage
from schemas.sections import HeldMessage
from schemas.step import Draft
from schemas.tools import ToolResult

KIND = "model"
TIMER = "perception.model"
ABSENT = "model_absent"
CLIP = 200
_AT_ONCE = frozenset({"stop", "human"})

Tell = Callable[[Draft, NormalizedMessage], None]
Doubtful = Callable[[NormalizedMessage, bool], Sight | None]
"""`(message, ambiguous) -> what a model is shown`, or None where it is not asked."""


@dataclass(frozen=True, slots=True)
class Asking:
    """When a model is asked, and how long a message waits for it; `model` empty: never. Times in milliseconds."""

    model: str = ""
    when: Literal["never", "doubtful", "always"] = "doubtful"
    below: float = 0.6
    timeout_ms: int = 3_000
    most: int = 8  # messages of one conversation that wait


def worth_asking(message: NormalizedMessage, cfg: Asking, *, ambiguous: bool, asked: bool, by_person: bool) -> bool:
    """Whether a model could help: ours is in doubt, and nothing else is known to decide it.

    An answer that the flow waits for is ours to read; forged text is not shown to a model at all (case E15).
    """
    if not cfg.model or cfg.when == "never" or by_person or at_once(message) or UNREADABLE in message.marks:
        return False
    if any(found.field == FIELD for found in message.evidence) or not any(map(str.isalpha, message.text)):
        return False
    doubtful = message.confidence < cfg.below or ambiguous or CONTRADICTS in message.marks
    return cfg.when == "always" or (doubtful and not asked)


def at_once(message: NormalizedMessage) -> bool:
    """A stop, a wish for a person, or other words for what was said before: these let nothing wait."""
    wishes = {message.intent, *(one.intent for one in message.secondary_intents)}
    return message.ref.revision > 1 or bool(wishes & _AT_ONCE)


def pass_on(draft: Draft, message: NormalizedMessage, cfg: Asking, tell: Tell, sight: Sight | None, *,
            by_person: bool, recall_ms: int = 0) -> bool:  # fmt: skip
    """Tell the message, or let it wait: for a model where `sight` is given, else behind those that do.

    With `recall_ms` it waits for the stores first. False when it waits.
    """
    number = message.ref.message_id
    withdrawn(draft, number)
    waiting = draft.get("perception", "held", default={})
    full = len(waiting) >= cfg.most
    if waiting and (at_once(message) or by_person or full):
        release(draft, tell, f"{cfg.most} wait" if full else f"{number} does not wait")
        waiting = {}
    if full:  # so it was for those before it: nobody may keep a conversation waiting for ever
        sight, recall_ms = None, 0
    if recall_ms:
        _recall(draft, message, recall_ms)
        return False
    if sight is None and not waiting:
        tell(draft, message)
        return True
    if sight is None:
        _keep(draft, message, None, draft.now, (), asked=False)
        draft.reason("model.behind", "an earlier message waits for the model", number)
    else:
        _ask(draft, message, cfg, sight)
    return False


def _ask(draft: Draft, message: NormalizedMessage, cfg: Asking, sight: Sight) -> None:
    effect, deadline = draft.new_id(KIND), draft.now + cfg.timeout_ms
    sent = prompt.messages(message.text, sight.window, sight.asked, sight.orders)
    request = {"message_id": message.ref.message_id, "model": cfg.model, "prompt": prompt.VERSION, "messages": sent}
    draft.effect(effect, KIND, key=effect, timeout_ms=cfg.timeout_ms, deadline=deadline, request=request)
    _keep(draft, message, effect, deadline, sight.orders, asked=bool(sight.asked))
    _by(draft, deadline)
    draft.reason("model.asked", f"{message.intent} ({message.confidence:.2f}) is read by {cfg.model}, too",
                 message.ref.message_id, effect)  # fmt: skip


def _recall(draft: Draft, message: NormalizedMessage, recall_ms: int) -> None:
    effect = remembered.ask(draft, message.ref.message_id, message.text, recall_ms)
    _keep(draft, message, effect, draft.now + recall_ms, (), asked=False)
    _by(draft, draft.now + recall_ms)


def _by(draft: Draft, deadline: int) -> None:
    due = draft.get("timers", TIMER, "due")
    if due is None or due > deadline:
        draft.timer(TIMER, deadline)


def _keep(draft: Draft, message: NormalizedMessage, effect: str | None, deadline: int, shown: tuple[str, ...], *,
          asked: bool) -> None:  # fmt: skip
    entry = HeldMessage(message=message.model_dump(mode="json"), effect=effect, deadline=deadline, shown=shown,
                        asked=asked)  # fmt: skip
    draft.set(entry.model_dump(mode="json"), "perception", "held", message.ref.message_id)


def withdrawn(draft: Draft, message_id: str) -> None:
    """A message that was taken back, or said in other words, waits no more."""
    entry = draft.get("perception", "held", message_id)
    if entry is None:
        return
    _settle(draft, entry)
    draft.delete("perception", "held", message_id)
    draft.reason("model.withdrawn", "it waited for the model", message_id)


def answered(draft: Draft, result: ToolResult, tell: Tell) -> None:
    """The outcome of a call: the first one counts, and all whose turn it is go on."""
    entry = _asked_by(draft, result, "model.late")
    if entry is not None:
        _ready(draft, entry, _judged(draft, entry, result))
        proceed(draft, tell)


def _asked_by(draft: Draft, result: ToolResult, late: str) -> dict[str, Any] | None:
    """The message that waits for this very call, which is over now."""
    draft.settle(result.call_id)
    waiting: dict[str, dict[str, Any]] = draft.get("perception", "held", default={})
    entry = next((one for one in waiting.values() if one["effect"] == result.call_id), None)
    if entry is None:
        draft.reason(late, f"{result.status}: nobody waits for it", result.result_id)
    return entry


def recalled(draft: Draft, result: ToolResult, cfg: Asking, tell: Tell, doubtful: Doubtful) -> None:
    """What the stores answered (R-002-10): the message is looked at once more, and may then be one for the model."""
    entry = _asked_by(draft, result, "memory.recall_late")
    if entry is None:
        return
    remembered.answered(draft, str(entry["message"]["ref"]["message_id"]), result)
    message, ambiguous = read_again(draft, _message(entry))
    seen = doubtful(message, ambiguous)
    if seen is None:
        _ready(draft, entry, message)
    else:
        _ask(draft, message, cfg, seen)
    proceed(draft, tell)


def overdue(draft: Draft, tell: Tell) -> None:
    """The deadline fired: whoever still waits goes on by the embedded reading."""
    for number, entry in draft.get("perception", "held", default={}).items():
        if entry["effect"] is not None and entry["deadline"] <= draft.now:
            _settle(draft, entry)
            _ready(draft, entry, _alone(draft, entry, "no answer before its deadline", number))
    proceed(draft, tell)


def proceed(draft: Draft, tell: Tell) -> None:
    """Tell, in order, what waits for nothing; the deadline of the rest runs on."""
    for number, entry in draft.get("perception", "held", default={}).items():
        if entry["effect"] is not None:
            break
        draft.delete("perception", "held", number)
        tell(draft, _message(entry))
    due = [
        entry["deadline"]
        for entry in draft.get("perception", "held", default={}).values()
        if entry["effect"] is not None
    ]
    if not due:
        draft.cancel(TIMER)
    elif draft.get("timers", TIMER, "due") != min(due):
        draft.timer(TIMER, min(due))


def release(draft: Draft, tell: Tell, why: str) -> None:
    """Nothing is waited for any more: what is held is told, in order, by the embedded reading."""
    for number, entry in draft.get("perception", "held", default={}).items():
        if entry["effect"] is not None:
            _settle(draft, entry)
            _ready(draft, entry, _alone(draft, entry, why, number))
    proceed(draft, tell)


def _settle(draft: Draft, entry: dict[str, Any]) -> None:
    if entry["effect"] is not None:
        draft.settle(entry["effect"])


def _ready(draft: Draft, entry: dict[str, Any], message: NormalizedMessage) -> None:
    settled = {**entry, "effect": None, "message": message.model_dump(mode="json")}
    draft.set(settled, "perception", "held", message.ref.message_id)


def _judged(draft: Draft, entry: dict[str, Any], result: ToolResult) -> NormalizedMessage:
    """Our message after the outcome; anybody can publish one, so its form is checked again here."""
    number = str(entry["message"]["ref"]["message_id"])
    if result.status != "success":
        code = result.error.code if result.error else result.status
        return _alone(draft, entry, f"{result.status}: {code}", number, result.result_id)
    try:
        form = checked_form(result.data.get("form"))
    except BrokenFormError as error:
        return _alone(draft, entry, f"a broken form: {error}"[:CLIP], number, result.result_id)
    found = compared(_message(entry), form, entry["shown"], asked=entry["asked"])
    missing = f"; to confirm {', '.join(form.to_confirm)}" if form.to_confirm else ""
    draft.reason(f"model.{found.verdict}", f"{found.why}; plan {', '.join(form.plan) or 'none'}{missing}", number,
                 result.result_id)  # fmt: skip
    if found.refused:
        draft.reason("model.refused", f"stands neither in the message nor in what may be meant: "
                     f"{', '.join(found.refused)}"[:CLIP], number, result.result_id)  # fmt: skip
    return found.message


def _alone(draft: Draft, entry: dict[str, Any], why: str, *evidence: str) -> NormalizedMessage:
    message = _message(entry)
    if str(entry["effect"]).startswith(remembered.RECALL_KIND):
        remembered.unanswered(draft, message.ref.message_id, why, *evidence)
        return message
    draft.reason("model.absent", f"the embedded reading alone: {why}", *evidence)
    return message.model_copy(update={"marks": (*message.marks, ABSENT)})


def _message(entry: dict[str, Any]) -> NormalizedMessage:
    return NormalizedMessage.model_validate_json(orjson.dumps(entry["message"]))
