"""Dependencies point one way: the contracts hold, and each breaks when a bad import is added."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.quality.source import PACKAGES, ROOT


def _lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()",
               "--no-cache", "--config", str(ROOT / "pyproject.toml")]  # fmt: skip
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(folder)}
    )


def _skeleton(folder: Path) -> Path:
    for name in PACKAGES:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("")
    return folder


@pytest.mark.slow
def test_layers_hold_in_the_project(tmp_path: Path) -> None:
    """schemas, memory, agents and streams, and schemas, feedback and streams, import in this order only."""
    for name in PACKAGES:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))

    done = _lint(tmp_path)

    assert 0 == done.returncode, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "imports"),
    [
        ("schemas", "memory"),
        ("memory", "agents"),
        ("agents", "streams"),
        ("schemas", "feedback"),
        ("feedback", "streams"),
        ("feedback", "memory"),
        ("agents", "feedback"),
        ("agents", "httpx"),
        ("feedback", "sqlite3"),
        ("schemas", "confluent_kafka"),
        ("agents", "faust"),
    ],
)
def test_import_against_the_order_is_refused(tmp_path: Path, where: str, imports: str) -> None:
    """An import that points the other way, or I/O in deciding code, breaks a contract."""
    folder = _skeleton(tmp_path)
    (folder / where / "bad.py").write_text(f"import {imports}\n")

    done = _lint(folder)

    assert 1 == done.returncode, done.stdout
    assert "BROKEN" in done.stdout
