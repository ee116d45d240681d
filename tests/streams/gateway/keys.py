"""A file of producer keys, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

ORDERS, DESK, WORKER = ("orders-" + "k" * 40, "desk-" + "K" * 40, "worker-" + "9" * 40)
HOLDERS: dict[str, Any] = {
    "orders": {"keys": [ORDERS], "may": ["publish"]},
    "desk": {"keys": [DESK], "may": ["decide"]},
    "worker": {"keys": [WORKER], "may": ["deliver"]},
}


def key_file(folder: Path, holders: Any = None) -> Path:
    """Three holders with one right each, or others; bytes as they are."""
    file = folder / "keys.json"
    new = folder / "keys.json.new"
    new.write_bytes(holders if isinstance(holders, bytes) else orjson.dumps(HOLDERS if holders is None else holders))
    new.replace(file)  # as an orchestrator does it: never half a file
    return file
