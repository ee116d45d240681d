"""`interlock stores fetch | up`: the servers of facts and relations, for those who have none."""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from streams.commands import CommandError

if TYPE_CHECKING:
    from streams.stores.base import Server, Store

LOOK_SECONDS = 0.5  # between two looks at whether they still live

Names = Annotated[list[str] | None, typer.Argument(help="weaviate, neo4j; all when none is named")]


def fetch(names: Names = None) -> None:
    """Fetch or build the servers into the user's cache; Weaviate takes Go and 5 to 15 minutes, once."""
    for store in _wanted(names):
        _say(f"{store.name}: {'there' if store.found() else 'fetching'}")
        _say(f"{store.name}: {store.fetch()}")


def up(names: Names = None) -> None:
    """Run the servers on loopback with their data under the data folder; Ctrl-C or SIGTERM stops them.

    Prints the variables that make Interlock use them.
    """
    from streams.settings import Settings

    wanted, folder = _wanted(names), Settings().data_dir / "stores"
    signal.signal(signal.SIGTERM, _interrupt)
    running: list[tuple[Store, Server]] = []
    try:
        for store in wanted:
            server = store.server(folder / store.name)
            running.append((store, server))
            _say(f"{store.setting}={server.start()}")
        _say("Ctrl-C stops them.")
        _watch(running)
    except KeyboardInterrupt:
        _say("Stopping.")
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # the stop is bounded; a second Ctrl-C would leave it half done
        for _, server in running:
            server.stop()


def _wanted(names: list[str] | None) -> list[Store]:
    from streams.stores.base import registry

    known = registry()
    unknown = sorted(set(names or ()) - known.keys())
    if unknown:
        message = f"no such store: {', '.join(unknown)}; there are {', '.join(sorted(known))}"
        raise CommandError(message, 2)
    return [known[name] for name in names or sorted(known)]


def _watch(running: list[tuple[Store, Server]]) -> None:
    while True:
        for store, server in running:
            code = server.ended()
            if code is not None:
                message = f"{store.name} ended with code {code}"
                raise CommandError(message)
        time.sleep(LOOK_SECONDS)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="The servers of facts and relations, for those who have none.")
    group.command()(fetch)
    group.command()(up)
    app.add_typer(group, name="stores")
