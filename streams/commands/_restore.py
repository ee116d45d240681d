"""`interlock memory restore`: a backup of the stores brought back, shown first (R-004-11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from streams.commands import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from memory.key_file import FileKeyStore
    from memory.restoring import Changes
    from schemas.memory import MemoryWrite
    from streams.memory_restore import Contents, File, Restore
    from streams.memory_stores import MemoryStores
    from streams.settings import Settings

SHOWN = 20  # keys of a shop that are listed


def restore(paths: Sequence[Path], *, yes: bool, by: str, reason: str) -> None:
    """Show what is in the files and what they would change; with `yes`, back up, tell the register, and restore."""
    import asyncio

    from streams.commands._reading import cluster
    from streams.memory_restore import files_of, opened
    from streams.memory_stores import open_stores

    settings, files = cluster(), files_of(paths)
    keys = _keys(settings)

    async def work() -> None:
        stores = open_stores(settings)
        try:
            with opened(files, keys.forgotten, settings.data_dir / "backups") as found:
                planned = await found.planned(stores, _register)
                typer.echo("\n".join((*map(_content, found.contents), *told(planned))))
                if yes:
                    await _carried_out(settings, stores, found, files, by, reason)
                else:
                    typer.echo("Nothing was changed. --yes does it.")
        finally:
            await stores.close()

    try:
        asyncio.run(work())
    finally:
        keys.close()


async def _carried_out(settings: Settings, stores: MemoryStores, found: Restore, files: Sequence[File], by: str,
                       reason: str) -> None:  # fmt: skip
    import asyncio

    from streams.clock import SystemClock, fresh_id
    from streams.memory_backup import back_up
    from streams.memory_restore import restored_event
    from streams.writer import write_all

    now = SystemClock().now_ms()
    before = await back_up(stores, settings.data_dir / "backups", found.shops, now, settings.backups_kept,
                           [file.path.parent for file in files])  # fmt: skip
    typer.echo(f"backup: {before}")
    # what is not in the register is not done
    await asyncio.to_thread(write_all, settings, [restored_event(found, before, fresh_id("restore"), by, reason, now)])
    await found.carry_out(stores, _register)
    for name, count in found.done.items():
        typer.echo(f"{name}: {count} restored")
    typer.echo(f"`interlock memory restore {before} --yes` takes it back")


def _keys(settings: Settings) -> FileKeyStore:
    """The keys know who was forgotten: without them nothing is restored."""
    from memory.key_file import open_key_store

    if not (settings.data_dir / "keys.sqlite").exists():
        message = (f"{settings.data_dir / 'keys.sqlite'} is not there: it knows which customers were forgotten, and"
                   " without it a backup would bring them back; put it there first")  # fmt: skip
        raise CommandError(message)
    return open_key_store(settings.data_dir, settings.master_key_file)


def _register() -> Iterable[MemoryWrite]:
    from streams.commands._reading import source
    from streams.replay.memory import read_register

    with source() as opened:
        register = read_register(opened).register
    return [write for key in register.keys for write in register.history(key)]


def _content(one: Contents) -> str:
    from streams.replay.words import when

    if one.file.kind == ".relations":
        what = f"{one.edges} relations"
    else:
        customers, last = {fact.customer for fact in one.facts}, max((fact.at for fact in one.facts), default=0)
        what = f"{len(one.facts)} facts of {len(customers)} customers, the last of {when(last)}"
    gone = f"; {one.left_out} of {one.forgotten} forgotten customers are left out" if one.left_out else ""
    return f"{one.file.name}: shop {one.file.shop}, {what}{gone}"


def told(planned: dict[str, Changes]) -> list[str]:
    """What would be known otherwise, by shop and key."""
    lines = []
    for shop, found in planned.items():
        lines.append(f"shop {shop}: {found.same} keys stay as they are, {len(found.lines)} change"
                     " (what the register wrote since the backup stands on top)")  # fmt: skip
        shown = list(found.lines.items())[:SHOWN]
        lines += [f"  {key}: {before or 'nothing'} -> {after or 'nothing'}" for key, (before, after) in shown]
        if len(found.lines) > SHOWN:
            lines.append(f"  and {len(found.lines) - SHOWN} more")
    return lines
