"""`make bench`: one JSON line a result on standard output; `--write` also writes docs/performance.md."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import traceback
from pathlib import Path

from bench.report import Result, missing, table

# module of this folder: the rows that it prints, each with its unit
SUITES = {
    "bus": {"state_update_p99": "us", "state_read_p99": "us", "memory_open": "bytes", "memory_closed": "bytes"},
    "turns": {"turns_per_s": "1/s", "turn_latency_p95": "ms", "copy_limit": "1/s"},
    "recovery": {"recovery_100k": "s"},
    "normalise": {"normalise_p50": "ms", "normalise_p95": "ms", "normalised_per_s": "1/s"},
    "windows": {"windows_p95": "ms", "tokens_saved": "%"},
    "snapshots": {"snapshot_pause": "ms", "snapshot_copy_share": "%", "snapshot_restore": "s"},
    "sealing": {"sealing_p50": "us", "sealing_p95": "us"},
    "facts": {"recall_p95": "ms", "recall_shop_p95": "ms"},
    "relations": {"path_query_p95": "ms", "marked_down_p95": "ms"},
}
CHAOS = {"forks": "versions", "recovery_lost": "records", "effects_double": "effects"}
DOC = Path(__file__).parent.parent / "docs" / "performance.md"
HEAD = """# Performance

Written by `make bench WRITE=1`; every row is one run on one machine ({machine}), the baseline measured in the
same run. Ratios are the figures to compare; absolute times say more about the machine. The rows of the chaos
run (forks, recovery_lost, effects_double) are printed by `make chaos`.

"""


def main() -> int:
    """Run the wanted suites; a row that can't be measured is printed with its reason. Exit 1 when a suite broke."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rows, split by commas")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    arguments = parser.parse_args()
    only = {name for name in arguments.only.split(",") if name}
    known = {name for rows in SUITES.values() for name in rows} | CHAOS.keys()
    if only - known:
        sys.stderr.write(f"no such row: {', '.join(sorted(only - known))}; there are {', '.join(sorted(known))}\n")
        return 2
    results: list[Result] = []
    broken = False
    for module, rows in SUITES.items():
        if only and not only & rows.keys():
            continue
        found, failed = _suite(module, rows)
        results += [result for result in found if not only or result.name in only]
        broken = broken or failed
    if arguments.write:
        machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"
        DOC.write_text(HEAD.format(machine=machine) + table(results) + "\n", encoding="utf-8")
    return int(broken)


def _suite(module: str, rows: dict[str, str]) -> tuple[list[Result], bool]:
    """The suite's results, printed as they come; rows that it did not reach are printed as missing."""
    results: list[Result] = []
    failed = False
    try:
        for result in importlib.import_module(f"bench.{module}").run():
            print(result.line(), flush=True)
            results.append(result)
    except Exception as error:  # noqa: BLE001 (one suite that breaks does not hide the others)
        traceback.print_exc()
        failed = True
        for name in rows.keys() - {result.name for result in results}:
            results.append(missing(name, rows[name], f"{type(error).__name__}: {error}"))
            print(results[-1].line(), flush=True)
    return results, failed


if __name__ == "__main__":
    sys.exit(main())
