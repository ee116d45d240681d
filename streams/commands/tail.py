"""`interlock tail`: a topic's records as they come, readable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from streams.commands import CommandError
from streams.commands._reading import Json, line, source

if TYPE_CHECKING:
    from streams.reader import KafkaSource, Place
    from streams.runtime.ports import Record


def tail(
    topic: Annotated[str, typer.Argument(help="The topic's name, such as messages.normalized.")],
    start: Annotated[
        str, typer.Option("--from", help="`end`, `start`, an offset, or a time such as 2026-01-05T02:00.")
    ] = "end",
    key: Annotated[str | None, typer.Option(help="Only this conversation: shop/channel/sender.")] = None,
    until_end: Annotated[bool, typer.Option("--until-end", help="Stop at the end that the topic has now.")] = False,
    as_json: Json = False,
) -> None:
    """Print a topic's records, one line each; Ctrl-C stops it. Joins no group and commits nothing."""
    if until_end and start == "end":
        start = "start"
    with source() as opened:
        places = places_of(opened, topic, start, key)
        wanted = None if key is None else key.encode()
        try:
            for record in opened.read(places) if until_end else opened.follow(places):
                if record is not None and wanted in (None, record.key):
                    _print(record, as_json=as_json)
        except KeyboardInterrupt:
            raise typer.Exit from None


def places_of(opened: KafkaSource, topic: str, start: str, key: str | None) -> list[Place]:
    """Where to begin in each partition. Raises CommandError for a topic or start that there is not."""
    from schemas.partition import place

    count = opened.partitions(topic)
    if not count:
        message = f"there is no topic {topic!r} on the cluster; `interlock topics check` says what should be there"
        raise CommandError(message)
    numbers = range(count) if key is None else [place(key, count)]
    return [(topic, number, _offset(opened, topic, number, start)) for number in numbers]


def _offset(opened: KafkaSource, topic: str, partition: int, start: str) -> int:
    if start == "end":
        return opened.bounds(topic, partition)[1]  # a number: "the end" would be wherever it is when a fetch begins
    if start == "start":
        return opened.bounds(topic, partition)[0]
    if start.isascii() and start.isdigit():
        return int(start)
    return opened.at_time(topic, partition, _millis(start))


def _millis(text: str) -> int:
    from datetime import UTC, datetime

    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        message = f"--from {text!r}: expected `end`, `start`, an offset, or a time such as 2026-01-05T02:00 (UTC)"
        raise CommandError(message, 2) from None
    return int((given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp() * 1000)


def _print(record: Record, *, as_json: bool) -> None:
    if as_json:
        from streams.commands.replay import as_object
        from streams.replay.chain import step_of

        line(as_object(step_of(record)))
    else:
        typer.echo(text_line(record))


def text_line(record: Record) -> str:
    """Time, place, key and what the record says; a value that is no JSON is shown as bytes."""
    from streams.replay.chain import step_of
    from streams.replay.words import SHORT, describe, when

    step = step_of(record)
    if step.value is None:
        said = "no value" if record.value is None else f"{len(record.value)} bytes {record.value[:SHORT]!r}"
    else:
        said = describe(step)
    return f"{when(record.time)}  {record.partition}:{record.offset}  {step.key or '-'}  {said}"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(tail)
