"""A worker's log: one JSON object a line, and no flood from libraries while a broker is away."""

from __future__ import annotations

import logging
import sys

import orjson

from streams.logs import JsonLines, Seldom


def line(name: str, text: str, *arguments: object, at: float = 0.0) -> logging.LogRecord:
    """A log record at a time."""
    record = logging.LogRecord(name, logging.ERROR, "f.py", 1, text, arguments, None)
    record.created, record.msecs = at, 0.0
    return record


def test_no_value_gets_into_a_line() -> None:
    """What a library or a bug puts into its words is masked, in text and traceback (promise 9, case F09)."""
    try:
        int("手机号13800000000打不通")
    except ValueError:
        record = line("faust", "邮箱%s收不到，我叫王小明", "abc@example.com")
        record.exc_info = sys.exc_info()
    found = orjson.loads(JsonLines().format(record))
    assert "邮箱a**@example.com收不到，我叫王**" == found["message"]
    assert "手机号138****0000打不通" in found["error"]
    assert "13800000000" not in found["error"]


def test_line_is_json_with_its_error() -> None:
    """Time in UTC, level, logger, text and traceback are fields, whatever characters are in them."""
    try:
        1 / 0  # noqa: B018 (an error to log)
    except ZeroDivisionError:
        record = line("interlock.owner", 'a "%s"\nb', "微信", at=1_767_578_400.0)
        record.exc_info = sys.exc_info()
    found = orjson.loads(JsonLines().format(record))
    assert ("2026-01-05T02:00:00.000Z", 'a "微信"\nb', "ERROR") == (found["time"], found["message"], found["level"])
    assert "ZeroDivisionError" in found["error"]


def test_library_says_one_thing_once_in_ten_seconds() -> None:
    """A broker that is away makes drivers repeat themselves; our own lines are all written."""
    seldom = Seldom()
    drivers = [seldom.filter(line("aiokafka", "no connection to %d", number, at=number)) for number in range(21)]
    ours = [seldom.filter(line("interlock.owner", "partition %d lost", number, at=number)) for number in range(5)]
    assert [0, 10, 20] == [number for number, written in enumerate(drivers) if written]
    assert all(ours)
    assert seldom.filter(line("aiokafka", "another text", at=0))
