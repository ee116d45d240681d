"""`interlock exporter`: session health as metrics."""

from __future__ import annotations

import signal
import threading
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(exporter)


def exporter(port: Annotated[int | None, typer.Option(help="Port of /metrics; 0: a free one.")] = None) -> None:
    """Read feedback.health and serve session health as metrics, until Ctrl-C or SIGTERM."""
    from streams.broker import bootstrap_of
    from streams.clock import SystemClock
    from streams.commands import CommandError
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
    chosen = settings.exporter_port if port is None else port
    try:
        exposition = metrics.serve(chosen, settings.host)
    except OSError as error:
        message = f"port {chosen}: {error.strerror}; set INTERLOCK_EXPORTER_PORT or --port, 0 takes a free one"
        raise CommandError(message) from error
    typer.echo(f"Session health on http://{settings.host}:{exposition.port}/metrics. Ctrl-C stops it.")
    try:
        HealthExporter(settings, metrics, SystemClock()).run(stop)
    finally:
        exposition.close()
