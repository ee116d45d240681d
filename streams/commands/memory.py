"""`interlock memory`: the memory register by key and by trace, rollback of a trace, and restore of a backup."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streams.commands import CommandError
from streams.commands._reading import Json, cluster, line, source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memory.register import Register, Rollback
    from schemas.memory import MemoryRestore, MemoryWrite, Remembered
    from schemas.people import HumanDecision
    from streams.settings import Settings

Key = Annotated[str, typer.Argument(help="shop/channel/sender/kind/subject, such as demo/web/u-1/preference/carrier.")]
Trace = Annotated[str, typer.Option(help="The trace id, 32 hex digits.")]
By = Annotated[str, typer.Option(help="Who says so; default: the user's name.")]
Reason = Annotated[str, typer.Option(help="Why, for the register.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it; without, only show what would be done.")]
WAIT_S = 20.0

memory = typer.Typer(help="What is remembered of customers: the register, and setting things right.",
                     no_args_is_help=True)  # fmt: skip


@memory.command()
def history(key: Key, as_json: Json = False) -> None:
    """Show every write of a key, oldest first, and what staff decided about it (R-004-10)."""
    from streams.replay.memory import conversation_of, read_register
    from streams.replay.memory_entries import entries_of, text_of

    conversation = conversation_of(key)
    with source() as opened:
        found = read_register(opened, conversation)
    entries = entries_of(found.register.history(key), found.decisions, key)
    for entry in entries:
        line(entry) if as_json else typer.echo(text_of(entry))
    if not entries:
        message = f"nothing was ever written under {key}"
        raise CommandError(message)


@memory.command()
def writes(trace: Trace, as_json: Json = False) -> None:
    """Show what a trace wrote, in all keys (R-004-10)."""
    from streams.replay.memory import read_register
    from streams.replay.memory_entries import entry_of, text_of

    with source() as opened:
        found = read_register(opened).register.of_trace(trace)
    for write in found:
        entry = entry_of(write)
        line(entry) if as_json else typer.echo(text_of(entry))
    if not found and not as_json:
        typer.echo(f"trace {trace} wrote nothing")


@memory.command()
def rollback(
    trace: Trace,
    yes: Yes = False,
    over: Annotated[list[str] | None, typer.Option(help="A key to set back although others wrote it later.")] = None,
    by: By = "",
    reason: Reason = "",
) -> None:
    """Set back what a trace wrote (R-004-11): shown first; with --yes after a full backup of the stores.

    The rollback is a write in the register like any other, under a trace of its own that can be rolled back, too.
    """
    from streams.clock import SystemClock, fresh_id
    from streams.replay.memory import decisions_for, read_register

    settings = cluster()
    with source() as opened:
        register = read_register(opened).register
    plan = register.rollback(trace, over or ())
    typer.echo("\n".join(shown(plan, register)))
    if not yes or not plan.restores:
        typer.echo("Nothing was changed." + (" --yes does it." if plan.restores else ""))
        return
    made = decisions_for(plan, fresh_id("dec"), _who(by), _masked(reason), SystemClock().now_ms())
    _decide(settings, made, plan.restores)


@memory.command("set")
def set_(
    key: Key,
    value: Annotated[str, typer.Argument(help='JSON: {"summary": "...", fields}, or null for nothing any more.')],
    yes: Yes = False,
    by: By = "",
    reason: Reason = "",
) -> None:
    """Set a key by hand: a correction, or what only people know, such as a quality check."""
    from schemas.people import HumanDecision
    from streams.clock import SystemClock, fresh_id
    from streams.replay.memory import conversation_of, read_register, setting
    from streams.replay.memory_entries import summary

    conversation, wanted, settings = conversation_of(key), _value(value), cluster()
    with source() as opened:
        register = read_register(opened, conversation).register
    restore = setting(register, key, wanted)
    typer.echo(f"{key}: {summary(restore.now)} -> {summary(restore.value)}")
    if not yes:
        typer.echo("Nothing was changed. --yes does it.")
        return
    decision = HumanDecision(decision_id=fresh_id("dec"), kind="memory", by=_who(by), decided_at=SystemClock().now_ms(),
                             reason=_masked(reason), memory=(restore,))  # fmt: skip
    _decide(settings, {conversation: decision}, (restore,))


@memory.command()
def restore(
    files: Annotated[list[Path], typer.Argument(help="SHOP.facts and SHOP.relations of a backup, or its folder.")],
    yes: Yes = False,
    by: By = "",
    reason: Reason = "",
) -> None:
    """Bring a backup of the stores back (R-004-11): shown first; with --yes after a backup of what stands now.

    What the register wrote since the backup stands on top: to take that back, roll back its trace. A customer who was
    forgotten stays forgotten. The restore is a word in the register, and the backup before it can be restored, too.
    """
    from streams.commands._restore import restore as restored

    restored(files, yes=yes, by=_who(by), reason=_masked(reason))


@memory.command("backups")
def backups_() -> None:
    """List the full backups of the stores, oldest first."""
    from streams.memory_backup import backups
    from streams.settings import Settings

    for path in backups(_folder(Settings())):  # where stores are lost a broker may be away, too
        typer.echo(str(path))


def _decide(settings: Settings, made: dict[str, HumanDecision], restores: Iterable[MemoryRestore]) -> None:
    """Back up, publish, and wait until the owners wrote it."""
    from streams.clock import SystemClock
    from streams.replay.memory import DECISIONS, records_of, trace_of
    from streams.replay.memory_entries import entry_of, text_of
    from streams.writer import write_all

    typer.echo(f"backup: {_backed_up(settings, {name.partition('/')[0] for name in made})}")
    with source() as opened:
        partitions = opened.partitions(DECISIONS)
    write_all(settings, records_of(made.items(), partitions, SystemClock().now_ms()))
    trace = trace_of(next(iter(made.values())).decision_id)
    keys = {restore.key for restore in restores}
    done = _written(trace, keys)
    for write in done:
        typer.echo(text_of(entry_of(write)))
    typer.echo(f"trace {trace}: {len(done)} of {len(keys)} keys written; `interlock memory rollback --trace {trace}` "
               "takes it back")  # fmt: skip
    if len(done) < len(keys):
        message = "the rest was written again meanwhile, or no worker runs: see `interlock memory history`"
        raise CommandError(message)


def _written(trace: str, keys: set[str]) -> list[MemoryWrite]:
    """The writes of the trace, once all keys have theirs, or after a while."""
    import time

    from streams.replay.memory import read_register

    until = time.monotonic() + WAIT_S
    while True:
        with source() as opened:
            found = read_register(opened).register.of_trace(trace)
        if {write.key for write in found} >= keys or time.monotonic() > until:
            return found
        time.sleep(0.3)


def _backed_up(settings: Settings, shops: set[str]) -> Path:
    import asyncio

    from streams.clock import SystemClock
    from streams.memory_backup import alone, back_up
    from streams.memory_stores import open_stores

    async def work() -> Path:
        stores = open_stores(settings)
        try:
            return await back_up(stores, _folder(settings), shops, SystemClock().now_ms(), settings.backups_kept)
        finally:
            await stores.close()

    with alone(_folder(settings)):
        return asyncio.run(work())


def _folder(settings: Settings) -> Path:
    return settings.data_dir / "backups"


def shown(plan: Rollback, register: Register) -> list[str]:
    """What the rollback does to each key, and the later writes that keep it from doing more."""
    from streams.replay.memory_entries import entry_of, summary, text_of

    lines = [f"{restore.key}: {summary(restore.now)} -> {summary(restore.value)}"
             f" (undoes {', '.join(restore.undoes)})" for restore in plan.restores]  # fmt: skip
    for conflict in plan.conflicts:
        lines.append(f"{conflict.key}: left at {summary(register.value(conflict.key))}, written again since; "
                     f"before the trace it was {summary(conflict.value)}")  # fmt: skip
        lines.extend(f"  later: {text_of(entry_of(write))}" for write in conflict.later)
    return lines or [f"trace {plan.trace_id} wrote nothing"]


def _value(text: str) -> Remembered:
    import json

    try:
        value = json.loads(text)
    except ValueError as error:
        message = f"VALUE is no JSON: {error}"
        raise CommandError(message, 2) from error
    if value is not None and (not isinstance(value, dict) or not isinstance(value.get("summary"), str)):
        message = 'VALUE: expected an object with a "summary" in words, or null'
        raise CommandError(message, 2)
    masked: Remembered = _masked(value)
    return masked


def _masked(value: Any) -> Any:
    """What a colleague types is masked as a customer's words are (promise 9)."""
    from memory.masking import mask

    if isinstance(value, str):
        return mask(value)[0]
    if isinstance(value, dict):
        return {name: _masked(part) for name, part in value.items()}
    return [_masked(part) for part in value] if isinstance(value, list) else value


def _who(by: str) -> str:
    return by or os.environ.get("USER") or "staff"


def register(app: typer.Typer) -> None:
    """Add the command group."""
    app.add_typer(memory, name="memory")
