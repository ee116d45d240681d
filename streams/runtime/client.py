"""How every Kafka client of the runtime is set up: placement, sizes, compression, error words."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message

from streams.runtime.ports import Headers

T = TypeVar("T")
log = logging.getLogger("interlock.kafka")

MAX_RECORD_BYTES = 8 * 1024 * 1024 + 64 * 1024  # the largest topic limit, and room for key and headers


class Cluster(Protocol):
    """What a client must know: where the brokers are, and in whose name it comes. The settings are one."""

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`, separated by commas."""
        ...

    @property
    def group(self) -> str:
        """The name that broker logs show."""
        ...


def common(settings: Cluster) -> dict[str, Any]:
    """What producers, consumers and admin clients share."""
    return {
        "bootstrap.servers": settings.bootstrap_servers,
        "client.id": settings.group,
        "log_level": 4,
        "logger": log,
        "error_cb": _heard,  # hears of all but fatal errors: those are raised, see `serve`
    }


def producer_config(settings: Cluster, **extra: Any) -> dict[str, Any]:
    """An idempotent producer that keeps order and places keys as Java does (promise 1)."""
    return {
        **common(settings),
        "enable.idempotence": True,
        "acks": "all",
        "partitioner": "murmur2_random",
        "message.max.bytes": MAX_RECORD_BYTES,
        "compression.type": "zstd",
        "linger.ms": 2,
        "queue.buffering.max.messages": 500_000,
        **{name.replace("_", "."): value for name, value in extra.items()},
    }


def consumer_config(settings: Cluster, group: str, **extra: Any) -> dict[str, Any]:
    """A reader with assigned positions that sees committed records only; it commits nothing by itself."""
    return {
        **common(settings),
        "group.id": group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        # a larger record still comes: the first of an answer is given whatever its size
        "fetch.message.max.bytes": 4 * 1024 * 1024,
        "fetch.max.bytes": 64 * 1024 * 1024,
        "queued.max.messages.kbytes": 128 * 1024,
        "fetch.wait.max.ms": 20,
        "message.max.bytes": MAX_RECORD_BYTES,
        **{name.replace("_", "."): value for name, value in extra.items()},
    }


def _heard(error: KafkaError) -> None:
    log.info("%s", words(error))


def serve(call: Callable[..., T], *arguments: Any) -> T:
    """A call that serves callbacks. A fatal error is raised among them, and comes out as KafkaException."""
    try:
        return call(*arguments)
    except SystemError as error:  # the callbacks after the fatal error ran with it pending
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from None
        raise


def headers_of(message: Message) -> Headers:
    """A record's headers, in order, repeats and nulls kept."""
    found: Any = message.headers()
    return tuple(found or ())


def words(error: KafkaError) -> str:
    """The broker's or the client's error as `NAME: text`."""
    return f"{error.name()}: {error.str()}"
