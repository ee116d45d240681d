"""Log lines of the processes: one JSON object each on standard error, and the same thing not every second."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

import orjson

from memory.masking import mask

OURS = ("interlock", "streams", "memory", "agents", "feedback")


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the error's name and traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname, "logger": record.name, "message": _shown(record.getMessage()),
        }  # fmt: skip
        if record.exc_info:
            line["error"] = _shown(self.formatException(record.exc_info))
        return orjson.dumps(line, default=str).decode()


def _shown(text: str) -> str:
    """Masked: a library, or a bug of ours, may put a value into its words (promise 9, case F09)."""
    return mask(text)[0]


class Seldom(logging.Filter):
    """Of a library's lines with one text, at most one in `seconds`: a broker that is away fills no disk."""

    def __init__(self, seconds: float = 10.0) -> None:
        super().__init__()
        self._seconds = seconds
        self._last: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write the line; our own always."""
        if record.name.startswith(OURS) and record.name != "interlock.kafka":
            return True
        text = record.msg if record.args and record.msg != "%s" else record.getMessage()
        key = (record.name, str(text)[:40])
        if record.created - self._last.get(key, float("-inf")) < self._seconds:
            return False
        self._last[key] = record.created
        return True


def log_to_stderr(level: str) -> None:
    """Structured lines of our own loggers; of libraries only warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(Seldom())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name in OURS:
        logging.getLogger(name).setLevel(level)
    for name in ("faust", "mode", "aiokafka", "streams.app", "streams.runtime.faust_consumer"):
        logging.getLogger(name).setLevel(logging.ERROR)  # Faust's own lines go to its subclasses' loggers
    logging.getLogger("aiokafka.consumer.group_coordinator").setLevel(logging.CRITICAL)  # a line for each partition
