"""`interlock replay`: what happened in a session, step by step, from the topics alone (R-002-17, R-003-30)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streams.commands._reading import Json, line, source

if TYPE_CHECKING:
    from streams.reader import LogSource
    from streams.replay.chain import Step


def replay(
    session: Annotated[str, typer.Argument(help="A session id, or a conversation: shop/channel/sender.")],
    internals: Annotated[bool, typer.Option(help="Under each decision, its reasons and what it changed.")] = False,
    as_json: Json = False,
) -> None:
    """Print a session step by step: message, intent and evidence, plan, call, result, reply, receipts, health.

    Each step has its topic, partition, offset and time (UTC), and comes after what caused it. Nothing is touched.
    """
    with source() as opened:
        chain = chain_of(opened, session)
    if as_json:
        for step in chain:
            line(as_object(step))
    else:
        typer.echo("\n".join(text_lines(session, chain, internals=internals)))


def chain_of(opened: LogSource, name: str) -> list[Step]:
    """The chain of a session or a whole conversation. Raises NotFoundError."""
    from streams.replay.chain import build_chain
    from streams.replay.find import NotFoundError, collect, conversation_stretch, session_stretch

    if "/" in name or name.startswith("~"):
        chain = build_chain(collect(opened, conversation_stretch(opened, name)))
    else:
        chain = build_chain(collect(opened, session_stretch(opened, name)), name)
    if not chain:
        message = f"{name}: the topics hold nothing of it"
        raise NotFoundError(message)
    return chain


def as_object(step: Step) -> dict[str, Any]:
    """A step as JSON, with what it says in words."""
    from streams.replay.words import describe

    return {**asdict(step), "words": describe(step)}


def text_lines(name: str, chain: Sequence[Step], *, internals: bool = False) -> list[str]:
    """One line a step: time, place, words; with internals the reasons and changes of each decision below it."""
    from streams.replay.chain import coordinates
    from streams.replay.find import session_time
    from streams.replay.words import describe, inside, when

    width = max(len(coordinates(step)) for step in chain)
    named = (step.get("session_id") for step in chain)
    sessions = [found for found in dict.fromkeys(named) if isinstance(found, str) and session_time(found) is not None]
    whose = f"conversation {chain[0].key}, session {', '.join(sessions) or 'none'}"
    lines = [f"{name}: {len(chain)} steps, {whose}, times in UTC"]
    for step in chain:
        lines.append(f"{when(step.time)}  {coordinates(step):<{width}}  {describe(step)}")
        if internals:
            lines.extend(f"{'':<25}{'':<{width}}  {words}" for words in inside(step))
    return lines


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(replay)
