"""Restoring the stores from a backup: read whole first, forgotten customers left out, and a backup of now before it.

While keepers run on: what the register got meanwhile is in the stores, too, or the restore says that it gave up.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from memory.facts import backup
from memory.facts.port import Fact
from memory.keeping import relations_of
from memory.relations.dump import Dump, Writer
from memory.relations.embedded import EmbeddedRelations
from memory.restoring import (
    Changes,
    Forgotten,
    changes,
    edges_that_stay,
    facts_with,
    later,
    nodes_that_stay,
    stays,
)
from schemas.errors import InterlockError
from schemas.memory import MemoryWrite
from schemas.partition import system_conversation
from schemas.system import SystemEvent
from streams.memory_backup import alone
from streams.memory_stores import MemoryStores
from streams.runtime.ports import Fact as Published
from streams.runtime.ports import Outgoing
from streams.runtime.wire import fact_record

KINDS = (".facts", ".relations")
PASSES = 10
_PARTITION = 0  # as for the words of workers: the shop is nobody's conversation
Register = Callable[[], Iterable[MemoryWrite]]
"""Reads the whole memory register, now."""


class RestoreError(InterlockError):
    """A file that is no backup, or a restore that can't be finished: the message says what to do."""


@dataclass(frozen=True, slots=True)
class File:
    """One file of a backup, by its name."""

    path: Path
    shop: str
    kind: str
    sha256: str

    @property
    def name(self) -> str:
        """`20260105T020000.000Z/demo.facts`."""
        return f"{self.path.parent.name}/{self.path.name}"


@dataclass(frozen=True, slots=True)
class Contents:
    """What a file brings of its shop, without who was forgotten."""

    file: File
    copy: Path
    left_out: int
    forgotten: int
    facts: tuple[Fact, ...] = ()
    edges: int = 0


@dataclass(slots=True)
class Restore:
    """Files that were read and found whole; `folder` is for what is made of them."""

    contents: Sequence[Contents]
    forgotten: Forgotten
    folder: Path
    done: dict[str, int] = field(default_factory=dict)

    @property
    def shops(self) -> list[str]:
        """Whose stores would change."""
        return sorted({one.file.shop for one in self.contents})

    async def planned(self, stores: MemoryStores, register: Register) -> dict[str, Changes]:
        """By shop, what would be known otherwise. Raises the stores' own errors."""
        writes, found = list(register()), {}
        for one in self.contents:
            if one.file.kind == ".facts":
                now = self.folder / "now.facts"
                await stores.facts.backup(one.file.shop, now)
                then = facts_with(one.facts, later(writes, one.file.shop, self.forgotten))
                found[one.file.shop] = changes(backup.read(now, one.file.shop), then)
        return found

    async def carry_out(self, stores: MemoryStores, register: Register) -> None:
        """Put it into the stores. Safe to repeat. Raises the stores' own errors, RestoreError while it can't settle.

        A keeper may have applied a write, or somebody may have been forgotten, after that was looked at and before the
        store was replaced: then there are news, and it is done once more, until there are none.
        """
        before: object = None
        for _ in range(PASSES):
            writes = list(register())
            contents = [_read(one.file, one.copy, self.forgotten, self.folder) for one in self.contents]
            wanted = [later(writes, one.file.shop, self.forgotten) for one in contents]
            sizes = [(len(one.facts), one.edges, len(news)) for one, news in zip(contents, wanted, strict=True)]
            seen = ({write.write_id for write in writes}, sizes)
            if seen == before:
                return
            for one, news in zip(contents, wanted, strict=True):
                work = self._facts if one.file.kind == ".facts" else self._relations
                self.done[one.file.name] = await work(stores, one, news)
            before = seen
        message = "the register grows faster than the stores are restored: stop the keepers, and restore again"
        raise RestoreError(message)

    async def _facts(self, stores: MemoryStores, one: Contents, writes: Sequence[MemoryWrite]) -> int:
        made = self.folder / "then.facts"
        backup.write(made, one.file.shop, facts_with(one.facts, writes))
        return await stores.facts.restore(one.file.shop, made)

    async def _relations(self, stores: MemoryStores, one: Contents, writes: Sequence[MemoryWrite]) -> int:
        made = self.folder / "then.relations"
        scratch = EmbeddedRelations(self.folder / "scratch.db")
        try:
            await scratch.restore(one.file.shop, _filtered(self.folder, one.file))
            await scratch.merge([relation for write in writes for relation in relations_of(write)])
            await scratch.backup(one.file.shop, made)
        finally:
            await scratch.close()
        return await stores.relations.restore(one.file.shop, made)


def files_of(paths: Iterable[Path]) -> list[File]:
    """The files of the paths; of a folder all of them. Raises RestoreError for what is no backup by its name."""
    found: dict[tuple[str, str], File] = {}
    for path in paths:
        inside = sorted(one for one in path.iterdir() if one.suffix in KINDS) if path.is_dir() else [path]
        if not inside:
            message = f"{path}: no backup is in it: `interlock memory backups` lists those that are whole"
            raise RestoreError(message)
        for one in inside:
            file = _file(one)
            if other := found.get((file.shop, file.kind)):
                message = f"{one}: {other.path} is of shop {file.shop!r}, too: name one of them"
                raise RestoreError(message)
            found[file.shop, file.kind] = file
    return list(found.values())


def _file(path: Path) -> File:
    if path.suffix not in KINDS:
        message = f"{path}: a backup is named SHOP.facts or SHOP.relations, or is a folder of these"
        raise RestoreError(message)
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        message = f"{path}: can't be read ({error.strerror})"
        raise RestoreError(message) from error
    return File(path, unquote(path.stem), path.suffix, digest)


@contextmanager
def opened(files: Sequence[File], forgotten: Forgotten, backups: Path) -> Iterator[Restore]:
    """All files, read and found whole before anything is changed; what is made of them goes at the end.

    Meanwhile nobody else is at work on the backups: who is forgotten is cleared behind the restore, or left out of it.
    Raises FactsError or RelationsError for a file that is torn, of another kind, or another shop's.
    """
    with alone(backups):
        folder = Path(tempfile.mkdtemp(dir=backups, prefix=".restore-"))  # there forgetting finds one left behind
        try:
            yield Restore([_first(file, forgotten, folder) for file in files], forgotten, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _first(file: File, forgotten: Forgotten, folder: Path) -> Contents:
    """Read under its own name, which errors tell; from then on a copy, so that it can't change meanwhile."""
    _read(file, file.path, forgotten, folder)
    copy = Path(shutil.copyfile(file.path, folder / file.path.name))
    return _read(file, copy, forgotten, folder)


def _read(file: File, path: Path, forgotten: Forgotten, folder: Path) -> Contents:
    if file.kind == ".facts":
        facts = backup.read(path, file.shop)
        kept = tuple(fact for fact in facts if stays(forgotten, fact.customer, fact.at))
        gone = {fact.customer for fact in facts} - {fact.customer for fact in kept}
        return Contents(file, path, len(facts) - len(kept), len(gone), facts=kept)
    source = Dump(path, file.shop)
    customers = {edge.key: edge.customer for edge in source.edges()}
    with Writer(_filtered(folder, file), file.shop) as out:
        for node in nodes_that_stay(source, forgotten):
            out.node(node)
        left = {}
        for edge in edges_that_stay(source, forgotten):
            out.edge(edge)
            left[edge.key] = edge.customer
    gone = set(customers.values()) - set(left.values())
    return Contents(file, path, len(customers) - len(left), len(gone), edges=len(left))


def _filtered(folder: Path, file: File) -> Path:
    return folder / f"{file.path.name}.kept"


def restored_event(restore: Restore, before: Path, event_id: str, by: str, reason: str, now_ms: int) -> Outgoing:
    """The word for the register (R-004-11): who restored what from which files, and where the backup of before is."""
    files = [{"file": one.file.name, "sha256": one.file.sha256, "left_out": one.left_out} for one in restore.contents]
    event = SystemEvent(event_id=event_id, kind="memory_restored", subject=" ".join(restore.shops), by=by, at=now_ms,
                        data={"files": files, "backup_before": before.name, "reason": reason})  # fmt: skip
    fact = Published("system.events", system_conversation(_PARTITION), event.event_id, event)
    return fact_record(fact, _PARTITION, now_ms)
