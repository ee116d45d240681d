"""Words that no file of the project may hold: paths of one machine, addresses of package registries."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.quality.source import ROOT

TEXT = frozenset({".py", ".md", ".toml", ".yaml", ".yml", ".json", ".lock", ".cfg", ".txt", ".sh", ""})

# written in two pieces, so that this file does not find itself
FORBIDDEN = (
    (
        re.compile(r"(?<![\w./-])/(?:" + "wo" + "rk|fa" + "rm|ro" + "ot|home/[a-z]+" + r")(?:/|\b)"),
        "a path of one machine",
    ),
    (
        re.compile("py" + r"pi\.org|python" + r"hosted\.org|repo1\.mav" + r"en\.org|proxy\.gol" + r"ang\.org"),
        "a registry host",
    ),
    (re.compile(r"--(?:extra-)?index-" + r"url\s+\S*://"), "a registry address"),
)


def files() -> list[Path]:
    """The project's text files: what git tracks, and what it would."""
    git = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [ROOT / name for name in listed if Path(name).suffix in TEXT and (ROOT / name).is_file()]


def search(paths: Iterable[Path]) -> Iterator[str]:
    """Each hit as `file:line: what`."""
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            for pattern, what in FORBIDDEN:
                if pattern.search(line):
                    yield f"{path.name}:{number}: {what}"
