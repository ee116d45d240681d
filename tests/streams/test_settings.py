"""Settings: environment variables that say which of them is wrong, and what to do."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from streams.cli import explain
from streams.settings import Settings


def said(monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    """What a user reads when the settings can't be used."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError) as caught:
        Settings()
    line, status = explain(caught.value) or ("", 0)
    assert 2 == status
    return line


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("INTERLOCK_PARTITIONS", "0", "greater than or equal to 1"),
        ("INTERLOCK_GATEWAY_PORT", "99999", "less than or equal to 65535"),
        ("INTERLOCK_LOG_LEVEL", "LOUD", "'DEBUG', 'INFO'"),
        ("INTERLOCK_TOOL_ENVIRONMENT", "moon", "'prod' or 'staging'"),
        ("INTERLOCK_REVIEW_MS", "-5", "greater than or equal to 1"),
    ],
)
def test_a_wrong_value_is_told_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    """The variable and what it takes are named, before anything is started."""
    line = said(monkeypatch, **{name: value})
    assert line.startswith(f"Settings: {name}: ")
    assert words in line


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("INTERLOCK_HEARTBEAT_MS", "60000", "more than half of session_timeout_ms"),
        ("INTERLOCK_PACKS", "no/such/folder", "packs no/such/folder is no folder"),
        ("INTERLOCK_GATEWY_PORT", "8081", "INTERLOCK_GATEWY_PORT is no setting; did you mean INTERLOCK_GATEWAY_PORT?"),
        ("INTERLOCK_MODEL_MEMORY", "true", "model_memory needs model_url"),
        ("INTERLOCK_XYZ", "1", "INTERLOCK_XYZ is no setting; they are in streams/settings.py"),
    ],
)
def test_what_does_not_fit_together_is_told(monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str) -> None:
    """A misspelt variable would be ignored in silence, and a folder that is not there, too (promise 10)."""
    assert words in said(monkeypatch, **{name: value})


def test_variables_that_others_read_are_no_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The master key and the named kill points are not settings, and not misspelt ones."""
    for name in ("INTERLOCK_MASTER_KEY", "INTERLOCK_CRASH_AT", "INTERLOCK_FREEZE_AT"):
        monkeypatch.setenv(name, "x")
    assert 12 == Settings().partitions
