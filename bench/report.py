"""One result of a benchmark: a JSON line, and a row of the table in docs/performance.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import orjson


@dataclass(frozen=True)
class Result:
    """`ratio` says how many times better than the baseline: baseline / value for times, value / baseline for rates."""

    name: str
    value: float | None
    unit: str
    baseline: float | None = None
    ratio: float | None = None
    n: int | None = None
    note: str = ""

    def line(self) -> str:
        """The result as one JSON line."""
        return orjson.dumps(asdict(self)).decode()


def less_is_better(name: str, value: float, unit: str, baseline: float | None, n: int, note: str) -> Result:
    """A time or a size against its baseline."""
    ratio = None if baseline is None else rounded(baseline / value)
    return Result(name, rounded(value), unit, rounded(baseline), ratio, n, note)


def more_is_better(name: str, value: float, unit: str, baseline: float | None, n: int, note: str) -> Result:
    """A rate against its baseline."""
    ratio = None if not baseline else rounded(value / baseline)
    return Result(name, rounded(value), unit, rounded(baseline), ratio, n, note)


def missing(name: str, unit: str, why: str) -> Result:
    """A row that could not be measured here, with the reason."""
    return Result(name, None, unit, note=why)


def rounded(value: float | None) -> float | None:
    """Three significant digits: the machine gives no more."""
    return None if value is None else float(f"{value:.3g}")


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the measurements lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def table(results: Sequence[Result]) -> str:
    """The results as a Markdown table."""
    head = "| name | value | unit | baseline | ratio | n | note |\n|---|---|---|---|---|---|---|"
    cells = [
        f"| {r.name} | {_cell(r.value)} | {r.unit} | {_cell(r.baseline)} | {_cell(r.ratio)} | {_cell(r.n)} | {r.note} |"
        for r in results
    ]
    return "\n".join([head, *cells])


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
