"""A service of another team, for tests: sends events and ends in one of three ways, without a flush of its own."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from streams.producer import Producer, open_key_store


def event(number: int, text: str = "") -> dict[str, object]:
    """The number-th event, of one of 40 customers."""
    body = {"kind": "message", "message_id": f"m-{number}", "text": text or f"call 13812345678 about {number}"}
    return {"id": f"p-{number}", "shop": "demo", "channel": "app", "sender": f"u{number % 40}", "body": body}


def main(bootstrap: str, folder: str, count: str, ending: str) -> None:
    """`return`: falls off the end; `wait`: says so and waits for a signal; `raise`: ends by an error."""
    # a minute in the queue: without a flush at the end the last events would never be sent
    producer = Producer(bootstrap, keys=open_key_store(Path(folder)), config={"linger.ms": 60_000})
    for number in range(int(count)):
        producer.send(event(number))
    if ending == "raise":
        message = "the service's own fault"
        raise RuntimeError(message)
    if ending == "wait":
        print("sent", flush=True)  # noqa: T201 (what the test waits for)
        time.sleep(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
