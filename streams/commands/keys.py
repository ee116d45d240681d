"""`interlock keys`: the keys that seals are under, and a new master key for all of them."""

from __future__ import annotations

import typer

keys = typer.Typer(help="The keys of the seals.", no_args_is_help=True)


@keys.command()
def status() -> None:
    """Say how many keys there are, and whether any is still wrapped by an old master key."""
    from memory.key_file import open_key_store
    from streams.settings import Settings

    settings = Settings()
    store = open_key_store(settings.data_dir, settings.master_key_file)
    try:
        typer.echo(f"{store.count()} keys, {store.old()} of them wrapped by an old master key")
    finally:
        store.close()


@keys.command()
def rotate() -> None:
    """Make a new master key and wrap every key by it; running processes take it at once. Safe to run again.

    A master key in INTERLOCK_MASTER_KEY is changed there first, to `new,old`; then this wraps by the new one.
    """
    import os

    from memory.key_file import open_key_store
    from memory.master_keys import MASTER_KEY_VARIABLE, add_master_key, drop_old_master_keys
    from streams.settings import Settings

    settings = Settings()
    file = settings.master_key_file or settings.data_dir / "master.key"
    given = bool(os.environ.get(MASTER_KEY_VARIABLE))
    store = open_key_store(settings.data_dir, settings.master_key_file)
    try:
        if not given:
            add_master_key(file)
        count = store.wrap_anew()
    finally:
        store.close()
    if given:
        typer.echo(f"{count} keys wrapped anew; the old key may leave {MASTER_KEY_VARIABLE} now")
    else:
        typer.echo(f"{count} keys wrapped anew, {drop_old_master_keys(file)} old master keys removed from {file}")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(keys, name="keys")
