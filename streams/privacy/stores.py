"""What of a customer stands outside the topics: facts, relations, their backups, the outbox and the spool."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path
from urllib.parse import quote, unquote

from memory.facts.embedded import EmbeddedFacts
from memory.relations.embedded import EmbeddedRelations
from streams.memory_backup import alone, backups, half_made
from streams.memory_stores import MemoryStores

FILES = {"outbox.sqlite": "outbox", "spool.sqlite": "spool"}  # below data_dir: the gateway's, and their tables


async def clear(stores: MemoryStores, folder: Path, conversations: Collection[str]) -> tuple[int, int, int]:
    """Remove their facts and relations, from the backups below `folder`, too; how many, and of how many files.

    Their keys are gone by then: what a restore read before that is done when this begins.
    """
    with alone(folder):
        facts, relations = await clear_stores(stores, conversations)
        return facts, relations, await clear_backups(folder, conversations)


async def clear_stores(stores: MemoryStores, conversations: Iterable[str]) -> tuple[int, int]:
    """Remove their facts and relations; how many. Raises the stores' own errors: then they are not forgotten."""
    facts = relations = 0
    for name in conversations:
        shop = name.partition("/")[0]
        facts += await stores.facts.delete_customer(shop, name)
        relations += await stores.relations.delete_customer(shop, name)
    return facts, relations


async def clear_backups(folder: Path, conversations: Iterable[str]) -> int:
    """Write every backup of the stores again without them; how many files were changed.

    A backup, or a command of this kind, that was cut off has left a part that nobody reads: it goes whole.
    """
    for left in half_made(folder):
        shutil.rmtree(left)
    by_shop: dict[str, list[str]] = {}
    for name in conversations:
        by_shop.setdefault(name.partition("/")[0], []).append(name)
    changed = 0
    for backup in backups(folder):
        for file in sorted(backup.iterdir()):
            names = by_shop.get(unquote(file.stem), [])
            changed += bool(names) and await _rewritten(file, unquote(file.stem), names)
    return changed


async def _rewritten(file: Path, shop: str, names: list[str]) -> bool:
    """Whether the backup held something of theirs. The new file takes the old one's place, whole."""
    with tempfile.TemporaryDirectory(dir=file.parent.parent, prefix=".forget-") as folder:
        path = Path(folder) / quote(shop, safe="")
        store = EmbeddedFacts(path) if file.suffix == ".facts" else EmbeddedRelations(path)
        try:
            await store.restore(shop, file)
            gone = sum([await store.delete_customer(shop, name) for name in names])
            if gone:
                fresh = Path(folder) / file.name
                await store.backup(shop, fresh)
                fresh.replace(file)
        finally:
            await store.close()
    return gone > 0


def clear_files(data_dir: Path, conversations: Iterable[str]) -> int:
    """Remove their rows from the gateway's files, overwritten and out of the log; how many."""
    names, count = list(conversations), 0
    for name, table in FILES.items():
        if (data_dir / name).exists():
            count += _clear(data_dir / name, table, names)
    return count


def _clear(file: Path, table: str, names: list[str]) -> int:
    db = sqlite3.connect(file, timeout=10, isolation_level=None)
    try:
        db.execute("PRAGMA secure_delete=ON")
        sql = f"DELETE FROM {table} WHERE conversation = ?"  # noqa: S608 (one of our two table names)
        count = sum(db.execute(sql, (name,)).rowcount for name in names)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        db.close()
    return count
