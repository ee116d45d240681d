"""`interlock keeper`: memory.writes into the stores of facts and relations."""

from __future__ import annotations

import typer

from streams.commands._exposition import ExpositionPort, exposed


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(keeper)


def keeper(port: ExpositionPort = None) -> None:
    """Apply memory.writes to the stores of facts and relations, until Ctrl-C or SIGTERM."""
    from streams import loops
    from streams.broker import bootstrap_of
    from streams.keeper_app import run_keeper
    from streams.logs import log_to_stderr
    from streams.metrics import Metrics
    from streams.settings import Settings

    settings = Settings()
    log_to_stderr(settings.log_level)
    settings = settings.model_copy(update={"bootstrap_servers": bootstrap_of(settings)})
    metrics = Metrics()
    with exposed(metrics, settings, port, "keeper_port") as url:
        typer.echo(f"The keeper's metrics: {url}. Ctrl-C stops it.")
        loops.run(run_keeper(settings, metrics))
