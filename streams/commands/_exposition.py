"""The `/metrics` of a command that runs until it is stopped, on a port of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from streams.commands import CommandError

if TYPE_CHECKING:
    from streams.metrics import Metrics
    from streams.settings import Settings

ExpositionPort = Annotated[int | None, typer.Option("--port", help="Port of /metrics; 0: a free one.")]


@contextmanager
def exposed(metrics: Metrics, settings: Settings, port: int | None, setting: str) -> Iterator[str]:
    """The URL while it is served, at `port` or else at the field `setting`. Raises CommandError when it is taken."""
    chosen = getattr(settings, setting) if port is None else port
    try:
        exposition = metrics.serve(chosen, settings.host)
    except OSError as error:
        message = f"port {chosen}: {error.strerror}; set INTERLOCK_{setting.upper()} or --port, 0 takes a free one"
        raise CommandError(message) from error
    try:
        yield f"http://{settings.host}:{exposition.port}/metrics"
    finally:
        exposition.close()
