"""`interlock produce`: a file of channel events, checked whole, then through intake at full speed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streams.commands import CommandError
from streams.commands._reading import cluster

if TYPE_CHECKING:
    from schemas.events import RawEvent
    from streams.runtime.ports import Outgoing
    from streams.settings import Settings

SHOWN = 20  # bad lines that are printed
BAD_LINES = 2
SKIPPED_LINES = 3


def produce(
    file: Annotated[Path, typer.Argument(help="JSON Lines or CSV of channel events.", exists=True, dir_okay=False)],
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Send the good lines; exit status 3.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Only check the lines.")] = False,
) -> None:
    """Send a file of channel events: every line is checked first, and nothing is sent when one is bad.

    Exit status: 0 all sent; 2 bad lines, nothing sent; 3 sent without the bad lines; 1 the broker took not all.
    """
    if not file.is_file():
        message = f"{file} is no regular file: it is read twice, once to check and once to send"
        raise typer.BadParameter(message)
    good, bad = count_lines(file)
    if bad and not skip_bad:
        typer.echo(f"bad lines: {bad}, good ones: {good}; nothing was sent", err=True)
        raise typer.Exit(BAD_LINES)
    if check:
        typer.echo(f"good lines: {good}, bad ones: {bad}")
        raise typer.Exit(SKIPPED_LINES if bad else 0)
    settings = cluster()
    sent = _send(settings, file, good)
    typer.echo(f"events sent: {sent}" + (f", bad lines skipped: {bad}" if bad else ""))
    if sent != good:
        message = f"{file} changed while it was read: {good} good lines when it was checked"
        raise CommandError(message)
    if bad:
        raise typer.Exit(SKIPPED_LINES)


def count_lines(file: Path) -> tuple[int, int]:
    """How many lines are good and bad; the first bad ones and the first repeated ids are printed."""
    from streams.produce import BadLine, read_lines

    good, bad, again, seen = 0, list[str](), list[str](), set[int]()
    for number, found in read_lines(file):
        if isinstance(found, BadLine):
            bad.append(str(found))
            continue
        good += 1
        # Only for the warning: a false match of two hashes costs a line on the screen, never an event.
        event = hash((found.conversation, found.id))  # a number, as a file can have millions of them
        if event in seen:
            again.append(
                f"line {number}, id: on an earlier line too; one id of one sender is one event, the first counts"
            )
        seen.add(event)
    for told in (bad, again):
        for one in told[:SHOWN]:
            typer.echo(f"{file.name}: {one}", err=True)
        if len(told) > SHOWN:
            typer.echo(f"{file.name}: and {len(told) - SHOWN} more", err=True)
    return good, len(bad)


def _send(settings: Settings, file: Path, total: int) -> int:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from streams.intake import TOPIC
    from streams.reader import KafkaSource
    from streams.writer import write_all

    with KafkaSource(settings) as opened:
        partitions = opened.partitions(TOPIC)
    if not partitions:
        message = f"there is no topic {TOPIC}: run `interlock topics apply`"
        raise CommandError(message)
    columns = (TextColumn("sending"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("sending", total=total)
        records = _records(settings, file, partitions)
        return len(write_all(settings, records, lambda done: progress.update(task, completed=done)))


def _records(settings: Settings, file: Path, partitions: int) -> Iterator[Outgoing]:
    from memory.key_file import open_key_store
    from streams.clock import SystemClock
    from streams.intake import channel_event_record, intake

    keys, clock = open_key_store(settings.data_dir, settings.master_key_file), SystemClock()
    for event in _events(file):
        yield channel_event_record(intake(event, keys), partitions, clock.now_ms())


def _events(file: Path) -> Iterator[RawEvent]:
    from streams.produce import BadLine, read_lines

    return (found for _, found in read_lines(file) if not isinstance(found, BadLine))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(produce)
