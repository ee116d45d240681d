"""`interlock up` and `interlock down`: the embedded broker in the foreground, and the end of one left behind."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from streams.broker import EmbeddedKafka
    from streams.settings import Settings

LOOK_SECONDS = 0.5  # between two looks at whether the broker still lives


def up() -> None:
    """Start Kafka under the data folder and create the topics; Ctrl-C or SIGTERM stops it.

    With INTERLOCK_BOOTSTRAP_SERVERS set, that cluster is used and none is started.
    """
    from streams.broker import EmbeddedKafka
    from streams.settings import Settings

    settings = Settings()
    if settings.bootstrap_servers:
        _create_topics(settings.bootstrap_servers, settings)
        _say(f"Using the cluster at {settings.bootstrap_servers}: nothing to start.")
        return
    broker = EmbeddedKafka(settings.data_dir, settings.kafka_port)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        _run(broker, settings)
    except KeyboardInterrupt:
        _say("Stopping Kafka.")
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # the stop is bounded; a second Ctrl-C would leave it half done
        if broker.started:
            broker.stop()


def down() -> None:
    """Stop the embedded broker of this data folder, if one was left behind."""
    from streams.broker import EmbeddedKafka
    from streams.settings import Settings

    broker = EmbeddedKafka(Settings().data_dir)
    running = broker.running()
    broker.stop()
    _say("Kafka stopped." if running else "No broker was running.")


def _run(broker: EmbeddedKafka, settings: Settings) -> None:
    bootstrap = broker.start()
    _create_topics(bootstrap, settings)
    if not broker.started:
        _say(f"Kafka already runs at {bootstrap} (data: {_short(broker.folder)}).")
        return
    _say(f"Kafka runs at {bootstrap} (data: {_short(broker.folder)}). Ctrl-C stops it.")
    while broker.poll() is None:
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
