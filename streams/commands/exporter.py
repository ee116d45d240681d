"""`interlock exporter`: session health as metrics."""

from __future__ import annotations

import signal
import threading

import typer

from streams.commands._exposition import ExpositionPort, exposed


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(exporter)


def exporter(port: ExpositionPort = None) -> None:
    """Read feedback.health and serve session health as metrics, until Ctrl-C or SIGTERM."""
    from streams.broker import bootstrap_of
    from streams.clock import SystemClock
    from streams.health_exporter import HealthExporter
    from streams.logs import log_to_stderr
    from streams.metrics import Metrics
    from streams.settings import Settings

    settings = Settings()
    log_to_stderr(settings.log_level)
    settings = settings.model_copy(update={"bootstrap_servers": bootstrap_of(settings)})
    stop, metrics = threading.Event(), Metrics()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with exposed(metrics, settings, port, "exporter_port") as url:
        typer.echo(f"Session health on {url}. Ctrl-C stops it.")
        HealthExporter(settings, metrics, SystemClock()).run(stop)
