"""What a conversation's state adds to the words of one message: what was asked for, and what the words point to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agents.remembered import recalled_for
from agents.understanding import things
from agents.understanding.lexicon import lexicon
from agents.understanding.port import Context, Reading
from agents.understanding.references import Resolved, resolve
from memory.turns import Turn
from memory.windows import Window, choose
from schemas.step import Draft

_ANSWERS = frozenset({"inform", "confirm", "deny", "greeting", "thanks", "out_of_scope", "hurry_up"})  # begin no topic
BEFORE_MS = 900_000  # a message so much older than the session is of one before: half an hour of silence parts them
NAMED = 12  # message ids that a reason names; the rest is counted


def context_of(draft: Draft) -> Context:
    """What the active flow stands at. It may be older than the question that the customer answers (case B25)."""
    flows = draft.get("planning", "flows", default=())
    spoken = draft.get("perception", "language")
    if not flows:
        return Context(language=spoken)
    flow, node = flows[-1]["flow"], flows[-1]["node"]
    # While a tool or a reviewer is waited for, nothing was asked: a bare "1" must not be read as an answer.
    asked = flows[-1].get("waiting_for") == "customer"
    expects = next((kind for kind, names in lexicon().expects if names.search(node)), None) if asked else None
    return Context(flow, node, expects, spoken)


def window_of(draft: Draft, reading: Reading, text: str, message_id: str) -> Window:
    """What of the conversation so far is looked at for `text` (R-000-27)."""
    turns = things.turns(draft.state, message_id)
    intent = reading.wishes[0].intent if reading.wishes else ""
    begins = intent not in _ANSWERS and (not turns or turns[-1].intent != intent)
    recalled = [fact["summary"] for fact in recalled_for(draft.state, message_id)]
    window = choose(turns, text, new_intent=begins, recall=lambda _, most: recalled[:most])
    return replace(window, earlier=_earlier(draft, turns))


def _earlier(draft: Draft, turns: Sequence[Turn]) -> int:
    """The number of the last turn before this session, 0 without one; customers' clocks need not agree with ours."""
    since = draft.get("session", "started", default=0) - BEFORE_MS
    return max((turn.number for turn in turns if turn.said[0].at < since), default=0)


def looked_up(draft: Draft, reading: Reading, text: str, message_id: str, *, far: bool = True) -> Resolved:
    """The reading with what it points to filled in, and the reasons: which window, what it kept, what was found.

    `far`: of the past, the shop's record may tell what is meant, too; not while the stores are still to be asked.
    """
    window = window_of(draft, reading, text, message_id)
    found = _resolved(draft, reading, window, message_id, far=far)
    kept = [one.message_id for turn in window.kept for one in turn.said]
    # Without anything that was said before there is nothing to choose from, and nothing to explain.
    if kept or window.dropped or window.recalled:
        draft.reason(window.rule, f"{window.reason}; {window.tokens} of {window.budget} tokens; dropped "
                     f"{_named(window.dropped)}", *kept[:NAMED])  # fmt: skip
    if found.status in ("filled", "ambiguous", "unknown"):
        options = f": {', '.join(found.options)}" if found.options else ""
        draft.reason(f"perception.reference_{found.status}", f"{found.why}{options}", message_id,
                     *([found.message_id] if found.message_id else []))  # fmt: skip
    return found


def _resolved(draft: Draft, reading: Reading, window: Window, message_id: str, *, far: bool) -> Resolved:
    """Of the past, what was recalled for this message stands before all else that is known of the customer."""
    near = [*things.known(draft.state), *things.recalled(recalled_for(draft.state, message_id))]
    record = things.profiled(draft.state)
    if window.kind != "long_range":  # then it tells values, and names nothing
        return resolve(reading, window, [*near, *record])
    found = resolve(reading, window, near)
    return resolve(reading, window, [*near, *record]) if found.status == "unknown" and far and record else found


def _named(ids: tuple[str, ...]) -> str:
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return f"{', '.join(ids[:NAMED])}{more}" or "none"
