"""`interlock shop`: the example shop on its own port."""

from __future__ import annotations

import typer


def shop() -> None:
    """Serve the example shop until Ctrl-C: orders, refunds, addresses, logistics, and faults to inject."""
    from streams import loops
    from streams.clock import SystemClock
    from streams.demo.shop.app import build_shop
    from streams.serving import bind, serve
    from streams.settings import Settings

    settings = Settings()
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    listener = bind(settings.host, settings.shop_port, "INTERLOCK_SHOP_PORT")
    app = build_shop(str(settings.data_dir / "shop.sqlite"), now_ms=SystemClock().now_ms)
    typer.echo(f"The example shop answers at http://{settings.host}:{listener.getsockname()[1]}. Ctrl-C stops it.")
    loops.run(serve(app, listener))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(shop)
