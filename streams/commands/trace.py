"""`interlock trace`: tells a producer what became of its event."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from streams.commands._reading import Json, line, source

if TYPE_CHECKING:
    from streams.replay.trace import Trace


_TOLD = frozenset({"tools.calls", "tools.results", "human.requests", "human.decisions"})


def trace(
    event: Annotated[str, typer.Argument(help="The event id (ev-…), or the id that the producer gave it.")],
    conversation: Annotated[
        str | None, typer.Option(help="Only of this sender, shop/channel/sender: faster, and no other's same id.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell what became of an event: accepted, dead-lettered and why, a repeat, answered by what, delivered how far."""
    from streams.replay.trace import trace_event

    with source() as opened:
        traces = trace_event(opened, event, conversation)
    seen: set[str] = set()
    for found in traces:
        if as_json:
            line(asdict(found))
        else:
            typer.echo("\n".join(text_lines(found, again=found.event.key in seen)))
        seen.add(found.event.key)


def text_lines(found: Trace, *, again: bool = False) -> list[str]:
    """A trace in words."""
    from streams.replay.chain import coordinates
    from streams.replay.trace import rules_of
    from streams.replay.words import clip, describe, when

    event = found.event
    place = f"{coordinates(event)}, {when(event.time)} UTC, {event.key or 'no key'}"
    lines = [f"{'sent again' if again else 'accepted'}: {place}, {describe(event)}"]
    if found.outcome == "waiting":
        lines.append("not handled yet: no decision stands on state.diffs")
    if found.decision is not None:
        rules = ", ".join(dict.fromkeys(rules_of(found.decision)))
        lines.append(f"{found.outcome.replace('_', ' ')}: {coordinates(found.decision)}, rules {rules}")
    if found.dead_letter is not None:
        letter = found.dead_letter
        what = " ".join(filter(None, (letter.get("field"), letter.get("reason"))))
        lines.append(f"why: {letter.get('code')}, {what} (see `interlock dlq show {_reference(letter.at)}`)")
    for answer in found.answers:
        assumed = ", assumed" if answer.assumed else ""
        lines.append(f"answered by {answer.message_id}, {answer.state}{assumed}: “{clip(answer.text)}”")
    told = (step for step in found.chain if step.topic in _TOLD)
    lines.extend(f"  {coordinates(step)}  {describe(step)}" for step in told)
    if found.outcome == "handled" and not found.answers:
        lines.append("no message to the customer followed")
    return lines


def _reference(place: tuple[str, int, int]) -> str:
    return ":".join(map(str, place))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(trace)
