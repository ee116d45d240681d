"""The only module that reads the clock or draws randomness; everything else is handed a Clock."""

from __future__ import annotations

import time
import uuid


class SystemClock:
    """Wall time of this machine; the `Clock` port of the running pipeline."""

    def now_ms(self) -> int:
        """UTC milliseconds since 1970."""
        return time.time_ns() // 1_000_000


def fresh_id(prefix: str) -> str:
    """A random id for what enters at an edge (a request, a decision made by a person), never inside a step."""
    return f"{prefix}-{uuid.uuid4().hex}"
