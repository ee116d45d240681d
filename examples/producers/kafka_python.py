"""A Python service that publishes to Kafka with the library: masked and sealed before anything leaves the process.

python examples/producers/kafka_python.py 127.0.0.1:9092 .interlock
"""

from __future__ import annotations

import sys
from pathlib import Path

from streams.producer import BadRecordError, Failure, Producer, open_key_store


def lost(failure: Failure) -> None:
    """The broker did not take it: keep it and send it again later, under the same id."""
    print(f"not delivered: {failure.event_id} of {failure.conversation}: {failure.reason}", file=sys.stderr)


def main(brokers: str, data_dir: str) -> None:
    """Twenty messages, and one that is none."""
    keys = open_key_store(Path(data_dir))  # the installation's; without: keys=None, and channel.raw
    with Producer(brokers, keys=keys, name="orders-service", on_error=lost) as producer:
        for number in range(20):
            producer.send({
                "id": f"orders-{number}", "shop": "demo", "channel": "app", "sender": "c-service",
                "body": {"kind": "message", "message_id": f"m-{number}", "text": f"call 13812345678, item {number}"},
            })  # fmt: skip
        try:
            producer.send({"id": "orders-20", "shop": "demo", "channel": "app", "sender": "c-service", "body": {}})
        except BadRecordError as error:
            print(f"refused: {error.field}: {error.reason}")
    print("sent: 20")  # the block has ended, so the broker has them


if __name__ == "__main__":
    main(*sys.argv[1:])
