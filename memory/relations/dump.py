"""The file of a backup: a head, one line a row, and a last line with the count and checksum of all before it."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import orjson

from memory.relations.port import RelationsError
from memory.relations.schema import EdgeRow, NodeRow

FORMAT = "interlock-relations-1"


def write(file: Path, shop: str, nodes: Iterable[NodeRow], edges: Iterable[EdgeRow]) -> int:
    """Write the rows, whole or not at all; how many relations. Raises RelationsError when the disk does not take it."""
    part = file.with_name(f"{file.name}.part")
    lines = count = checksum = 0
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as output:
            for line in _lines(shop, nodes, edges):
                output.write(line)
                lines, count, checksum = lines + 1, count + line.startswith(b'["edge"'), zlib.crc32(line, checksum)
            output.write(orjson.dumps(["end", lines, checksum]) + b"\n")
            output.flush()
            os.fsync(output.fileno())
        part.replace(file)  # the rename is the commit
    except OSError as error:
        message = f"{file}: the backup can't be written ({error})"
        raise RelationsError(message) from error
    finally:
        part.unlink(missing_ok=True)
    return count


def _lines(shop: str, nodes: Iterable[NodeRow], edges: Iterable[EdgeRow]) -> Iterator[bytes]:
    yield orjson.dumps([FORMAT, shop]) + b"\n"
    for node in nodes:
        yield orjson.dumps(["node", *astuple(node)]) + b"\n"
    for edge in edges:
        yield orjson.dumps(["edge", *astuple(edge)]) + b"\n"


class Dump:
    """A backup that was read once and found whole; its rows are streamed."""

    def __init__(self, file: Path, shop: str) -> None:
        """Raises RelationsError for a file that is damaged, cut short, missing or of another shop."""
        self.file = file
        lines = checksum = 0
        head, last = b"", b""
        try:
            with file.open("rb") as content:
                for line in content:
                    if last:
                        lines, checksum = lines + 1, zlib.crc32(last, checksum)
                    head, last = head or line, line
            whole = orjson.loads(last) == ["end", lines, checksum]
            said = orjson.loads(head)
        except (OSError, ValueError) as error:
            message = f"{file}: no backup of relations that can be read ({error})"
            raise RelationsError(message) from error
        if not whole:
            message = f"{file}: damaged or cut short: take another backup"
            raise RelationsError(message)
        if said != [FORMAT, shop]:
            message = f"{file}: not a backup of the relations of shop {shop}"
            raise RelationsError(message)

    def nodes(self) -> Iterator[NodeRow]:
        """The nodes, in the order of the file."""
        return (NodeRow(*values) for values in self._rows("node"))

    def edges(self) -> Iterator[EdgeRow]:
        """The relations, in the order of the file."""
        return (EdgeRow(*values) for values in self._rows("edge"))

    def _rows(self, kind: str) -> Iterator[list[Any]]:
        start = f'["{kind}"'.encode()
        with self.file.open("rb") as content:
            for line in content:
                if line.startswith(start):
                    yield orjson.loads(line)[1:]
