"""Neo4j Community: its jars from Maven Central without Maven, run as a child process with Bolt on loopback only.

The server is GPL-3: it is fetched to the user's cache, never part of what is shipped, and a process of its own.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from streams.java import BrokerError, find_java, jars
from streams.stores.base import Process, ProcessServer, Store, StoreError, cache

VERSION = "5.26.30"  # the long-term line; runs on Java 17, 21 and 25
SERVER = f"org.neo4j:neo4j:{VERSION}"
MAIN, ADMIN = "org.neo4j.server.CommunityEntryPoint", "org.neo4j.cli.AdminTool"
START_SECONDS = 180  # 8 s on an idle machine, 70 s on a busy one
USER = "neo4j"
_QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # 8 s of processor time to start instead of 16
_OPENED = ("java.nio", "java.io", "sun.nio.ch")  # its page cache reaches into these

# Bolt alone, so that nothing else listens. Small where Neo4j sizes itself by the machine: cache, transaction logs.
_SETTINGS = """\
server.default_listen_address=127.0.0.1
server.bolt.listen_address=127.0.0.1:{port}
server.http.enabled=false
server.https.enabled=false
dbms.security.auth_enabled={auth}
dbms.usage_report.enabled=false
server.memory.pagecache.size={page_cache_mb}m
db.tx_log.rotation.size=16m
db.tx_log.rotation.retention_policy=1 files
"""


def home() -> Path:
    """Where the jars are, or will be."""
    return cache() / f"neo4j-{VERSION}"


def found() -> Path | None:
    """The folder of the jars, if they are there."""
    return home() if home().is_dir() else None


def fetch() -> Path:
    """The folder of the jars, fetched by the first caller: 130 MB, 1 to 4 minutes. Raises StoreError."""
    try:
        jars(home(), f"Neo4j {VERSION}", (SERVER,), "give a running server by INTERLOCK_RELATIONS_URL")
    except BrokerError as error:
        raise StoreError(str(error)) from error
    return home()


class Neo4jServer(ProcessServer):
    """One server in a folder."""

    def __init__(
        self,
        folder: Path,
        *,
        jars: Path | None = None,
        password: str = "",
        heap_mb: int = 512,
        page_cache_mb: int = 128,
        quick: bool = True,
    ) -> None:
        """Without a password everybody on this machine may use it; with one the user is `neo4j`, and it stays.

        `quick` takes half the time to start and computes slower: right for a server that soon ends.
        """
        super().__init__(Process(folder, ("bolt",), START_SECONDS))
        self._jars, self._password, self._page_cache_mb = jars, password, page_cache_mb
        self._machine = [f"-Xms{heap_mb}m", f"-Xmx{heap_mb}m", *(_QUICK if quick else ())]

    @property
    def url(self) -> str:
        """For INTERLOCK_RELATIONS_URL."""
        return f"bolt://127.0.0.1:{self.process.ports()['bolt']}"

    def start(self) -> str:
        """See Server."""
        folder, java = self._jars or fetch(), self._java()
        self._configure()
        command = [str(java), *self._machine]
        command += [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
        command += ["-cp", str(folder / "*")]
        if self._password and not (self.process.folder / "data" / "dbms").exists():
            self._set_password(command)
        places = [f"--home-dir={self.process.folder.absolute()}", f"--config-dir={self._settings.parent}"]
        self.process.run([*command, MAIN, "--console-mode", *places], {}, self._started)
        return self.url

    @property
    def _settings(self) -> Path:
        return self.process.folder.absolute() / "conf" / "neo4j.conf"

    def _configure(self) -> None:
        self._settings.parent.mkdir(parents=True, exist_ok=True)
        auth = "true" if self._password else "false"
        port = self.process.ports()["bolt"]
        text = _SETTINGS.format(port=port, auth=auth, page_cache_mb=self._page_cache_mb)
        self._settings.write_text(text, encoding="utf-8")

    def _set_password(self, command: list[str]) -> None:
        """Before the first start, as Neo4j asks. It takes a password of 8 characters or more."""
        environment: Mapping[str, str] = {
            **os.environ,
            "NEO4J_HOME": str(self.process.folder.absolute()),
            "NEO4J_CONF": str(self._settings.parent),
        }
        told = [*command, ADMIN, "dbms", "set-initial-password", self._password]
        done = subprocess.run(told, env=environment, capture_output=True, text=True, timeout=START_SECONDS, check=False)
        if done.returncode != 0:
            message = f"Neo4j does not take the password: {(done.stdout + done.stderr).strip()[-500:]}"
            raise StoreError(message)

    def _started(self) -> bool:
        return "INFO  Started." in self.process.log_file.read_text(errors="replace")

    @staticmethod
    def _java() -> Path:
        try:
            return find_java()
        except BrokerError as error:
            raise StoreError(str(error)) from error


STORE = Store("neo4j", "INTERLOCK_RELATIONS_URL", fetch, found, Neo4jServer)
