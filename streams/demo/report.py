"""The demo's table: each scripted customer, what came of it against what was expected, deliveries and health."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from streams.scenario.player import Played

WIDTH = 150  # of the table where no terminal says how wide it is


def console() -> Console:
    """Standard output; wide enough for the table also in a pipe or a log."""
    found = Console()
    return found if found.is_terminal else Console(width=WIDTH)


def _deliveries(played: Played) -> str:
    counts = Counter(played.seen.deliveries.values())
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "none"


def _shop(played: Played) -> str:
    parts = [f"{row['kind']} {row['order_id']}" for row in played.seen.effects]
    return ", ".join(parts) or "nothing"


def table(results: Sequence[Played]) -> Table:
    """One row a scenario."""
    result = Table(title="Scripted customers", caption=None)
    for column in ("scenario", "expected", "came out", "done in the shop", "messages", "health", ""):
        result.add_column(column)
    for played in results:
        scores = ", ".join(map(str, played.seen.scores)) or "-"
        verdict = "[green]as expected[/]" if not played.faults else "[red]DIFFERS[/]"
        result.add_row(
            played.scenario.name, played.scenario.expect.outcome, played.seen.outcome, _shop(played),
            _deliveries(played), scores, verdict,
        )  # fmt: skip
    return result


def show(console: Console, results: Sequence[Played], remembered: Mapping[str, Sequence[str]] | None = None) -> None:
    """The table, then each difference in words, and what is remembered as `interlock memory history` shows it."""
    console.print(table(results))
    for played in results:
        for fault in played.faults:
            console.print(f"[red]{played.scenario.name}[/]: {fault}", highlight=False)
    for key, entries in (remembered or {}).items():
        console.print(f"interlock memory history {key}", highlight=False)
        for entry in entries or ("nothing was ever written under it",):
            console.print(f"  {entry}", highlight=False, soft_wrap=True, markup=False)
    right = sum(not played.faults for played in results)
    console.print(f"{right} of {len(results)} conversations came out as expected.", highlight=False)
