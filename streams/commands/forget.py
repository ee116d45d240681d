"""`interlock forget` and `interlock hold`: a customer's right to be forgotten, and the law that may forbid it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from streams.commands import CommandError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from memory.sealing import KeyStore
    from streams.privacy.forget import Plan, Proof
    from streams.reader import LogSource
    from streams.runtime.ports import Outgoing
    from streams.settings import Settings

Customer = Annotated[str, typer.Argument(help="shop/channel/sender; linked conversations are theirs, too.")]
Reason = Annotated[str, typer.Option(help="Why; it stands in the register.")]
By = Annotated[str, typer.Option(help="Who says so; default: the user's name.")]
WAIT_S = 20.0
LISTED = 20


def forget(
    customer: Customer,
    reason: Reason,
    by: By = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, only show what would be done.")] = False,
    letter: Annotated[list[str] | None, typer.Option(help="A dead letter that names nobody and is theirs.")] = None,
    drop_open_work: Annotated[bool, typer.Option(help="Also when a call, a send or a review is under way.")] = False,
) -> None:
    """Forget a customer: destroy keys, clear stores and states, and prove it. It can't be undone. Role `privacy`."""
    from memory.key_file import open_key_store
    from streams.commands._reading import cluster
    from streams.privacy.forget import OpenWorkError, plan
    from streams.privacy.rights import may_forget
    from streams.reader import KafkaSource

    settings = cluster()
    who = by or os.environ.get("USER") or "operator"
    may_forget(settings.unseal_roles, who)
    keys = open_key_store(settings.data_dir, settings.master_key_file)
    try:
        with KafkaSource(settings) as source:
            found = plan(source, keys, customer, letter or ())
            typer.echo("\n".join(told(found)))
            if not yes:
                typer.echo("nothing was done; --yes does it, for good")
                return
            if found.open_work and not drop_open_work:
                message = "wait until it has ended, or give --drop-open-work"
                raise OpenWorkError(message)
            proof = _forget(settings, source, keys, found, who, reason)
    finally:
        keys.close()
    _say(proof)


def told(found: Plan) -> list[str]:
    """What would be forgotten; no value is shown."""
    sealed = f"{found.seals} seals and {len(found.letters)} dead letters without a key open now"
    lines = [f"{len(found.conversations)} conversations: {', '.join(found.conversations)}",
             f"{sealed}, with {len(found.needles.values)} sensitive values"]  # fmt: skip
    return [*lines, *(f"under way: {one}" for one in found.open_work)]


def _forget(settings: Settings, source: LogSource, keys: KeyStore, found: Plan, by: str, reason: str) -> Proof:
    import asyncio

    from streams.clock import SystemClock, fresh_id
    from streams.privacy.forget import carry_out, prove
    from streams.privacy.stores import clear_files
    from streams.writer import write_all

    def publish(records: Sequence[Outgoing]) -> None:
        write_all(settings, records)

    gone = carry_out(found, keys, publish, by, reason, fresh_id("forget"), SystemClock().now_ms(), settings.partitions)
    facts, relations, files = asyncio.run(_clear(settings, found.conversations))
    rows = clear_files(settings.data_dir, found.conversations)
    typer.echo(f"{gone} keys destroyed; {facts} facts, {relations} relations, {rows} rows of the gateway removed;"
               f" {files} backups written again")  # fmt: skip
    _wait(source, found)
    return prove(source, keys, found, _folders(settings))


async def _clear(settings: Settings, conversations: Sequence[str]) -> tuple[int, int, int]:
    from streams.memory_stores import open_stores
    from streams.privacy.stores import clear

    stores = open_stores(settings)
    try:
        return await clear(stores, settings.data_dir / "backups", conversations)
    finally:
        await stores.close()


def _wait(source: LogSource, found: Plan) -> None:
    import time

    from streams.privacy.forget import emptied

    until = time.monotonic() + WAIT_S
    while not emptied(source, found):
        if time.monotonic() > until:
            typer.echo("the states are not emptied yet: no worker runs; they will be when one does")
            return
        time.sleep(0.3)


def _folders(settings: Settings) -> list[Path]:
    """Where clear values could stand in files; the broker's own files are read as topics."""
    snapshots = settings.snapshot_dir or settings.data_dir / "snapshots"
    return [folder for folder in (snapshots, settings.data_dir / "stores", settings.data_dir / "backups",
                                  *settings.data_dir.glob("*.sqlite*")) if folder.exists()]  # fmt: skip


def _say(proof: Proof) -> None:
    for place, value in proof.found[:LISTED]:
        typer.echo(f"still readable at {place}: a value of {len(value)} characters")
    for where in proof.opens[:LISTED]:
        typer.echo(f"still opens: {where}")
    if proof.found or proof.opens:
        message = f"{len(proof.found)} places are still readable and {len(proof.opens)} seals open"
        raise CommandError(message)
    typer.echo(f"proved: of {proof.values} values none is readable in any topic, snapshot or store, and no seal opens")


def hold(
    customer: Customer,
    reason: Reason,
    by: By = "",
    release: Annotated[bool, typer.Option("--release", help="End the hold.")] = False,
) -> None:
    """Put a customer under a legal hold: `forget` refuses them until it is released. Role `privacy`."""
    from memory.key_file import open_key_store
    from memory.sealing import Hold
    from schemas.system import SystemEvent
    from streams.clock import SystemClock, fresh_id
    from streams.commands._reading import cluster
    from streams.privacy.records import event_record
    from streams.privacy.rights import may_forget
    from streams.writer import write_all

    settings = cluster()
    who, now = by or os.environ.get("USER") or "operator", SystemClock().now_ms()
    may_forget(settings.unseal_roles, who)
    keys = open_key_store(settings.data_dir, settings.master_key_file)
    try:
        if release and keys.held(customer) is None:
            message = f"{customer} is under no hold"
            raise CommandError(message)
        event = SystemEvent(event_id=fresh_id("hold"), kind="hold_released" if release else "held", subject=customer,
                            by=who, at=now, data={"reason": reason})  # fmt: skip
        keys.hold(customer, None if release else Hold(reason, who, now))
        write_all(settings, [event_record(event, customer, settings.partitions)])
    finally:
        keys.close()
    typer.echo(f"{customer}: {'the hold is released' if release else 'held'}")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(forget)
    app.command()(hold)
