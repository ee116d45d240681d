"""`interlock dlq`: dead letters listed, shown byte for byte, driven back in; and a paused topic resumed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from streams.commands import CommandError
from streams.commands._reading import Json, cluster, line

if TYPE_CHECKING:
    from memory.sealing import KeyStore
    from streams.replay.letters import Letter
    from streams.settings import Settings

dlq = typer.Typer(help="Dead letters: what could not be processed, and why.", no_args_is_help=True)
Topic = Annotated[str | None, typer.Option(help="Only of this topic, such as channel.events.")]
Reference = Annotated[str, typer.Argument(help="As `interlock dlq list` shows it: channel.events.dlq:3:17.")]


@dlq.command("list")
def list_(topic: Topic = None, as_json: Json = False) -> None:
    """List dead letters with reason and where the record stood, and the topic partitions that are paused."""
    from streams.reader import KafkaSource
    from streams.replay.letters import letters, paused

    with KafkaSource(cluster()) as opened:
        found = sorted(letters(opened, [topic] if topic else None), key=lambda one: one.record.time)
        stopped = paused(opened)
    for one in found:
        if as_json:
            line({"reference": one.reference, "time": one.record.time, **one.letter.model_dump(exclude={"seal"})})
        else:
            typer.echo(text_line(one))
    if not as_json:
        typer.echo(f"{len(found)} dead letters")
        for name, partition, offset in stopped:
            typer.echo(f"paused: {name} {partition} since offset {offset} (`interlock dlq resume {name} {partition}`)")


def text_line(one: Letter) -> str:
    """A dead letter on one line."""
    from streams.replay.words import clip, when

    letter = one.letter
    field = f" {letter.field}" if letter.field else ""
    key = "no key" if one.key is None else repr(one.key)[1:]
    origin = f"{letter.topic} {letter.partition}:{letter.offset}"
    why = f"{letter.code}{field}: {clip(letter.reason)}"
    return "  ".join([when(one.record.time), one.reference, origin, key, f"{letter.size} bytes", why])


@dlq.command()
def show(
    reference: Reference,
    as_hex: Annotated[bool, typer.Option("--hex", help="Bytes as a hex dump, also when they are text.")] = False,
) -> None:
    """Show one dead letter with its exact bytes: opens its seal with the installation's keys."""
    from streams.reader import KafkaSource
    from streams.replay.letters import exact_bytes, find_letter

    settings = cluster()
    with KafkaSource(settings) as opened:
        one = find_letter(opened, reference)
    typer.echo(text_line(one))
    for name, value in one.letter.headers:
        typer.echo(f"header {name}: {_header(value)}")
    typer.echo("\n".join(shown(exact_bytes(one, _keys(settings)), as_hex=as_hex)))


def shown(value: bytes | None, *, as_hex: bool) -> list[str]:
    """The bytes as text when they are printable UTF-8, else as a hex dump."""
    if value is None:
        return ["the record had no value"]
    try:
        text = None if as_hex else value.decode()
    except UnicodeDecodeError:
        text = None
    if text is not None and all(char.isprintable() or char in "\n\t" for char in text):
        return [text]
    rows = [value[start : start + 16] for start in range(0, len(value), 16)]
    return [f"{number * 16:08x}  {row.hex(' '):<47}  {_printable(row)}" for number, row in enumerate(rows)]


def _printable(row: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)


def _header(value: str | None) -> str:
    import base64

    return "null" if value is None else repr(base64.b64decode(value))[1:]


@dlq.command()
def redrive(
    references: Annotated[list[str] | None, typer.Argument(help="One or more references.")] = None,
    topic: Topic = None,
) -> None:
    """Write dead letters again as new inputs at the end of their topics: the same bytes, key and headers.

    Give references, or --topic for all of a topic. Each new record names the dead letter that it came from.
    """
    from streams.reader import KafkaSource
    from streams.replay.letters import find_letter, letters
    from streams.replay.letters import redrive as again
    from streams.writer import write_all

    if bool(references) == (topic is not None):
        message = "give references, or --topic for all dead letters of a topic"
        raise CommandError(message, 2)
    settings = cluster()
    with KafkaSource(settings) as opened:
        found = list(letters(opened, [topic])) if topic else [find_letter(opened, one) for one in references or []]
        counts = {one.letter.topic: opened.partitions(one.letter.topic) for one in found}
    keys = _keys(settings)
    records = [again(one, keys, counts[one.letter.topic]) for one in found]
    for name, partition, offset in write_all(settings, records):
        typer.echo(f"{name} {partition}:{offset}")
    typer.echo(f"{len(records)} records written")


@dlq.command()
def resume(
    topic: Annotated[str | None, typer.Argument(help="The paused topic.")] = None,
    partition: Annotated[int | None, typer.Argument(help="Its partition.", min=0)] = None,
    every: Annotated[bool, typer.Option("--all", help="All that are paused.")] = False,
    by: Annotated[str, typer.Option(help="Who says so; default: the user's name.")] = "",
) -> None:
    """Let a topic partition go on that was paused by too many dead letters in a row."""
    from streams.clock import SystemClock, fresh_id
    from streams.reader import KafkaSource
    from streams.replay.letters import paused, resumed
    from streams.writer import write_all

    if every == (topic is not None):
        message = "name a topic (and partition), or give --all"
        raise CommandError(message, 2)
    settings = cluster()
    with KafkaSource(settings) as opened:
        stopped = [one[:2] for one in paused(opened) if every or (one[0] == topic and partition in (None, one[1]))]
    if not stopped:
        what = "nothing" if every else f"{topic} {'' if partition is None else partition}".strip()
        message = f"{what} is paused" if every else f"{what} is not paused (`interlock dlq list` shows what is)"
        raise CommandError(message)
    who, now = by or os.environ.get("USER") or "operator", SystemClock().now_ms()
    write_all(settings, [resumed(name, number, who, fresh_id("resume"), now) for name, number in stopped])
    for name, number in stopped:
        typer.echo(f"{name} {number} goes on")


def _keys(settings: Settings) -> KeyStore:
    from memory.key_file import open_key_store

    return open_key_store(settings.data_dir, settings.master_key_file)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(dlq, name="dlq")
