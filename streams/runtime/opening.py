"""Opening an input's seal in memory, for the rows that may (promise 9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from memory.sealing import KeyStore, open_seal
from schemas.step import Input


def opener(keys: KeyStore) -> Callable[[Input], Any]:
    """The clear JSON of an input's seal; None without one, or once its key was destroyed."""

    def opened(cause: Input) -> Any:
        sealed = getattr(cause.value, "seal", None)
        if sealed is None:
            return None
        clear = open_seal(keys, sealed, cause.key)
        return None if clear is None else orjson.loads(clear)

    return opened
