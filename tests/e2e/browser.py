"""A real Chromium for tests: skipped with the reason where there is none, in CI a failure."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, async_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable() -> str:
    """Where the browser is."""
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        if os.environ.get("CI"):
            message = f"none of {', '.join(NAMES)} is on PATH: install the browser"
            raise RuntimeError(message)
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on PATH")
    return found


@contextlib.asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """The browser, closed with the block."""
    path = executable()
    async with async_playwright() as tools:
        # as a container's only user it runs without its sandbox; what it loads is ours
        started = await tools.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield started
        finally:
            await started.close()
