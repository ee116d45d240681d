"""`/metrics` of the keeper and the exporter: served while they run, and a taken port is named with its setting."""

from __future__ import annotations

import socket

import httpx
import pytest
from typer.testing import CliRunner

from streams.cli import build
from streams.commands import CommandError
from streams.commands._exposition import exposed
from streams.metrics import Metrics
from streams.settings import Settings


def test_metrics_are_served_until_the_command_ends() -> None:
    """The URL has the real port of a free one, and is closed with the block, also by an error."""
    with pytest.raises(KeyboardInterrupt), exposed(Metrics(), Settings(), 0, "keeper_port") as url:  # noqa: PT012
        assert "interlock_keeper_lag_seconds" in httpx.get(url).text
        raise KeyboardInterrupt

    with pytest.raises(httpx.ConnectError):
        httpx.get(url)


@pytest.mark.parametrize("command", ["keeper", "exporter"])
def test_a_taken_port_is_named(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the port and its setting, whether it came by the setting or by the option."""
    monkeypatch.setenv("INTERLOCK_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        by_option = CliRunner().invoke(build(), [command, "--port", port])
        monkeypatch.setenv(f"INTERLOCK_{command.upper()}_PORT", port)
        by_setting = CliRunner().invoke(build(), [command])

    for result in (by_option, by_setting):
        assert isinstance(result.exception, CommandError)
        assert str(result.exception).startswith(f"port {port}: ")
        assert f"set INTERLOCK_{command.upper()}_PORT or --port" in str(result.exception)
