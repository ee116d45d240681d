"""A file of channel events, checked line by line before anything is sent: JSON Lines or CSV of RawEvent."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from schemas.errors import BadRecordError
from schemas.events import RawEvent
from streams.intake import read_raw

_TOP = ("id", "shop", "channel", "sender", "occurred_at")
_WHOLE = {"occurred_at", "score"}  # columns that hold numbers
_REQUIRED = ("id", "shop", "channel", "sender", "kind")


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that can't be sent: its number in the file (from 1), the field ("" for the whole line), what is wrong."""

    number: int
    field: str
    reason: str

    def __str__(self) -> str:
        where = f"line {self.number}, {self.field}" if self.field else f"line {self.number}"
        return f"{where}: {self.reason}"


def read_lines(file: Path) -> Iterator[tuple[int, RawEvent | BadLine]]:
    """Every event of the file, or what is wrong with its line; empty lines are skipped. Raises OSError.

    CSV (by the file's ending) has a header row: id, shop, channel, sender, kind, and the columns of that kind,
    such as message_id and text; an empty cell is a missing field.
    """
    if file.suffix.lower() == ".csv":
        yield from _csv(file)
        return
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if text.strip():
                yield number, _event(number, text)


def _event(number: int, value: bytes) -> RawEvent | BadLine:
    # as one line it would be one event with a strange shape; the reader wants to know what to do
    if value.lstrip().startswith(b"["):
        return BadLine(number, "", "a JSON array: put each event on a line of its own")
    try:
        return read_raw(value)
    except BadRecordError as error:
        return BadLine(number, error.field, error.reason)


def _csv(file: Path) -> Iterator[tuple[int, RawEvent | BadLine]]:
    with file.open("rb") as binary:
        stream = io.TextIOWrapper(binary, "utf-8-sig", newline="")
        try:
            yield from _rows(csv.DictReader(stream, strict=True))
        except UnicodeDecodeError:
            yield 1, BadLine(1, "", "the file is not UTF-8: nothing of it was read")


def _rows(reader: csv.DictReader[str]) -> Iterator[tuple[int, RawEvent | BadLine]]:
    missing = [name for name in _REQUIRED if name not in (reader.fieldnames or [])]
    if missing:
        yield (
            1,
            BadLine(
                1, ", ".join(missing), f"missing in the header row; the required columns are {', '.join(_REQUIRED)}"
            ),
        )
        return
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield reader.line_num, BadLine(reader.line_num, "", f"not CSV: {error}")
            return
        yield reader.line_num, _row(reader.line_num, row)


def _row(number: int, row: dict[str | None, Any]) -> RawEvent | BadLine:
    if None in row:
        return BadLine(number, "", "more cells than the header row has columns")
    event: dict[str, Any] = {"body": {}}
    for name, cell in row.items():
        if name is None or not cell:
            continue
        if name in _WHOLE and not (cell.isascii() and cell.lstrip("-").isdigit()):
            return BadLine(number, name, f"expected a whole number, found {len(cell)} characters")
        value = int(cell) if name in _WHOLE else cell
        (event if name in _TOP else event["body"])[name] = value
    found = _event(number, orjson.dumps(event))
    # the user knows columns, not where they go
    return replace(found, field=found.field.removeprefix("body.")) if isinstance(found, BadLine) else found
