"""The proof of forgetting: a search for clear values in every record and every file, byte by byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from memory.masking import Masked, mask
from schemas.topics import TOPICS
from streams.reader import LogSource

SHORTEST = 3  # characters: two are found in any text by chance
_SIGNS = b" -\xc2\xa0"


class Needles:
    """Values to look for, as they were written and without the signs between digits."""

    def __init__(self, values: Iterable[str]) -> None:
        self.values = tuple(dict.fromkeys(value for value in values if len(value) >= SHORTEST))
        self._bytes = [(value, tuple(forms(value))) for value in self.values]

    def found(self, data: bytes) -> list[str]:
        """The values that can be read in the bytes."""
        if not data:
            return []
        bare = data.translate(None, b" -") if any(sign in data for sign in (b" ", b"-")) else data
        return [value for value, forms in self._bytes if any(form in data or form in bare for form in forms)]


def forms(value: str) -> Iterator[bytes]:
    """How the value may stand in bytes."""
    yield value.encode()
    if not value.isascii():  # as a JSON writer that knows only ASCII has it
        yield value.encode("ascii", "backslashreplace")
    digits = "".join(char for char in value if char not in " -")
    if digits != value and digits.isascii() and any(char.isdigit() for char in digits):
        yield digits.encode()


def sensitive(clear: Any) -> Iterator[str]:
    """The sensitive values in what a seal held: slots whole, and what masking finds in each text."""
    if isinstance(clear, dict):
        for name, part in clear.items():
            if name in ("address", "phone") and isinstance(part, str):
                yield part
            yield from sensitive(part)
    elif isinstance(clear, list):
        for part in clear:
            yield from sensitive(part)
    elif isinstance(clear, str):
        yield from (_telling(one) for one in mask(clear)[1])


def _telling(one: Masked) -> str:
    """Of an address the part that is hidden: its town may be read anywhere."""
    if one.kind != "address" or "*" not in one.shown:
        return one.value
    return one.value[one.shown.index("*") : one.shown.rindex("*") + 1]


def in_topics(source: LogSource, needles: Needles) -> Iterator[tuple[str, str]]:
    """`(topic:partition:offset, value)` for each value that stands in clear in a record's key, value or headers."""
    places = [(topic, number, 0) for topic in TOPICS for number in range(source.partitions(topic))]
    for record in source.read(places):
        headers = b"\n".join(value or b"" for _, value in record.headers)
        for value in needles.found(b"\n".join((record.key or b"", record.value or b"", headers))):
            yield f"{record.topic}:{record.partition}:{record.offset}", value


def in_files(folders: Iterable[Path], needles: Needles) -> Iterator[tuple[str, str]]:
    """`(file, value)` for each value that stands in clear in a file below the folders."""
    for folder in folders:
        for file in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
            if file.is_file() and not file.is_symlink():
                for value in needles.found(file.read_bytes()):
                    yield str(file), value
