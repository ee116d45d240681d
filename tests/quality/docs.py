"""Writes the generated parts of the documentation again; tests beside each generator keep them equal."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from agents.flows import diagram
from agents.planning.pack import load_pack
from schemas.export import with_picture
from streams.delivery.table import mermaid
from tests.quality.source import ROOT

_PICTURE = re.compile(r"```mermaid\n.*?```", re.DOTALL)


def generated() -> Iterator[tuple[str, str]]:
    """Each file's name and its text as the code gives it."""
    yield "README.md", with_picture((ROOT / "README.md").read_text(encoding="utf-8"))
    delivery = (ROOT / "docs" / "delivery.md").read_text(encoding="utf-8")
    yield "docs/delivery.md", _PICTURE.sub(lambda _: f"```mermaid\n{mermaid()}\n```", delivery, count=1)
    yield "docs/flows.md", diagram.document(load_pack().flows)


def main() -> int:
    """Write what differs and say so."""
    for name, text in generated():
        path = ROOT / name
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"{name}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
