"""`interlock retention check`: how long each topic is kept on the broker, and how long it should be (X7)."""

from __future__ import annotations

import typer

retention = typer.Typer(help="How long records are kept.", no_args_is_help=True)
HOUR_MS, AUDIT_DAYS = 3_600_000, 180


@retention.command()
def check() -> None:
    """Compare broker and manifest, topic by topic; exit status 1 if one differs. `topics apply --alter` sets it."""
    from schemas.topics import TOPICS
    from streams.commands._reading import cluster
    from streams.topics import check_topics, retention_ms

    settings = cluster()
    asked = {"retention.ms", "cleanup.policy", "topic"}
    wrong = [one for one in check_topics(settings.bootstrap_servers, settings) if one.setting in asked]
    found = {one.topic: one.found for one in wrong if one.setting == "retention.ms"}
    for name, topic in TOPICS.items():
        wanted = retention_ms(topic, settings)
        actual = f", on the broker {span(int(found[name]))}" if name in found else ""
        note = f"; an audit needs {AUDIT_DAYS} days" if short(wanted, topic.retention_ms(AUDIT_DAYS)) else ""
        typer.echo(f"{name}: {span(wanted)}{actual}{note}")
    for one in wrong:
        typer.echo(f"differs: {one}")
    raise typer.Exit(1 if wrong else 0)


def span(ms: int) -> str:
    """A retention in words."""
    if ms < 0:
        return "for ever"
    return f"{ms // (24 * HOUR_MS)} days" if ms % (24 * HOUR_MS) == 0 else f"{ms / HOUR_MS:g} hours"


def short(wanted: int, manifest: int) -> bool:
    """Whether a setting keeps a topic shorter than an audit reads it back."""
    return 0 <= wanted < manifest and manifest >= AUDIT_DAYS * 24 * HOUR_MS


def register(app: typer.Typer) -> None:
    """Add the command."""

    @retention.callback()
    def _group() -> None:
        pass  # a group of one command keeps its name

    app.add_typer(retention, name="retention")
