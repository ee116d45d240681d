"""The embedded broker: one real Apache Kafka node (KRaft) under the data folder, on loopback only."""

from __future__ import annotations

import base64
import json
import logging
import os
import signal
import socket
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streams.java import BrokerError, find_java, kafka_jars, locked
from streams.settings import Settings

START_SECONDS = 90  # a first start on a busy machine took 30 s
STOP_SECONDS = 30
MAX_MESSAGE_BYTES = 8 * 1024 * 1024 + 64 * 1024  # the largest topics take 8 MiB; headers and framing on top
QUOTED_LINES = 15

log = logging.getLogger(__name__)

# small where Kafka is generous: each of several hundred partitions preallocates its indexes, and 50 partitions of
# each internal topic would be made at the first start; a group of one waits for nobody
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
message.max.bytes={size}
replica.fetch.max.bytes={size}
socket.request.max.bytes=104857600
log.index.size.max.bytes=1048576
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=1000
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""
_LOGGING = """\
rootLogger.level=WARN
rootLogger.appenderRef.out.ref=OUT
appender.out.type=Console
appender.out.name=OUT
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d{ISO8601} %p %m (%c{1})%n
"""


@dataclass(frozen=True)
class BrokerState:
    """What `broker.json` says of the node in this folder: its ports stay, its pid may be stale."""

    pid: int
    port: int
    controller_port: int


class EmbeddedKafka:
    """One broker in `data_dir`/kafka. `start` reuses the one that already answers there.

    A context manager stops only what it started. Port 0: a free one, then kept across restarts.
    """

    def __init__(self, data_dir: Path, port: int = 0, jars: Path | None = None) -> None:
        self.folder = data_dir.resolve() / "kafka"
        self.log_file = self.folder / "broker.log"
        self.started = False
        self._wanted = port
        self._jars = jars
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def state(self) -> BrokerState | None:
        """The state file, or None when there is none or it can't be read."""
        try:
            return BrokerState(**json.loads((self.folder / "broker.json").read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    @property
    def bootstrap(self) -> str:
        """`127.0.0.1:port`. Raises BrokerError when this folder never had a broker."""
        state = self.state
        if state is None:
            message = f"no broker was started in {self.folder}: run `interlock up`"
            raise BrokerError(message)
        return f"127.0.0.1:{state.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.started:
            self.stop()

    def running(self) -> bool:
        """Whether this folder's own broker answers: same cluster id, not just somebody on that port."""
        state = self.state
        return state is not None and _cluster_id(f"127.0.0.1:{state.port}", 3) == self._formatted_id() is not None

    def start(self) -> str:
        """Start it, or reuse the one that runs; its bootstrap address once it answers.

        Raises BrokerError with the broker's last lines when it does not answer within 90 s.
        """
        with locked(self.folder / ".lock"):
            if self._adopt():
                return self.bootstrap
            java, jars = find_java(), kafka_jars(self._jars)
            state = self._configure()
            command = [
                str(java),
                "-Xmx512m",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                os.pathsep.join(map(str, jars)),
                f"-Dlog4j2.configurationFile=file:{self.folder / 'log4j2.properties'}",
            ]
            self._format(command)
            if self.log_file.exists():
                self.log_file.replace(self.log_file.with_suffix(".log.1"))
            with self.log_file.open("wb") as output:  # a session of its own: Ctrl-C reaches us, and we stop it
                self._process = subprocess.Popen(
                    [*command, "kafka.Kafka", str(self._properties)],
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            self.started = True
            self._save(BrokerState(self._process.pid, state.port, state.controller_port))
            try:
                self._wait_until_it_answers()
            except BaseException:  # also Ctrl-C: no half-started broker is left behind
                self.kill()
                raise
        return self.bootstrap

    def stop(self) -> None:
        """SIGTERM, and SIGKILL after 30 s. Does nothing when none runs."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: the broker's crash, for chaos tests; `start` then goes on with the same data."""
        self._end(signal.SIGKILL)

    def poll(self) -> int | None:
        """The exit code of the broker that this object started, or None while it runs."""
        return self._process.poll() if self._process else None

    def last_lines(self, count: int = QUOTED_LINES) -> str:
        """The end of the broker's log."""
        try:
            return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-count:])
        except FileNotFoundError:
            return "(no log)"

    def report_end(self) -> None:
        """Raise BrokerError: how the broker ended, or that it does not answer, and its last lines."""
        code = self.poll()
        why = f"ended with code {code}" if code is not None else f"did not answer within {START_SECONDS} s"
        message = f"the broker {why}; the end of {self.log_file}:\n{self.last_lines()}"
        raise BrokerError(message)

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _adopt(self) -> bool:
        """Wait for a living process of this folder to answer; False when there is none."""
        state = self.state
        if state is None or not _is_broker(state.pid, self._properties):
            return False
        deadline = time.monotonic() + START_SECONDS
        while _is_broker(state.pid, self._properties):
            if self.running():
                return True
            if time.monotonic() > deadline:
                message = f"the broker with pid {state.pid} lives but does not answer: stop it, or see {self.log_file}"
                raise BrokerError(message)
            time.sleep(0.2)
        return False

    def _configure(self) -> BrokerState:
        """Write the settings. Kept ports stay unless somebody else took them; a port asked for is not negotiable."""
        (self.folder / "data").mkdir(parents=True, exist_ok=True)
        # the ports of before: workers and clients in other terminals still have them
        old = self.state
        if self._wanted and not _free(self._wanted):
            message = f"port {self._wanted} is taken: free it, or set INTERLOCK_KAFKA_PORT to another (0: any)"
            raise BrokerError(message)
        port = self._wanted or (old.port if old and _free(old.port) else _free_port())
        controller = old.controller_port if old and _free(old.controller_port) else _free_port(port)
        self._properties.write_text(
            _PROPERTIES.format(port=port, controller=controller, data=self.folder / "data", size=MAX_MESSAGE_BYTES)
        )
        (self.folder / "log4j2.properties").write_text(_LOGGING)
        return BrokerState(0, port, controller)

    def _format(self, command: list[str]) -> None:
        if self._formatted_id() is not None:
            return
        cluster = "I" + base64.urlsafe_b64encode(os.urandom(16)).decode()[1:22]  # never a leading dash
        done = subprocess.run(
            [*command, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._properties)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            message = f"the broker's folder {self.folder} can't be formatted:\n{(done.stderr + done.stdout)[-2000:]}"
            raise BrokerError(message)

    def _formatted_id(self) -> str | None:
        try:
            lines = (self.folder / "data" / "meta.properties").read_text().splitlines()
        except FileNotFoundError:
            return None
        return next((line.removeprefix("cluster.id=") for line in lines if line.startswith("cluster.id=")), None)

    def _save(self, state: BrokerState) -> None:
        draft = self.folder / "broker.json.part"
        draft.write_text(json.dumps(asdict(state)))
        draft.replace(self.folder / "broker.json")

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.running():
            code = self.poll()
            if code is None and time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            self.report_end()

    def _end(self, number: signal.Signals) -> None:
        state = self.state
        if state is None or not _is_broker(state.pid, self._properties):
            self._reap()
            return
        # the pid is known to be this broker's, see `_is_broker`: a stale file must not end a stranger
        os.kill(state.pid, number)
        deadline = time.monotonic() + STOP_SECONDS
        while self.poll() is None and _is_broker(state.pid, self._properties):
            if time.monotonic() > deadline:
                os.kill(state.pid, signal.SIGKILL)
            time.sleep(0.05)
        self._reap()

    def _reap(self) -> None:
        if self._process is not None:
            self._process.wait()
            self._process = None
        self.started = False


def bootstrap_of(settings: Settings) -> str:
    """The cluster of these settings, the given one or the embedded one. Raises BrokerError when none runs."""
    if settings.bootstrap_servers:
        return settings.bootstrap_servers
    broker = EmbeddedKafka(settings.data_dir)
    if not broker.running():
        message = f"no broker answers for {broker.folder}: run `interlock up`, or set INTERLOCK_BOOTSTRAP_SERVERS"
        raise BrokerError(message)
    return broker.bootstrap


def _cluster_id(bootstrap: str, timeout: float) -> str | None:
    silent = logging.getLogger("interlock.probe")
    silent.setLevel(logging.CRITICAL)  # librdkafka reports each refused connection while the broker starts
    admin = AdminClient({"bootstrap.servers": bootstrap, "socket.connection.setup.timeout.ms": 2000}, logger=silent)
    try:
        cluster: str | None = admin.list_topics(timeout=timeout).cluster_id
    except KafkaException:
        return None
    return cluster


def _is_broker(pid: int, properties: Path) -> bool:
    """Whether this pid is the broker of that settings file, and not a later process that got its number."""
    if pid <= 0:
        return False
    proc = Path("/proc")
    if not (proc / "self").exists():
        done = subprocess.run(["ps", "-o", "args=", "-ww", "-p", str(pid)], capture_output=True, text=True, check=False)
        return str(properties) in done.stdout
    try:  # empty for a zombie
        return str(properties).encode() in (proc / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_port(other_than: int = 0) -> int:
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port != other_than:
            return port
