"""The file of a backup: a head, one line a row, and a last line with the count and checksum of all before it."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from memory.relations.port import RelationsError
from memory.relations.schema import EdgeRow, NodeRow

FORMAT = "interlock-relations-1"


class Writer:
    """Writes a backup, whole or not at all: only leaving the block without an error makes the file."""

    def __init__(self, file: Path, shop: str) -> None:
        """Raises RelationsError when the disk does not take it."""
        self.count = 0
        self._file, self._part = file, file.with_name(f"{file.name}.part")
        self._lines = self._checksum = 0
        with _told(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            self._output = self._part.open("wb")
        self._line([FORMAT, shop])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with _told(self._file), self._output:
                if kind is None:
                    self._output.write(orjson.dumps(["end", self._lines, self._checksum]) + b"\n")
                    self._output.flush()
                    os.fsync(self._output.fileno())
            if kind is None:
                self._part.replace(self._file)  # the rename is the commit
        finally:
            self._part.unlink(missing_ok=True)

    def node(self, row: NodeRow) -> None:
        """Add a node."""
        self._line(["node", *astuple(row)])

    def edge(self, row: EdgeRow) -> None:
        """Add a relation."""
        self.count += 1
        self._line(["edge", *astuple(row)])

    def _line(self, values: list[Any]) -> None:
        line = orjson.dumps(values) + b"\n"
        self._lines, self._checksum = self._lines + 1, zlib.crc32(line, self._checksum)
        with _told(self._file):
            self._output.write(line)


@contextmanager
def _told(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"{file}: the backup can't be written ({error})"
        raise RelationsError(message) from error


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
            self.stamp = f"{lines}-{checksum}"  # tells two backups apart
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


def without(file: Path, shop: str, customer: str) -> int:
    """Rewrite a backup without exactly this customer (who is to be forgotten); how many relations went."""
    source, count = Dump(file, shop), 0
    with Writer(file, shop) as out:
        for node in source.nodes():
            if node.customer != customer:
                out.node(node)
        for edge in source.edges():
            if edge.customer == customer:
                count += 1
            else:
                out.edge(edge)
    return count
