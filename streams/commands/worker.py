"""`interlock worker` and `interlock intake`: the processes that decide, and that take foreign events in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from streams.settings import Settings


def worker() -> None:
    """Run all processors on the partitions that the group gives this worker, until Ctrl-C or SIGTERM."""
    from streams.worker import run_worker

    raise typer.Exit(run_worker(_settings()))


def intake() -> None:
    """Take events of foreign producers from channel.raw: check, mask, seal, and put them on channel.events."""
    from streams.intake_app import run_intake
    from streams.logs import log_to_stderr

    settings = _settings()
    log_to_stderr(settings.log_level)
    raise typer.Exit(run_intake(settings))


def _settings() -> Settings:
    from streams.broker import bootstrap_of
    from streams.settings import Settings

    settings = Settings()
    return settings.model_copy(update={"bootstrap_servers": bootstrap_of(settings)})


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(worker)
    app.command()(intake)
