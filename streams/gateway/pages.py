"""The browser's files: `/client.js`, one file without dependencies, and `/chat`, a page that shows it."""

from __future__ import annotations

import hashlib
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

# Nothing from elsewhere is loaded, and no script of the page itself runs: what a message says stays text.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def _file(path: str, name: str, media_type: str) -> Route:
    body = resources.files("streams.gateway").joinpath("static", name).read_bytes()
    headers = {**_HEADERS, "ETag": f'"{hashlib.sha256(body).hexdigest()[:20]}"'}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type=media_type, headers=headers)

    return Route(path, answer)


PAGES = (_file("/chat", "chat.html", "text/html"), _file("/client.js", "client.js", "text/javascript"))
