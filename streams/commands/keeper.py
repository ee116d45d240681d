"""`interlock keeper`: memory.writes into the stores of facts and relations."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(keeper)


def keeper(port: Annotated[int | None, typer.Option(help="Port of /metrics; 0: a free one.")] = None) -> None:
    """Apply memory.writes to the stores of facts and relations, until Ctrl-C or SIGTERM."""
    from streams import loops
    from streams.broker import bootstrap_of
    from streams.commands import CommandError
    from streams.keeper_app import run_keeper
    from streams.logs import log_to_stderr
    from streams.metrics import Metrics
    from streams.settings import Settings

    settings = Settings()
    log_to_stderr(settings.log_level)
    settings = settings.model_copy(update={"bootstrap_servers": bootstrap_of(settings)})
    metrics = Metrics()
    chosen = settings.keeper_port if port is None else port
    try:
        exposition = metrics.serve(chosen, settings.host)
    except OSError as error:
        message = f"port {chosen}: {error.strerror}; set INTERLOCK_KEEPER_PORT or --port, 0 takes a free one"
        raise CommandError(message) from error
    typer.echo(f"The keeper's metrics: http://{settings.host}:{exposition.port}/metrics. Ctrl-C stops it.")
    try:
        loops.run(run_keeper(settings, metrics))
    finally:
        exposition.close()
