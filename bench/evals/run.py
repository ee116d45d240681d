"""`make eval-understanding`: every evaluation of this folder, one JSON line a row, then a table.

An evaluation is a module with `rows() -> list[Result]`. One that also has `ROWS = {name: unit}` is passed over when
none of its rows is asked for, and its rows are printed with the reason when it breaks.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType

from bench.report import Result, missing, table

FOLDER = Path(__file__).parent


def modules(folder: Path = FOLDER) -> list[str]:
    """The evaluations of the folder by name: modules that define `rows`."""
    names = sorted(path.stem for path in folder.glob("*.py") if "\ndef rows(" in path.read_text("utf-8"))
    return [name for name in names if name != "run"]


def main(arguments: list[str] | None = None) -> int:
    """Run the wanted evaluations. Exit 1 when one broke, 2 when a wanted name is unknown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rows or modules, split by commas")
    only = {name for name in parser.parse_args(arguments).only.split(",") if name}
    results: list[Result] = []
    seen: set[str] = set()
    broken = False
    for name in modules():
        found, known, failed = _evaluation(name, only)
        results += [result for result in found if not only or name in only or result.name in only]
        seen |= {name, *known, *(result.name for result in found)}
        broken = broken or failed
    print(table(results))
    for result in results:
        print(result.line(), flush=True)
    if only - seen:
        sys.stderr.write(f"no such row: {', '.join(sorted(only - seen))}; there are {', '.join(sorted(seen))}\n")
        return 2
    return int(broken)


def _evaluation(name: str, only: set[str]) -> tuple[list[Result], set[str], bool]:
    """The rows of one evaluation, the names that it declares, and whether it broke."""
    declared: dict[str, str] = {}
    try:
        module: ModuleType = importlib.import_module(f"bench.evals.{name}")
        declared = getattr(module, "ROWS", {})
        if only and declared and name not in only and not only & declared.keys():
            return [], set(declared), False
        sys.stderr.write(f"{name} ...\n")
        return module.rows(), set(declared), False
    except Exception as error:  # noqa: BLE001 (one evaluation that breaks does not hide the others)
        traceback.print_exc()
        why = f"{type(error).__name__}: {error}"
        return [missing(row, unit, why) for row, unit in (declared or {name: ""}).items()], set(declared), True


if __name__ == "__main__":
    sys.exit(main())
