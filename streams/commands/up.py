"""`interlock up` and `interlock down`: broker and keeper in the foreground, and the end of what was left behind."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from streams.broker import EmbeddedKafka
    from streams.keeper_child import KeeperChild
    from streams.settings import Settings

LOOK_SECONDS = 0.5  # between two looks at whether the broker still lives


def up(
    keeper: Annotated[bool, typer.Option(help="Run a keeper, too: what is remembered reaches the stores.")] = True,
) -> None:
    """Start Kafka under the data folder, create the topics, and run a keeper; Ctrl-C or SIGTERM stops both.

    With INTERLOCK_BOOTSTRAP_SERVERS set, that cluster is used and nothing is started.
    """
    from streams.broker import EmbeddedKafka
    from streams.keeper_child import KeeperChild
    from streams.settings import Settings

    settings = Settings()
    if settings.bootstrap_servers:
        _create_topics(settings.bootstrap_servers, settings)
        _say(f"Using the cluster at {settings.bootstrap_servers}: nothing to start. What is remembered reaches the"
             " stores while `interlock keeper` runs.")  # fmt: skip
        return
    broker, child = EmbeddedKafka(settings.data_dir, settings.kafka_port), KeeperChild(settings.data_dir)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        _run(broker, child if keeper else None, settings)
    except KeyboardInterrupt:
        _say("Stopping Kafka.")
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # the stop is bounded; a second Ctrl-C would leave it half done
        if broker.started:
            child.stop()  # first: it commits what it has applied while there is a broker
            broker.stop()


def down() -> None:
    """Stop the embedded broker and the keeper of this data folder, if they were left behind."""
    from streams.broker import EmbeddedKafka
    from streams.keeper_child import KeeperChild
    from streams.settings import Settings

    settings = Settings()
    broker = EmbeddedKafka(settings.data_dir)
    if KeeperChild(settings.data_dir).stop():
        _say("The keeper stopped.")
    running = broker.running()
    broker.stop()
    _say("Kafka stopped." if running else "No broker was running.")


def _run(broker: EmbeddedKafka, keeper: KeeperChild | None, settings: Settings) -> None:
    bootstrap = broker.start()
    _create_topics(bootstrap, settings)
    if not broker.started:
        _say(f"Kafka already runs at {bootstrap} (data: {_short(broker.folder)}).")
        return
    _say(f"Kafka runs at {bootstrap} (data: {_short(broker.folder)}). Ctrl-C stops it.")
    if keeper is not None:
        keeper.start(bootstrap)
        _say(f"A keeper applies what is remembered to the stores (log: {_short(keeper.log_file.resolve())}).")
    while broker.poll() is None:
        if keeper is not None and (why := keeper.ended()):
            typer.echo(why, err=True)  # Kafka runs on: others may be at work on it
        time.sleep(LOOK_SECONDS)
    broker.report_end()


def _create_topics(bootstrap: str, settings: Settings) -> None:
    from streams.topics import apply_topics

    apply_topics(bootstrap, settings)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _short(folder: Path) -> str:
    here = Path.cwd()
    return str(folder.relative_to(here)) if folder.is_relative_to(here) else str(folder)


def _say(line: str) -> None:
    typer.echo(line)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(up)
    app.command()(down)
