"""The command line: all commands are listed fast, and errors are one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from schemas.errors import InterlockError
from streams.cli import build, explain
from streams.commands import CommandError
from streams.gateway.access import ExposedError, KeyFileError
from streams.settings import Settings
from tests.streams.gateway.keys import key_file

ANYWHERE = "0.0.0.0"  # noqa: S104 (this is what is refused)


def _run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "streams.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, timeout=30)


def test_help_lists_the_commands() -> None:
    """`interlock --help` names every command."""
    done = _run("--help")

    assert 0 == done.returncode
    for name in ("up", "gateway", "worker", "chat", "scenario", "demo", "shop", "topics", "reviews"):
        assert f" {name} " in done.stdout


def test_help_imports_nothing_heavy() -> None:
    """Help comes without Kafka clients, Faust, pydantic or HTTP: it must be fast."""
    code = "import sys; from streams.cli import build; build(); print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)

    heavy = {"confluent_kafka", "faust", "aiokafka", "pydantic", "httpx", "starlette", "uvicorn", "jgo", "neo4j"}
    assert set() == heavy & set(done.stdout.split())


def test_every_command_has_a_help_line() -> None:
    """A command says what it does, in one line at least."""
    app = build()

    for command in app.registered_commands:
        assert command.help or (command.callback and command.callback.__doc__)


def test_error_of_ours_is_one_line(tmp_path: Path) -> None:
    """A user's mistake is told in one line on standard error, with exit status 1 and no traceback."""
    done = _run("scenario", "check", "missing.yaml", cwd=tmp_path)

    assert 1 == done.returncode
    assert done.stderr.startswith("interlock: missing.yaml: can't be read")
    assert 1 == len(done.stderr.splitlines())


@pytest.mark.parametrize(
    ("error", "line", "code"),
    [
        (CommandError("no such thing", 3), "no such thing", 3),
        (InterlockError("broken"), "broken", 1),
        (ConnectionRefusedError(111, "Connection refused"), "[Errno 111] Connection refused", 1),
    ],
)
def test_known_errors_have_words_and_a_status(error: Exception, line: str, code: int) -> None:
    """Errors of ours and of the system are words; the exit status tells them apart."""
    assert (line, code) == explain(error)


def test_bug_keeps_its_traceback() -> None:
    """What nobody foresaw is not hidden behind a line."""
    assert explain(KeyError("x")) is None


def test_wrong_setting_names_its_field(monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that can't be read is told by name, exit status 2."""
    monkeypatch.setenv("INTERLOCK_PARTITIONS", "many")
    with pytest.raises(ValueError, match="partitions") as caught:
        Settings()

    found = explain(caught.value)

    assert found is not None
    assert 2 == found[1]
    assert found[0].startswith("Settings: INTERLOCK_PARTITIONS: ")


def test_a_setting_that_is_no_json_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slip of the pen in a setting of several values is told by name and place; the value may be a secret."""
    monkeypatch.setenv("INTERLOCK_TOOL_TOKENS", '{"crm_token": secret-of-the-crm}')

    done = _run("down", cwd=tmp_path)

    line = "interlock: Settings: INTERLOCK_TOOL_TOKENS: expected JSON (Expecting value: line 1 column 15 (char 14))\n"
    assert (2, line) == (done.returncode, done.stderr)


def test_a_gateway_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """`reviews` says where it looked for the gateway and how to start one, not that a connection was refused."""
    monkeypatch.setenv("INTERLOCK_GATEWAY_URL", "http://127.0.0.1:1")
    result = CliRunner().invoke(build(), ["reviews", "list"])

    assert isinstance(result.exception, CommandError)
    assert "no gateway answers at http://127.0.0.1:1" in str(result.exception)
    assert "start `interlock gateway`" in str(result.exception)


def test_a_gateway_without_keys_listens_on_loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """On another address it does not start: it says what is open to whom, and which setting closes it."""
    for name, value in (("BOOTSTRAP_SERVERS", "127.0.0.1:1"), ("HOST", ANYWHERE), ("GATEWAY_PORT", "0")):
        monkeypatch.setenv(f"INTERLOCK_{name}", value)
    result = CliRunner().invoke(build(), ["gateway"])

    assert isinstance(result.exception, ExposedError)
    assert "0.0.0.0 can be reached from elsewhere" in str(result.exception)
    assert "Set INTERLOCK_PRODUCER_KEY_FILE" in str(result.exception)
    assert "" == result.stdout


def test_a_gateway_with_a_broken_key_file_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keys that were asked for and can't be read are no open door, on any address."""
    file = key_file(tmp_path, b"{")
    for name, value in (("BOOTSTRAP_SERVERS", "127.0.0.1:1"), ("GATEWAY_PORT", "0"), ("PRODUCER_KEY_FILE", str(file))):
        monkeypatch.setenv(f"INTERLOCK_{name}", value)
    result = CliRunner().invoke(build(), ["gateway"])

    assert isinstance(result.exception, KeyFileError)
    assert (True, "") == (str(file) in str(result.exception), result.stdout)


def test_a_wrong_gateway_key_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key with a line's end would be no header: the setting is named, the key is not."""
    monkeypatch.setenv("INTERLOCK_GATEWAY_KEY", "secret-of-the-desk\n")
    with pytest.raises(ValidationError) as caught:
        Settings()

    found = explain(caught.value)
    assert found is not None
    assert found[0].startswith("Settings: INTERLOCK_GATEWAY_KEY: ")
    assert "secret" not in found[0]


def test_backups_are_listed_without_a_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where stores were lost a broker may be away, too: the list reads a folder and nothing else (R-004-11)."""
    (tmp_path / "backups" / "20260105T020000.000Z").mkdir(parents=True)
    monkeypatch.setenv("INTERLOCK_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("INTERLOCK_BOOTSTRAP_SERVERS", raising=False)

    done = CliRunner().invoke(build(), ["memory", "backups"])

    assert (0, f"{tmp_path}/backups/20260105T020000.000Z\n") == (done.exit_code, done.output)
