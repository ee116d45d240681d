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
    good, bad = count_lines(file)
    if bad and not skip_bad:
        typer.echo(f"{bad} bad lines, {good} good ones: nothing was sent", err=True)
        raise typer.Exit(BAD_LINES)
    if check:
        typer.echo(f"{good} good lines, {bad} bad ones")
        raise typer.Exit(SKIPPED_LINES if bad else 0)
    settings = cluster()
    sent = _send(settings, file, good)
    typer.echo(f"{sent} events sent" + (f", {bad} bad lines skipped" if bad else ""))
    if bad:
        raise typer.Exit(SKIPPED_LINES)


def count_lines(file: Path) -> tuple[int, int]:
    """How many lines are good and bad; the first bad ones are printed."""
    from streams.produce import BadLine, read_lines

    good = bad = 0
    for _, found in read_lines(file):
        if isinstance(found, BadLine):
            bad += 1
            if bad <= SHOWN:
                typer.echo(f"{file.name}: {found}", err=True)
        else:
            good += 1
    if bad > SHOWN:
        typer.echo(f"{file.name}: and {bad - SHOWN} more", err=True)
    return good, bad


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
    from memory.sealing import open_key_store
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
