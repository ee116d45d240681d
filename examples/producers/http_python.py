"""Sends a customer's message, a batch and a CloudEvent to the gateway, with nothing but the standard library.

A gateway with producer keys asks for one at the CloudEvent: INTERLOCK_GATEWAY_KEY.

python examples/producers/http_python.py http://127.0.0.1:8080
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from typing import Any

TRIES = 5
KEY = os.environ.get("INTERLOCK_GATEWAY_KEY", "")


def post(url: str, body: Any, content_type: str = "application/json") -> Any:
    """POST JSON; the answer. The ids in the body make it safe to send again what may have arrived."""
    headers = {"Content-Type": content_type, **({"Authorization": f"Bearer {KEY}"} if KEY else {})}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310
    for wait in range(TRIES):
        try:
            with urllib.request.urlopen(request, timeout=15) as answer:  # noqa: S310 (the address is the caller's)
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise SystemExit(error.read().decode()) from error  # our own mistake: code, message and field
        except OSError:
            pass  # no answer: it may be there or not, so the same ids again
        time.sleep(2**wait)
    message = f"{url} did not answer {TRIES} times"
    raise SystemExit(message)


def main(gateway: str) -> None:
    """One customer's afternoon."""
    who = {"shop": "demo", "channel": "app", "sender": "c-python"}
    message = {"kind": "message", "message_id": "m-1", "text": "Where is my order OD100008?"}
    print(post(f"{gateway}/v1/events", {"id": "python-1", "occurred_at": int(time.time() * 1000), **who,
                                        "body": message}))  # fmt: skip

    queue = [{"id": "python-2", "body": {"kind": "heartbeat"}},
             {"id": "python-3", "body": {"kind": "rating", "score": 9}}]  # fmt: skip
    print(post(f"{gateway}/v1/batch", {**who, "events": queue}))  # the second is refused: a score is 1 to 5

    cloud = {"specversion": "1.0", "id": "python-4", "source": "/surveys", "type": "com.example.survey",
             "subject": "demo/app/c-python", "data": {"kind": "rating", "thumb": "up"}}  # fmt: skip
    print(post(f"{gateway}/v1/cloudevents", cloud, "application/cloudevents+json"))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080")
