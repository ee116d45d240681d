"""`interlock scenario run FILE`: a user's own scripted customers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from streams.scenario.format import Scenario
    from streams.scenario.player import Played

app = typer.Typer(help="Scripted customers: check and play scenario files.", no_args_is_help=True)


@app.command()
def run(
    files: Annotated[list[Path], typer.Argument(help="Scenario files, or folders of them.")],
    memory: Annotated[bool, typer.Option("--memory", help="In memory, without Kafka, on a virtual clock.")] = False,
) -> None:
    """Play scenarios, side by side, and compare what came of them; exits 1 if anything differs.

    Without --memory they are played against the running gateway, shop and broker of the settings.
    """
    from streams.demo.report import console, show

    scenarios = _load(files)
    results = _in_memory(scenarios) if memory else _over_http(scenarios)
    show(console(), results)
    raise typer.Exit(1 if any(played.faults for played in results) else 0)


@app.command()
def check(files: Annotated[list[Path], typer.Argument(help="Scenario files, or folders of them.")]) -> None:
    """Read scenario files and say what is wrong with them, without playing."""
    for scenario in _load(files):
        typer.echo(f"{scenario.name}: {len(scenario.steps)} steps, expects {scenario.expect.outcome}")


def _load(paths: Sequence[Path]) -> list[Scenario]:
    from agents.planning.pack import load_pack
    from streams.scenario.format import load, load_folder, refuse_shared, refuse_unknown
    from streams.settings import Settings

    scenarios = [one for path in paths for one in (load_folder(path) if path.is_dir() else [load(path)])]
    refuse_shared(scenarios)
    refuse_unknown(scenarios, load_pack(Settings().packs).templates)
    return scenarios


def _in_memory(scenarios: Sequence[Scenario]) -> list[Played]:
    from streams.scenario.local import play_in_memory
    from streams.settings import Settings

    return play_in_memory(scenarios, Settings())


def _over_http(scenarios: Sequence[Scenario]) -> list[Played]:
    import asyncio

    from streams.broker import bootstrap_of
    from streams.clock import fresh_id
    from streams.scenario.http import play_over_http
    from streams.settings import Settings

    settings = Settings()
    settings = settings.model_copy(update={"bootstrap_servers": bootstrap_of(settings)})
    if any(one.expect.health for one in scenarios):
        seconds = (settings.window_ms + settings.window_grace_ms) // 1000
        typer.echo(f"A health score is expected: it comes when its window closes, in up to {seconds} s.", err=True)
    return asyncio.run(play_over_http(scenarios, settings, fresh_id("run")[-8:]))


def register(root: typer.Typer) -> None:
    """Add the commands."""
    root.add_typer(app, name="scenario")
