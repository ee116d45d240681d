"""Which test proves which requirement; `--list` prints all ids, and a "done" that no test names fails."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.quality.source import ROOT, FunctionNode, Module, suites

REQUIREMENTS = ROOT / "docs" / "requirements.md"
CASES = ROOT / "docs" / "cases.md"
STATUSES = ("done", "later")

_ROW = re.compile(r"^\| *(?P<id>R-\d{3}-\d{2}|X\d{1,2}|[A-J]\d{2}) *\|(?P<rest>.*)\|\s*$")
_ID = re.compile(r"\bR-\d{3}-\d{2}\b|\b[A-JX]\d{1,2}\b")


@dataclass(frozen=True)
class Item:
    """One row of a ledger: the id, what is asked in one line, its status, and where it is met."""

    id: str
    text: str
    status: str
    where: str
    place: str


def read(path: Path) -> list[Item]:
    """The rows of a ledger file. Raises ValueError, naming file and line, for a bad or repeated row."""
    items: dict[str, Item] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = _ROW.match(line)
        if not match:
            continue
        place = f"{path.name}:{number}"
        cells = [cell.strip() for cell in match["rest"].split("|")]
        if len(cells) != 3 or cells[1] not in STATUSES:
            message = f"{place}: a row is | id | text | done or later | where |"
            raise ValueError(message)
        if match["id"] in items:
            message = f"{place}: {match['id']} stands here twice"
            raise ValueError(message)
        items[match["id"]] = Item(match["id"], cells[0], cells[1], cells[2], place)
    return list(items.values())


def named(modules: Sequence[Module]) -> dict[str, list[str]]:
    """Each id with the tests whose docstring or parameters name it, as `path::test`."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        if module.path.is_relative_to(ROOT / "tests" / "quality"):
            continue  # these speak of the ledger, they prove nothing in it
        lines = module.text.splitlines()
        for node in module.nodes:
            if isinstance(node, FunctionNode) and node.name.startswith("test"):
                first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
                for name in sorted(set(_ID.findall("\n".join(lines[first - 1 : node.end_lineno])))):
                    found[name].append(f"{module.path.relative_to(ROOT)}::{node.name}")
    return dict(found)


def unproven(items: Iterable[Item], proofs: Mapping[str, Sequence[str]]) -> list[str]:
    """What is called done and no test names."""
    return [
        f"{item.place}: {item.id} is called done, but no test names it"
        for item in items
        if item.status == "done" and not proofs.get(item.id)
    ]


def table(items: Iterable[Item], proofs: Mapping[str, Sequence[str]]) -> list[str]:
    """Each item with its tests below it."""
    lines = []
    for item in items:
        lines.append(f"{item.id}  {item.status:5}  {item.text}")
        lines.extend(f"         {test}" for test in proofs.get(item.id, ()))
    return lines


def main(arguments: Sequence[str]) -> int:
    """Print the ledger or its faults; 1 if there are any."""
    items = [*read(REQUIREMENTS), *read(CASES)]
    proofs = named(suites())
    if "--list" in arguments:
        print(*table(items, proofs), sep="\n")
    faults = unproven(items, proofs)
    done = sum(item.status == "done" for item in items)
    proven = sum(bool(proofs.get(item.id)) for item in items)
    print(f"{len(items)} items, {done} done, {proven} named by a test", *faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
