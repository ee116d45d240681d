"""What is committed names no machine and no registry."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.quality import words


def test_no_file_names_a_machine_or_registry() -> None:
    """The project's files hold no path of one machine and no address of a package registry."""
    assert [] == list(words.search(words.files()))


@pytest.mark.parametrize(
    "line",
    ["see /ho" + "me/someone/x", "cd /wo" + "rk/main", "open('/ro" + "ot/.cache')", "https://py" + "pi.org/simple",
     "--index-" + "url https://mirror.example/simple"],
)  # fmt: skip
def test_forbidden_word_is_found(tmp_path: Path, line: str) -> None:
    """A bad line is named with its file and number."""
    bad = tmp_path / "bad.md"
    bad.write_text(f"fine\n{line}\n")

    assert [hit for hit in words.search([bad]) if hit.startswith("bad.md:2: ")]


def test_ordinary_paths_are_allowed(tmp_path: Path) -> None:
    """Paths of the product, and words that only look similar, are no hits."""
    fine = tmp_path / "fine.md"
    fine.write_text("GET /orders/1001\n.interlock/work/x\n/v1/work\nframework/home\n")

    assert [] == list(words.search([fine]))
