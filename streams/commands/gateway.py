"""`interlock gateway`: the web channel on its own port."""

from __future__ import annotations

import typer


def gateway() -> None:
    """Serve the web channel until Ctrl-C: events in, messages out, receipts, people's decisions."""
    from streams import loops
    from streams.broker import bootstrap_of
    from streams.gateway.access import check_exposure
    from streams.gateway.service import run_gateway
    from streams.logs import log_to_stderr
    from streams.serving import bind
    from streams.settings import Settings

    settings = Settings()
    log_to_stderr(settings.log_level)
    settings = settings.model_copy(update={"bootstrap_servers": bootstrap_of(settings)})
    listener = bind(settings.host, settings.gateway_port, "INTERLOCK_GATEWAY_PORT")
    check_exposure(settings.producer_key_file, listener.getsockname()[0])  # `host` may be a name
    url = f"http://{settings.host}:{listener.getsockname()[1]}"
    typer.echo(f"The web channel answers at {url}. A page to talk in is {url}/chat. Ctrl-C stops it.")
    loops.run(run_gateway(settings, listener))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(gateway)
