"""How a partition is rebuilt and made on Kafka: the owner's `Host` for the product."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from memory.sealing import KeyStore
from streams.clock import SystemClock
from streams.metrics import MetricsPort
from streams.runtime.judge import Ports
from streams.runtime.opening import opener
from streams.runtime.partition import PartitionRuntime
from streams.runtime.ports import Clock, CommitPort, EffectHandler, OffsetsPort, Recovered, SendPort
from streams.runtime.recovery import recover
from streams.runtime.snapshotting import LocalSnapshots
from streams.runtime.table import Row
from streams.runtime.turns import Turns
from streams.settings import Settings


@dataclass(frozen=True, slots=True)
class KafkaHost:
    """Real ports for every partition of a worker; `snapshots` is None where none are kept."""

    settings: Settings
    rows: Sequence[Row]
    send: SendPort
    offsets: OffsetsPort
    keys: KeyStore
    effects: Mapping[str, EffectHandler]
    metrics: MetricsPort
    snapshots: LocalSnapshots | None = None
    clock: Clock = field(default_factory=SystemClock)
    turns: Turns = field(default_factory=Turns)

    def recover(self, partition: int, cancelled: Callable[[], bool]) -> Recovered:
        """Blocks; called on a thread, after the fence."""
        return recover(self.settings, partition, cancelled, self.snapshots)

    def runtime(self, partition: int, commit: CommitPort) -> PartitionRuntime:
        """A new partition."""
        snapshots = self.snapshots
        ports = Ports(
            commit=commit, send=self.send, offsets=self.offsets, clock=self.clock, keys=self.keys, effects=self.effects,
            # without a snapshot file a closed conversation stays in memory, so there is nothing to find
            residue=(lambda _: None) if snapshots is None else partial(snapshots.find, partition),
            snapshots=snapshots, metrics=self.metrics, open_seal=opener(self.keys),
            turns=self.turns,
        )  # fmt: skip
        return PartitionRuntime(partition, self.rows, ports, self.settings)
