"""`make eval-privacy`: canaries through the whole system, what of them can be read, opened, and read once forgotten."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

from bench.privacy import precision
from bench.privacy.canaries import Canary, canaries
from bench.privacy.find import Haystack
from bench.privacy.world import PARTITIONS, Run, run
from bench.report import Result, table
from schemas.errors import InterlockError
from streams.privacy.forget import Plan, carry_out, plan, prove
from streams.privacy.records import opened, records_of
from streams.privacy.search import Needles, in_topics
from streams.privacy.stores import clear_files, clear_stores
from streams.privacy.unseal import Request, unseal
from streams.replay.letters import Letter, exact_bytes, letters
from streams.replay.local import LocalSource
from streams.runtime.ports import Outgoing, Record

FORGOTTEN = 25  # customers
NOW = 1_767_600_000_000  # after the run
Found = list[tuple[str, str]]


def leaks(made: Run) -> Found:
    """Where a canary can be read: `(place, value)`. The rubbish itself is what a producer put on the topic."""
    needles = Needles(canary.needle for canary in made.canaries)
    stack, files = Haystack(needles), [file for file in made.settings.data_dir.rglob("*") if file.is_file()]
    suspects = Needles(stack.found(_bytes(made.headed)))
    found = list(in_topics(LocalSource(made.headed, PARTITIONS), suspects)) if suspects.values else []
    places = {"log": made.logs.encode(), "metrics": made.metrics, "page": made.pages}
    places |= {str(file): file.read_bytes() for file in files}
    return found + [(name, value) for name, data in places.items() for value in stack.found([data])]


def _bytes(records: list[Record]) -> Iterator[bytes]:
    for record in records:
        yield from (record.key or b"", record.value or b"", *(value or b"" for _, value in record.headers))


def lost(made: Run) -> list[Canary]:
    """Canaries that nobody with the role gets back exactly as they were sent."""
    missing: list[Canary] = []
    loose = b"\n".join(exact_bytes(one, made.keys) or b"" for one in letters(made.source) if one.key is None)
    source = made.source
    for conversation, some in made.customers:
        request = Request(conversation, "eye", "evaluation")
        told = unseal(source, made.keys, made.settings.unseal_roles, request, lambda _: None, "u", NOW, PARTITIONS)
        clear = orjson.dumps(told)
        missing += [one for one in some if not _inside(one.text, loose if one.carrier == "unkeyed" else clear)]
    return missing


def _inside(text: str, data: bytes) -> bool:
    """Whether the text is there, as it is, as a JSON string, or as one inside a JSON text."""
    once = orjson.dumps(text)[1:-1].decode()
    return any(form.encode() in data for form in (text, once, orjson.dumps(once)[1:-1].decode()))


def readable_after(made: Run) -> tuple[int, int]:
    """Forget some customers: how many of their canaries can still be had by any way, and how many there were."""
    left = total = 0
    for conversation, some in made.customers[:FORGOTTEN]:
        needles = Needles(canary.needle for canary in some)
        theirs = plan(made.source, made.keys, conversation)
        _forget(made, theirs)
        proof = prove(LocalSource(made.headed, PARTITIONS), made.keys, theirs, [made.settings.data_dir])
        opens = proof.opens or list(opened(records_of(made.source, [conversation]), made.keys))
        found = {value for _, value in proof.found} | {value for one in letters(made.source)
                                                       for value in _read(made, one, needles)}  # fmt: skip
        left += len(some) if opens else len(found)
        total += len(some)
    return left, total


def _forget(made: Run, theirs: Plan) -> None:
    """All that `interlock forget --yes` does, but for the backups, of which there are none."""
    events: list[Outgoing] = []
    carry_out(theirs, made.keys, events.extend, "law", "evaluation", f"f-{theirs.conversations[0]}", NOW, PARTITIONS)
    for one in events:
        end = sum(record.topic == one.topic and record.partition == one.partition for record in made.records)
        made.records.append(Record(one.topic, one.partition, end, NOW, one.key, one.value, one.headers))
    asyncio.run(clear_stores(made.stores, theirs.conversations))
    clear_files(made.settings.data_dir, theirs.conversations)


def _read(made: Run, letter: Letter, needles: Needles) -> list[str]:
    try:
        return needles.found(exact_bytes(letter, made.keys) or b"")
    except InterlockError:
        return []  # its key is gone


def measure(count: int) -> tuple[list[Result], Found, list[Canary]]:
    """All rows, and what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        made = run(Path(folder), canaries(count))
        took = time.perf_counter() - started
        found, gone = leaks(made), lost(made)
        left, total = readable_after(made)
        asyncio.run(made.stores.close())
        made.keys.close()
    topics = len({one.topic for one in made.records})
    health = sum(one.topic == "feedback.health" for one in made.records)
    where = (
        f"{len(made.records)} records of {topics} topics, dead letters, files of keys, outbox, snapshots and stores,"
    )
    note = f"{where} {len(made.logs)} characters of logs, metrics, board; in memory, {took:.0f} s"
    back = 100 * (count - len(gone)) / count
    return [
        Result("pii_leaks", len({value for _, value in found}), "canaries", 0, None, count, note),
        Result("pii_unsealed", back, "%", None, None, count, "given back to the character, to who may see them"),
        Result("pii_after_forget", left, "canaries", 0, None, total,
               f"of {min(FORGOTTEN, len(made.customers))} customers, by any way; {health} health records stay"),
        *precision.rows(),
    ], found, gone  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Print the rows; exit 1 when a canary was read, or lost, or is still there after forgetting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--canaries", type=int, default=2_000)
    results, found, gone = measure(parser.parse_args(arguments).canaries)
    for place, value in found[:20]:
        sys.stderr.write(f"readable at {place}: {value}\n")
    for canary in gone[:20]:
        sys.stderr.write(f"not given back: {canary.carrier} {canary.text}\n")
    print(table(results))
    for result in results:
        print(result.line())
    return int(bool(found or gone or results[2].value))


if __name__ == "__main__":
    sys.exit(main())
