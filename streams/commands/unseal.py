"""`interlock unseal`: what was sealed, in clear, for those who may; the register says who looked, and why."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from streams.commands import CommandError
from streams.commands._reading import Json, line


def unseal(
    conversation: Annotated[str, typer.Argument(help="shop/channel/sender.")],
    reason: Annotated[str, typer.Option(help="Why; it stands in the register.")],
    event: Annotated[str, typer.Option(help="Only this event, message or decision.")] = "",
    at: Annotated[str, typer.Option(help="Only this record: topic:partition:offset.")] = "",
    field: Annotated[
        list[str] | None, typer.Option(help="Only the newest value of this field; may be repeated.")
    ] = None,
    by: Annotated[str, typer.Option(help="Who looks; default: the user's name.")] = "",
    as_json: Json = False,
) -> None:
    """Open a customer's seals. It takes the role `investigator`, or the conversation in hand: address, phone."""
    from memory.key_file import open_key_store
    from streams.clock import SystemClock, fresh_id
    from streams.commands._reading import cluster
    from streams.privacy.unseal import Request, unseal
    from streams.reader import KafkaSource
    from streams.writer import write_all

    settings = cluster()
    request = Request(conversation, by or os.environ.get("USER") or "operator", reason, event, at, tuple(field or ()))
    keys = open_key_store(settings.data_dir, settings.master_key_file)
    try:
        with KafkaSource(settings) as source:
            shown = unseal(source, keys, settings.unseal_roles, request, lambda records: write_all(settings, records),
                           fresh_id("unseal"), SystemClock().now_ms(), settings.partitions)  # fmt: skip
    except ValueError as error:
        raise CommandError(str(error), 2) from None
    finally:
        keys.close()
    for one in shown:
        line(one) if as_json else typer.echo(f"{one['where']} {one.get('field') or one['seal']}: {one['clear']}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(unseal)
