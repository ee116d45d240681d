"""What is remembered of a customer: their profile when a session starts, facts when they cite the past (R-003-22).

Both are asked as effects, and what comes back is an input like any other (promise 6). Nothing waits for a profile; a
message that cites the past waits for its facts at most as long as the stores have time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from pydantic import ValidationError

from memory.profile import summarised, text_of
from memory.prompt import PROFILE_TOKENS
from memory.windows import RECALLED, cut_to
from schemas.memory import customer_of
from schemas.sections import Profile, Recalled, RecalledFact
from schemas.step import Draft, Input, State, Step, look
from schemas.tools import PROFILE, RECALL, ToolResult

PROFILE_KIND, RECALL_KIND = "profile", "recall"
INPUTS = ("channel.events", "tools.results")
ACTIVE = 5  # facts that are loaded when a session starts
LOAD_MS = 10_000  # a load that nobody began by then is not begun: the customer may be gone
QUIET_MS = 30_000  # after a failure the stores are not asked again so soon: one wait is enough
ENTRIES = 200  # of each list of a profile that are looked at


def make_step(profile_ms: int) -> Step:
    """The pure step that loads the profile; `profile_ms` is the time that one answer may take, 0: none is loaded."""

    def step(draft: Draft, cause: Input) -> None:
        if isinstance(cause.value, ToolResult):
            if cause.value.tool == PROFILE:
                _loaded(draft, cause.value)
        elif profile_ms and _began(draft):
            _load(draft, profile_ms)

    return step


def _began(draft: Draft) -> bool:
    """Whether a session began in this decision."""
    session = draft.get("session", "id")
    return session is not None and session != look(draft.origin, ("session", "id"))


def _load(draft: Draft, profile_ms: int) -> None:
    shop, customer = customer_of(draft.conversation)
    effect = f"profile-{draft.get('session', 'id')}"
    request = {"call_id": effect, "tool": PROFILE, "session_id": draft.get("session", "id"), "shop": shop,
               "customer": customer, "top": ACTIVE}  # fmt: skip
    draft.effect(effect, PROFILE_KIND, key=effect, timeout_ms=profile_ms, deadline=draft.now + LOAD_MS, request=request)
    draft.reason("memory.profile_asked", "a session began", effect)


def _loaded(draft: Draft, result: ToolResult) -> None:
    """What came is laid over what was there: a part that could not be loaded keeps its old value, and its age."""
    if not draft.settle(result.call_id):
        draft.reason("memory.profile_repeated", "nobody asked for it, or it is here already", result.result_id)
        return
    try:
        profile = _merged(draft, result)
    except (ValidationError, TypeError, KeyError, AttributeError) as error:
        draft.reason("memory.profile_unavailable", f"a broken answer: {type(error).__name__}", result.result_id)
        return
    draft.set(profile, "memory", "profile")
    for what, why in profile["unavailable"].items():
        part = "profile" if what == "crm" else "recall"
        draft.reason(f"memory.{part}_unavailable", f"{part} unavailable: {why}", result.result_id)
    if "crm" not in profile["unavailable"]:
        left = ", ".join(f"{number} {name}" for name, number in profile["left_out"].items())
        told = f"{len(profile['orders'])} orders, {len(profile['problems'])} problems, {len(profile['facts'])} facts"
        draft.reason("memory.profile", f"{told}; left out: {left or 'nothing'}", result.result_id)


def _merged(draft: Draft, result: ToolResult) -> dict[str, Any]:
    data, before = result.data, draft.get("memory", "profile") or {}
    why = result.error.message if result.error else result.status
    missing = data.get("unavailable", {}) if result.status == "success" else {"crm": why, "facts": why}
    fields: dict[str, Any] = {"loaded_at": 0, **before, "session_id": draft.get("session", "id") or "none"}
    if "crm" not in missing:
        seal = result.seal.model_dump(mode="json") if result.seal else None
        fields |= {**summarised(_read(data["profile"])), "loaded_at": result.finished_at, "seal": seal}
    if "facts" not in missing:
        fields["facts"] = facts_of(data["facts"], ACTIVE)
    fields["unavailable"] = {str(name): str(text) for name, text in missing.items()}
    return Profile.model_validate_json(orjson.dumps(fields)).model_dump(mode="json")


def _read(given: Mapping[str, Any]) -> dict[str, Any]:
    """The shop's answer in our words; what has another shape is left out. Raises for what is no profile at all."""
    orders = [{"order_id": str(one["order_id"]), **{name: str(one.get(name, "")) for name in ("status", "items")}}
              for one in given["orders"][:ENTRIES]]  # fmt: skip
    return {"name": str(given.get("name", "")), "level": str(given.get("level", "")), "orders": orders,
            "addresses": [str(one) for one in given["addresses"][:ENTRIES]],
            "problems": [str(one) for one in given["problems"][:ENTRIES]]}  # fmt: skip


def facts_of(given: Sequence[Mapping[str, Any]], most: int) -> list[dict[str, Any]]:
    """Facts as the state keeps them. Raises ValidationError for what is none."""
    return [RecalledFact.model_validate_json(orjson.dumps(one)).model_dump(mode="json") for one in given[:most]]


def profile_text(state: State) -> str:
    """The profile for a prompt, with what the memory writer has learnt laid over it (R-003-23); empty without any."""
    memory = state["memory"]
    known = [str(entry["value"]["summary"]) for entry in memory["known"].values()
             if entry["value"] is not None and entry["value"].get("summary")]  # fmt: skip
    text = text_of(memory.get("profile") or {}, dict.fromkeys(known[-ENTRIES:]))
    return cut_to(text, PROFILE_TOKENS)


def recalled_for(state: State, message_id: str) -> list[dict[str, Any]]:
    """The facts that were recalled for this message."""
    recalled = look(state, ("memory", "recalled")) or {}
    return list(recalled.get("facts", ())) if recalled.get("message_id") == message_id else []


def quiet(draft: Draft) -> str:
    """Why the stores are left alone for a while: they gave no answer a moment ago. Empty: they are asked."""
    last = draft.get("memory", "recalled")
    recent = last is not None and draft.now - last["at"] < QUIET_MS
    return str(last["unavailable"]) if recent else ""


def ask(draft: Draft, message_id: str, text: str, recall_ms: int) -> str:
    """Declare the search for a masked text; the effect's id."""
    shop, customer = customer_of(draft.conversation)
    effect = draft.new_id(RECALL_KIND)
    request = {"call_id": effect, "tool": RECALL, "message_id": message_id, "shop": shop, "customer": customer,
               "text": text, "top": RECALLED}  # fmt: skip
    draft.effect(effect, RECALL_KIND, key=effect, timeout_ms=recall_ms, deadline=draft.now + recall_ms, request=request)
    return effect


def answered(draft: Draft, message_id: str, result: ToolResult) -> None:
    """Keep what was recalled for the message; without an answer that is said, and the message is read without."""
    found, why = [], ""
    if result.status == "success":
        try:
            found = facts_of(result.data["facts"], RECALLED)
        except (ValidationError, TypeError, KeyError) as error:
            why = f"a broken answer: {type(error).__name__}"
    else:
        why = result.error.message if result.error else result.status
    if why:
        unanswered(draft, message_id, why, result.result_id)
        return
    _keep(draft, message_id, found, "")
    told = "; ".join(one["summary"] for one in found) or "nothing is known"
    draft.reason("memory.recalled", told, message_id, result.result_id, *(one["write_id"] for one in found))


def unanswered(draft: Draft, message_id: str, why: str, *evidence: str) -> None:
    """The stated degrade: the conversation goes on without the stores."""
    _keep(draft, message_id, [], why)
    draft.reason("memory.recall_unavailable", f"recall unavailable: {why}", message_id, *evidence)


def _keep(draft: Draft, message_id: str, facts: list[dict[str, Any]], why: str) -> None:
    recalled = Recalled.model_validate_json(orjson.dumps(
        {"at": draft.now, "message_id": message_id, "facts": facts, "unavailable": why}))  # fmt: skip
    draft.set(recalled.model_dump(mode="json"), "memory", "recalled")
