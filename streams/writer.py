"""Writing from a command: one idempotent producer, full speed, and an answer from the broker for each record."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from schemas.errors import InterlockError
from streams.runtime.client import producer_config, words
from streams.runtime.ports import Outgoing
from streams.settings import Settings

FULL_S = 0.5  # wait for room in the producer's queue
GIVE_UP_MS = 30_000  # a record that the broker has not taken by then is reported as not sent


class WriteError(InterlockError):
    """The broker did not take everything: the message says how many records it has, and why not the rest."""


def write_all(settings: Settings, records: Iterable[Outgoing],
              on_taken: Callable[[int], None] = lambda _: None) -> list[tuple[str, int, int]]:  # fmt: skip
    """Send all and wait for the broker; where each stands (topic, partition, offset), in the order that they came back.

    `on_taken` hears how many the broker has. Raises WriteError when it did not take them all.
    """
    producer = Producer(producer_config(settings, message_timeout_ms=GIVE_UP_MS, linger_ms=5))
    taken: list[tuple[str, int, int]] = []
    refused: list[KafkaError] = []

    def done(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            refused.append(error)
        else:
            taken.append((message.topic() or "", message.partition() or 0, message.offset() or 0))

    for count, record in enumerate(records, 1):
        _hand_over(producer, record, done)
        if count % 1_000 == 0:
            producer.poll(0)
            on_taken(len(taken))
    while len(producer):
        producer.flush(0.2)
        on_taken(len(taken))
    if refused:
        reason = words(refused[0])
        message = f"the broker took {len(taken)} records and refused {len(refused)}: {reason}"
        raise WriteError(message)
    return taken


def _hand_over(producer: Producer, record: Outgoing, done: Callable[[KafkaError | None, Message], None]) -> None:
    while True:
        try:
            producer.produce(record.topic, record.value, record.key, record.partition, on_delivery=done,
                             headers=list(record.headers))  # fmt: skip
        except BufferError:  # the queue is full: the broker sets the pace
            producer.poll(FULL_S)
        except KafkaException as error:
            message = f"{record.topic} {record.partition}: {words(error.args[0])}"
            raise WriteError(message) from error
        else:
            return
