"""Neo4j's server as we run it: on loopback, over Bolt alone, fetched whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.stores import neo4j
from streams.stores.base import StoreError
from streams.stores.neo4j import Neo4jServer


@pytest.mark.parametrize(("password", "auth"), [("", "false"), ("correct-horse", "true")])
def test_only_bolt_listens_and_only_on_loopback(password: str, auth: str, tmp_path: Path) -> None:
    """The server's settings name 127.0.0.1 for all it opens, switch HTTP off, and ask for a log-in where one is set."""
    server = Neo4jServer(tmp_path, password=password)
    server._configure()

    said = dict(line.split("=") for line in server._settings.read_text().splitlines())
    port = server.process.ports()["bolt"]
    assert f"127.0.0.1:{port}" == said["server.bolt.listen_address"]
    assert ("127.0.0.1", "false") == (said["server.default_listen_address"], said["server.http.enabled"])
    assert (auth, "false") == (said["dbms.security.auth_enabled"], said["dbms.usage_report.enabled"])
    assert f"bolt://127.0.0.1:{port}" == server.url == Neo4jServer(tmp_path).url


def test_fetch_that_fails_leaves_nothing_and_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jars that can't be fetched are an error that names another way, and no later start trusts what came."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens there
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(StoreError, match="INTERLOCK_RELATIONS_URL"):
        neo4j.fetch()

    assert neo4j.found() is None
    assert [] == [*tmp_path.rglob("*.jar"), *tmp_path.rglob("*.part")]
