"""Promise 8, replay touches nothing: no record, topic, group, call or message comes of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from streams.cli import build
from streams.reader import KafkaSource
from streams.runtime.ports import Outgoing
from streams.settings import Settings
from streams.topics import apply_topics
from streams.writer import write_all
from tests.streams.replay.recorded import REFUND, refund
from tests.streams.runtime.kafka_rig import wait_until


@dataclass
class Ear:
    """Shop and gateway of the recorded session: nobody may ring here."""

    heard: list[str] = field(default_factory=list)
    server: ThreadingHTTPServer | None = None

    def start(self) -> str:
        """Listen; the base URL."""
        heard = self.heard

        class Handler(BaseHTTPRequestHandler):
            def handle(self) -> None:
                heard.append(str(self.client_address))

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def cluster(broker: str, tmp_path: Path) -> Iterator[Settings]:
    """The broker with all topics and a recorded session on them, and nothing of it afterwards."""
    settings = Settings(bootstrap_servers=broker, data_dir=tmp_path)
    admin = AdminClient({"bootstrap.servers": broker})
    _clean(admin)
    apply_topics(broker, settings)
    write_all(settings, (Outgoing(one.topic, one.partition, one.key, one.value, one.headers)
                         for one in refund().records))  # fmt: skip
    yield settings
    _clean(admin)


def _clean(admin: AdminClient) -> None:
    names = [name for name in admin.list_topics(timeout=10).topics if not name.startswith("_")]
    for answer in admin.delete_topics(names).values() if names else ():
        answer.result()
    wait_until(lambda: not set(names) & admin.list_topics(timeout=10).topics.keys())


def _picture(settings: Settings) -> dict[str, Any]:
    """All that a reader could leave on a cluster, and on the disk."""
    admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers})
    topics = {name: len(found.partitions) for name, found in admin.list_topics(timeout=10).topics.items()}
    with KafkaSource(settings) as source:
        ends = {(name, number): source.bounds(name, number) for name, count in topics.items()
                for number in range(count) if not name.startswith("__")}  # fmt: skip
    groups = sorted(group.group_id for group in admin.list_consumer_groups().result().valid)
    files = sorted(str(file.relative_to(settings.data_dir)) for file in settings.data_dir.rglob("*"))
    return {"topics": topics, "ends": ends, "groups": groups, "files": files}


def _commands() -> list[list[str]]:
    session = refund().sessions(REFUND)[0]
    event = next(value["event_id"] for value in refund().values("channel.events", REFUND))
    return [
        ["replay", session], ["replay", REFUND], ["replay", session, "--json"], ["trace", event], ["state", REFUND],
        ["state", REFUND, "--at", "3"], ["diff", REFUND, "2", "5"], ["dlq", "list"],
    ]  # fmt: skip


@pytest.mark.kafka
@pytest.mark.timeout(180)
def test_readers_leave_the_cluster_as_it_was(cluster: Settings) -> None:
    """Replay, trace, state, diff, dlq on a session with a refund and sends: nothing written, nobody called (D13)."""
    ear = Ear()
    url = ear.start()
    env = {"INTERLOCK_BOOTSTRAP_SERVERS": cluster.bootstrap_servers, "INTERLOCK_DATA_DIR": str(cluster.data_dir),
           "INTERLOCK_SHOP_URL": url, "INTERLOCK_GATEWAY_URL": url}  # fmt: skip
    before = _picture(cluster)
    printed = []
    for command in _commands():
        result = CliRunner().invoke(build(), command, env=env)
        assert (0, None) == (result.exit_code, result.exception), (command, result.output)
        printed.append(result.output)
    assert before == _picture(cluster)
    assert [] == ear.heard
    assert "create_refund" in printed[0]
    assert sum(end for _, end in before["ends"].values()) > 100


def test_the_read_side_holds_no_ends_to_write_or_call_with() -> None:
    """No module of the read side imports a producer, an HTTP client or an effect handler (promise 8)."""
    root = Path(__file__).parents[2] / "streams"
    sources = [*(root / "replay").glob("*.py"), root / "reader.py", *(root / "commands" / f"{name}.py" for name in
               ("replay", "trace", "state", "tail"))]  # fmt: skip
    assert len(sources) > 8
    for source in sources:
        text = source.read_text(encoding="utf-8")
        for word in ("httpx", "Producer", "streams.effects", "streams.writer", "runtime.sender", "runtime.commit"):
            assert word not in text, (source.name, word)


def test_a_recorded_refund_has_what_could_be_repeated() -> None:
    """The recording holds a call that moved money and sends, so that touching would show (promise 8)."""
    risks = [orjson.loads(one.value or b"{}").get("risk") for one in refund().of("tools.calls")]
    assert "money" in risks
    assert len(refund().of("actions.outbound")) > 3
