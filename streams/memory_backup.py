"""Full backups of the stores, one folder each, made before anything is rolled back or restored (R-004-11)."""

from __future__ import annotations

import fcntl
import logging
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from streams.memory_stores import MemoryStores

log = logging.getLogger(__name__)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Whoever makes, restores or clears backups below `folder` does it with nobody else at that (promise 9).

    Else a customer who is forgotten meanwhile comes back by what the other one had read before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.warning("another command is at work on %s: waiting for its end", folder)
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


async def back_up(stores: MemoryStores, folder: Path, shops: Iterable[str], now_ms: int, keep: int,
                  spare: Collection[Path] = ()) -> Path:  # fmt: skip
    """Write all of the shops' facts and relations below `folder`, and remove all but the newest `keep` backups.

    Those in `spare` stay, however old. Raises the stores' own errors when they can't be read: without a backup nothing
    may be rolled back.
    """
    name = datetime.fromtimestamp(now_ms / 1_000, UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3] + "Z"
    making, done = folder / f".{name}", folder / name
    making.mkdir(parents=True)
    try:
        for shop in sorted(set(shops)):
            await stores.facts.backup(shop, making / f"{quote(shop, safe='')}.facts")
            await stores.relations.backup(shop, making / f"{quote(shop, safe='')}.relations")
    except BaseException:
        shutil.rmtree(making)
        raise
    making.rename(done)  # a folder that is there is whole
    spared = {path.resolve() for path in spare}
    for old in backups(folder)[:-keep]:
        if old.resolve() not in spared:
            shutil.rmtree(old)
    return done


def backups(folder: Path) -> list[Path]:
    """The whole backups, oldest first."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def half_made(folder: Path) -> list[Path]:
    """What was being written, and is no backup."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_dir() and path.name.startswith("."))
