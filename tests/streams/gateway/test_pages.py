"""The browser's files: served by the gateway, small, with a policy that lets nothing of a message run."""

from __future__ import annotations

import re

import pytest

from streams.gateway import pages
from tests.streams.gateway.local import web

SINKS = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|\son[a-z]+=")


@pytest.mark.parametrize(("path", "kind"), [("/chat", "text/html"), ("/client.js", "text/javascript")])
async def test_a_file_comes_with_its_policy(path: str, kind: str) -> None:
    """Nothing from elsewhere and no script inside the page may run; an unchanged file is not sent again."""
    async with web() as w:
        answer = await w.client.get(path)
        again = await w.client.get(path, headers={"if-none-match": answer.headers["etag"]})

        assert (200, 304, b"") == (answer.status_code, again.status_code, again.content)
        assert answer.headers["content-type"].startswith(kind)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self';" in policy
        assert "nosniff" == answer.headers["x-content-type-options"]


async def test_the_client_writes_text_and_never_markup() -> None:
    """No way from a message's text to markup or code is used, and no other file is loaded."""
    async with web() as w:
        script = (await w.client.get("/client.js")).text
        page = (await w.client.get("/chat")).text

        assert not SINKS.search(script)
        assert not re.search(r"https?://|\bimport\b|\brequire\(", script)
        assert ["/client.js"] == re.findall(r'<script src="([^"]*)"', page)
        assert "<script>" not in page


def test_the_gateway_serves_both() -> None:
    """The page and the one file."""
    assert ["/chat", "/client.js"] == [route.path for route in pages.PAGES]
