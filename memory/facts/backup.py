"""A shop's facts in one file: lines of JSON under gzip, with a head and a checksum; whole or not there."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import orjson

from memory.facts.port import Fact, FactsError

FORMAT = 1


def encode(fact: Fact) -> bytes:
    """A fact as JSON."""
    return orjson.dumps(fact, default=dict)


def decode(body: bytes | str) -> Fact:
    """The fact of its JSON. Raises FactsError for anything else."""
    try:
        return Fact(**orjson.loads(body))
    except (ValueError, TypeError) as error:
        message = f"a stored fact can't be read ({error})"
        raise FactsError(message) from error


def write(file: Path, shop: str, facts: Iterable[Fact]) -> int:
    """Write the file; the one that stood there before stays until this one is complete."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(file.name + ".part")
    digest, count = hashlib.sha256(), 0
    with draft.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=3, mtime=0) as out:
        out.write(orjson.dumps({"format": FORMAT, "shop": shop}) + b"\n")
        for count, fact in enumerate(facts, 1):  # noqa: B007 (the last number is the count)
            line = encode(fact)
            digest.update(line)
            out.write(line + b"\n")
        out.write(orjson.dumps({"facts": count, "sha256": digest.hexdigest()}) + b"\n")
    with draft.open("rb+") as written:
        os.fsync(written.fileno())
    draft.replace(file)
    return count


def read(file: Path, shop: str) -> list[Fact]:
    """The facts of a backup. Raises FactsError when it is damaged, cut short, or another shop's."""
    try:
        with gzip.open(file, "rb") as stream:
            head, *lines = stream.read().splitlines()
        end, digest = orjson.loads(lines.pop()), hashlib.sha256()
        begin = orjson.loads(head)
        for line in lines:
            digest.update(line)
        good = (end["facts"], end["sha256"]) == (len(lines), digest.hexdigest())
    except (OSError, EOFError, zlib.error, ValueError, LookupError, TypeError) as error:
        raise FactsError(_damaged(file, error)) from error
    if not good:
        raise FactsError(_damaged(file, "its lines and its checksum are of different facts"))
    if begin != {"format": FORMAT, "shop": shop}:
        message = f"{file}: a backup of {begin}, not of shop {shop!r} in format {FORMAT}"
        raise FactsError(message)
    return [decode(line) for line in lines]


def without(file: Path, shop: str, unwanted: Callable[[Fact], Any]) -> int:
    """Rewrite a backup without some facts (a forgotten customer's); how many went."""
    facts = read(file, shop)
    kept = [fact for fact in facts if not unwanted(fact)]
    if len(kept) < len(facts):
        write(file, shop, kept)
    return len(facts) - len(kept)


def _damaged(file: Path, what: object) -> str:
    return f"{file}: no whole backup of facts ({what}); take another one"
