"""Weaviate: built from the Go module with every listener on loopback, and run with keyword search that finds all."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import urllib.request
from pathlib import Path

from streams.java import locked
from streams.stores.base import Process, ProcessServer, Store, StoreError, cache

VERSION = "v1.35.2"  # later ones need another Go, and move the listeners
MODULE = "github.com/weaviate/weaviate"
# It has no setting for the address of these two, and would listen on every interface.
LISTENERS = ("adapters/handlers/grpc/server.go", "adapters/handlers/rest/clusterapi/serve.go")
_EVERYWHERE = re.compile(r'Sprintf\(":%d"')
START_SECONDS = 90

log = logging.getLogger(__name__)


def found() -> Path | None:
    """The built server, if it is there."""
    program = cache() / f"weaviate-{VERSION}" / "weaviate-server"
    return program if program.exists() else None


def fetch() -> Path:
    """The server, built by the first caller: 5 to 15 minutes, needs Go 1.24 or newer. Raises StoreError.

    A build that is cut short leaves nothing that a later one would trust.
    """
    with locked(cache() / ".weaviate.lock"):
        there = found()
        if there is not None:
            return there
        staging = cache() / f"weaviate-{VERSION}.part"
        shutil.rmtree(staging, ignore_errors=True)
        try:
            _build(staging)
            shutil.rmtree(staging / "source")
            staging.rename(cache() / f"weaviate-{VERSION}")
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return cache() / f"weaviate-{VERSION}" / "weaviate-server"


def _build(staging: Path) -> None:
    if shutil.which("go") is None:
        message = "no `go` on PATH: install Go, or give a running server by INTERLOCK_FACTS_URL"
        raise StoreError(message)
    told = json.loads(_go("mod", "download", "-json", f"{MODULE}@{VERSION}", folder=cache()))
    source = staging / "source"
    # the module cache is read-only, and the build must see the changed files in their place
    shutil.copytree(told["Dir"], source, copy_function=shutil.copyfile)
    for name in LISTENERS:
        pin_to_loopback(source / name)
    _go("build", "-trimpath", "-ldflags=-s -w", "-o", str(staging / "weaviate-server"), "./cmd/weaviate-server",
        folder=source)  # fmt: skip


def pin_to_loopback(file: Path) -> None:
    """Make a listener's source name 127.0.0.1. Raises StoreError when it looks different from what we know."""
    changed, count = _EVERYWHERE.subn('Sprintf("127.0.0.1:%d"', file.read_text(encoding="utf-8"))
    if count == 0:
        message = f"{file}: no listener found to pin to loopback; {MODULE} {VERSION} is not what we know"
        raise StoreError(message)
    file.write_text(changed, encoding="utf-8")


def _go(*arguments: str, folder: Path) -> str:
    environment = {**os.environ, "GOWORK": "off", "CGO_ENABLED": "0"}
    done = subprocess.run(["go", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        message = f"`go {arguments[0]}` failed for {MODULE} {VERSION}:\n{(done.stdout + done.stderr)[-2000:]}"
        raise StoreError(message)
    return done.stdout


class WeaviateServer(ProcessServer):
    """One node in a folder."""

    def __init__(self, folder: Path, *, program: Path | None = None, api_key: str = "") -> None:
        """Without an API key everybody on this machine may use it."""
        ports = ("http", "grpc", "gossip", "data", "raft", "raft_rpc")
        super().__init__(Process(folder, ports, START_SECONDS))
        self._program, self._api_key = program, api_key

    @property
    def url(self) -> str:
        """For INTERLOCK_FACTS_URL."""
        ports = self.process.ports()
        return f"http://127.0.0.1:{ports['http']}?grpc={ports['grpc']}"

    def start(self) -> str:
        """See Server."""
        program = self._program or fetch()
        ports = self.process.ports()
        command = [str(program), "--scheme", "http", "--host", "127.0.0.1", "--port", str(ports["http"])]
        ready = f"http://127.0.0.1:{ports['http']}/v1/.well-known/ready"
        self.process.run(command, self.environment(), lambda: _answers(ready))
        return self.url

    def environment(self) -> dict[str, str]:
        """Its settings, all of them variables."""
        ports = self.process.ports()
        return {
            "PERSISTENCE_DATA_PATH": str(self.process.folder.absolute() / "data"),
            "GRPC_PORT": str(ports["grpc"]),
            "CLUSTER_HOSTNAME": "interlock",  # stands in the data: another name would not find them again
            "CLUSTER_BIND_ADDR": "127.0.0.1",
            "CLUSTER_ADVERTISE_ADDR": "127.0.0.1",
            "CLUSTER_GOSSIP_BIND_PORT": str(ports["gossip"]),
            "CLUSTER_DATA_BIND_PORT": str(ports["data"]),
            "RAFT_PORT": str(ports["raft"]),
            "RAFT_INTERNAL_RPC_PORT": str(ports["raft_rpc"]),
            "RAFT_TIMEOUTS_MULTIPLIER": "1",  # a node alone elects itself; the default waits five times as long
            "RAFT_BOOTSTRAP_EXPECT": "1",
            # the default was seen to lose most matches of a keyword search in what is not flushed to disk yet
            "USE_BLOCKMAX_WAND": "false",
            "DEFAULT_VECTORIZER_MODULE": "none",
            "API_BASED_MODULES_DISABLED": "true",
            "DISABLE_TELEMETRY": "true",
            "GO_PROFILING_DISABLE": "true",  # it would open a port of its own
            "LOG_LEVEL": "warning",
            **self._access(),
        }

    def _access(self) -> dict[str, str]:
        if not self._api_key:
            return {"AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "true"}
        return {
            "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "false",
            "AUTHENTICATION_APIKEY_ENABLED": "true",
            "AUTHENTICATION_APIKEY_ALLOWED_KEYS": self._api_key,
            "AUTHENTICATION_APIKEY_USERS": "interlock",
            "AUTHORIZATION_ADMINLIST_ENABLED": "true",
            "AUTHORIZATION_ADMINLIST_USERS": "interlock",
        }


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:  # noqa: S310 (our own http address)
            return bool(answer.status == 200)
    except OSError:
        return False


STORE = Store("weaviate", "INTERLOCK_FACTS_URL", fetch, found, WeaviateServer)
