"""A small OpenAI-compatible server on a real socket that answers as told, and what a form of it looks like."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import orjson

from agents.models.form import FUNCTION

Json = dict[str, Any]
Behave = Callable[[Json], "Told"]


class Told:
    """One answer: status, body, and how long the server thinks (seconds)."""

    def __init__(self, body: Any = b"", status: int = 200, seconds: float = 0.0) -> None:
        self.body = body if isinstance(body, bytes) else orjson.dumps(body)
        self.status, self.seconds = status, seconds


def form(intent: str, *evidence: str, **more: Any) -> Json:
    """A whole form."""
    return {"intent": intent, "evidence": list(evidence), "plan": ["look_up"], "to_confirm": [], **more}


def completion(arguments: Any = None, content: str | None = None, *, function: str = FUNCTION, times: int = 1,
               **more: Any) -> Told:  # fmt: skip
    """A chat completion with a function call of these arguments (so many times over), or with words."""
    message: Json = {"role": "assistant", "content": content}
    if content is None:
        text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
        call = {"id": "c", "type": "function", "function": {"name": function, "arguments": text}}
        message["tool_calls"] = [call] * times
    usage = {"prompt_tokens": 700, "completion_tokens": 60}
    return Told({"model": "stub-1", "choices": [{"message": message}], "usage": usage, **more})


class Stub:
    """Where the server listens, and what it was asked."""

    def __init__(self, url: str, asked: list[Json], headers: list[Json]) -> None:
        self.url, self.asked, self.headers = url, asked, headers

    def said(self, number: int = -1) -> str:
        """The customer's message as the model was shown it, with all that stands beside it."""
        return str(self.asked[number]["messages"][1]["content"])


@contextlib.contextmanager
def stub(*told: Told | Behave) -> Iterator[Stub]:
    """The server until the end of the block: each question gets the next answer, the last one is given for ever."""
    asked: list[Json] = []
    headers: list[Json] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """One question."""
            question = orjson.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(question)
            headers.append({"path": self.path, **{name.lower(): value for name, value in self.headers.items()}})
            one = told[min(len(asked), len(told)) - 1]
            answer = one(question) if callable(one) else one
            time.sleep(answer.seconds)
            with contextlib.suppress(ConnectionError):  # whoever asked has gone
                self.send_response(answer.status)
                self.send_header("content-length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield Stub(f"http://127.0.0.1:{server.server_address[1]}/v1", asked, headers)
    finally:
        server.shutdown()
        server.server_close()


class Blocking(httpx.AsyncBaseTransport):
    """Real sockets on a virtual loop: a request blocks the loop, so that it takes no virtual time at all."""

    def __init__(self, seconds: float = 60.0) -> None:
        self._inner, self._seconds = httpx.HTTPTransport(), seconds

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One exchange, with a time-out of its own in real seconds."""
        limits = dict.fromkeys(("connect", "read", "write", "pool"), self._seconds)
        plain = httpx.Request(request.method, request.url, headers=request.headers, content=await request.aread(),
                              extensions={"timeout": limits})  # fmt: skip
        answer = self._inner.handle_request(plain)
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.read())
