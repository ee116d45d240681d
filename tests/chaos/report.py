"""What came of the phases: a line each, and the figures as JSON lines."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bench.report import Result
from tests.chaos.checks import Violation

# another worker, a partition or a point that came late; never what a customer was told, nor an end by itself
LATE = re.compile(r"went on [0-9.]+ s|all partitions were open [0-9.]+ s|[^\n]*: not within [0-9]+ s$"
                  r"|[^\n]* died (?:when all conversations were over|[0-9]+ times before a wave began)$")  # fmt: skip


@dataclass
class Report:
    """What came of a phase."""

    name: str
    seconds: float = 0.0
    conversations: int = 0
    recovery_s: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    note: str = ""
    outlasts_calls: bool = False  # longer away than a call may wait: some end with a person instead, as they must
    excused: bool = False  # its faults did not come again

    @property
    def passed(self) -> bool:
        """Nothing wrong; a violation has no excuse."""
        return not self.violations and (self.excused or not self.faults)

    @property
    def slipped(self) -> bool:
        """Late and nothing else, on a machine that may be busy: worth one more run."""
        late = bool(self.faults) and all(LATE.match(fault) for fault in self.faults)
        return late and not self.violations and not self.excused


def line(report: Report) -> str:
    """One phase as one line, and what is wrong below it."""
    recovery = ", ".join(f"{seconds:.1f}" for seconds in report.recovery_s) or "-"
    head = (f"{'pass' if report.passed else 'FAIL'}  {report.name:<26} {report.conversations:3d} conversations"
            f"  went on after {recovery:>6} s  {report.seconds:6.1f} s  {report.note}")  # fmt: skip
    return "\n".join([head, *(f"      {fault}" for fault in report.faults[:20]),
                      *(f"      {violation}" for violation in report.violations[:20])])  # fmt: skip


def measures(reports: Sequence[Report]) -> Iterator[str]:
    """The rows of the chaos run as JSON lines."""
    found = [violation for report in reports for violation in report.violations]
    seconds = [one for report in reports for one in report.recovery_s]
    conversations = sum(report.conversations for report in reports)
    times = f"went on after median {statistics.median(seconds):.1f} s, at most {max(seconds):.1f} s" if seconds else ""
    rows = (
        ("forks", "versions", ("fork",), "Faust alone: 5 and 379 in two trials with frozen and thawed workers"),
        ("recovery_lost", "records", ("lost", "gap", "recovered", "snapshot"), times),
        ("effects_double", "effects", ("effect twice",), "in the shop's ledger, by key and by order"),
    )
    for name, unit, rules, note in rows:
        count = sum(violation.rule in rules for violation in found)
        yield Result(name, count, unit, n=conversations, note=note).line()
