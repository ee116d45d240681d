"""`interlock topics apply | check`: the topics of the manifests on a broker."""

from __future__ import annotations

from typing import Annotated

import typer

topics_app = typer.Typer(help="Create the topics on a broker, or say what differs.", no_args_is_help=True)
Broker = Annotated[
    str, typer.Option("--broker", metavar="HOST:PORT", help="Default: the settings, then the embedded broker.")
]


def check(broker: Broker = "") -> None:
    """Say, topic by topic, what differs from the manifests; exit status 1 if anything does."""
    from streams.broker import bootstrap_of
    from streams.settings import Settings
    from streams.topics import check_topics

    settings = Settings()
    differences = check_topics(broker or bootstrap_of(settings), settings)
    for difference in differences:
        typer.echo(difference)
    typer.echo(f"{len(differences)} differences" if differences else "All topics are as their manifests say.")
    raise typer.Exit(1 if differences else 0)


def apply(
    broker: Broker = "",
    alter: Annotated[bool, typer.Option("--alter", help="Also set settings that differ on topics that exist.")] = False,
) -> None:
    """Create what is missing. Nothing is ever deleted or repartitioned; exit status 1 if something still differs."""
    from streams.broker import bootstrap_of
    from streams.settings import Settings
    from streams.topics import apply_topics

    settings = Settings()
    applied = apply_topics(broker or bootstrap_of(settings), settings, alter=alter)
    for name in applied.created:
        typer.echo(f"{name}: created")
    for difference in applied.altered:
        typer.echo(f"{difference.topic}: {difference.setting} set from {difference.found} to {difference.wanted}")
    for difference in applied.differences:
        typer.echo(difference)
    typer.echo(
        f"{len(applied.created)} created, {len(applied.altered)} settings altered, {len(applied.differences)} differ"
    )
    raise typer.Exit(1 if applied.differences else 0)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    topics_app.command()(apply)
    topics_app.command()(check)
    app.add_typer(topics_app, name="topics")
