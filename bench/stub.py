"""The shop and the channel as a bare HTTP server: answers every call at once, so that it is not what is measured.

usage: python -m bench.stub PORT
"""

from __future__ import annotations

import asyncio
import re
import sys

import orjson

LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
ORDER = re.compile(rb"/orders/([^/?]+)/logistics")


def answer(head: bytes, body: bytes) -> tuple[int, bytes]:
    """Status and JSON body for a request."""
    order = ORDER.search(head)
    if head.startswith(b"POST /v1/outbox"):
        return 202, orjson.dumps({"message_id": orjson.loads(body)["message_id"], "repeated": False})
    if order is None:
        return 404, b'{"error": {"code": "not_found", "message": "no such path"}}'
    event = {"at": 1_767_578_400_000, "text_zh": "包裹已发出", "text_en": "The parcel is on its way"}
    order_id = order.group(1).decode()
    parcel = {"order_id": order_id, "status": "shipped", "carrier": "post", "tracking_no": "T1", "events": [event]}
    return 200, orjson.dumps(parcel)


class Stub(asyncio.Protocol):
    """Keeps connections open and answers pipelined requests in order."""

    def __init__(self) -> None:
        self._buffer = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        if isinstance(transport, asyncio.WriteTransport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each whole request."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            length = LENGTH.search(head)
            whole = end + 4 + (int(length.group(1)) if length else 0)
            if len(self._buffer) < whole:
                return
            status, body = answer(head, self._buffer[end + 4 : whole])
            self._buffer = self._buffer[whole:]
            if self._transport is not None:
                self._transport.write(
                    b"HTTP/1.1 %d OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
                    % (status, len(body), body)
                )


async def main(port: int) -> None:
    """Serve until killed."""
    server = await asyncio.get_running_loop().create_server(Stub, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
