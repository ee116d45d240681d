"""Copies of snapshots: saved whole, chained over owners, restored on an empty machine (R-002-13)."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from memory.copier import COPIED, FAILED, Copier
from memory.copies import Copies
from memory.object_store import FolderStore, ObjectStore, ObjectStoreError, S3Store, object_store
from memory.snapshots import Row, SnapshotStore
from schemas.state import Mark

LOG = logging.getLogger("test")
LATER = 10_000  # past every offset here


def row(name: str, version: int = 1, kind: str = "state") -> Row:
    """One row."""
    return name, kind, version, f'{{"conversation":"{name}","version":{version}}}'.encode(), None


def mark(offset: int) -> Mark:
    """A mark at a diff offset."""
    return Mark(diff_offset=offset, handled={"channel.events": offset}, unsent=0, stamped_at=1_767_578_400_000 + offset)


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The address of a real S3 server on loopback, with the bucket `copies`."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="a",
                 aws_secret_access_key="b").create_bucket(Bucket="copies")  # fmt: skip
    yield url
    server.stop()


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """The same contract on a folder and on S3."""
    if request.param == "folder":
        return FolderStore(tmp_path / "copies")
    for name, value in {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    return S3Store("copies", tmp_path.name, request.getfixturevalue("bucket"))


def snapshots(folder: Path) -> SnapshotStore:
    """A worker's snapshot folder, empty at first."""
    return SnapshotStore(folder, "cluster", "topic", lambda *_, **__: None, LOG)


def copies(store: ObjectStore, worker: str = "w-1", topic: str = "topic") -> Copies:
    """The copies as one worker makes them."""
    return Copies(store, "cluster", topic, worker, LOG)


def restored(made: Copies, folder: Path, log_end: int = LATER) -> dict[str, int] | None:
    """Conversation to version after a restore on an empty machine; None when there was none."""
    with snapshots(folder) as empty:
        if not made.restore(0, lambda: empty.begin_import(0), 0, log_end):
            return None
        found = empty.load(0, 0, log_end)
        assert found is not None
        return {name: version for name, _, version, _, _ in found.rows()}


def test_objects_are_whole_and_listed_in_order(store: ObjectStore) -> None:
    """What was put is got back, listed by prefix, and gone once deleted; twice deleted is no error."""
    for name in ("a/2", "a/1", "b/1"):
        store.put(name, name.encode())
    store.put("a/1", b"again")
    assert (["a/1", "a/2"], b"again") == (store.names("a/"), store.get("a/1"))
    store.delete("a/1")
    store.delete("a/1")
    assert ["a/2"] == store.names("a/")
    with pytest.raises(ObjectStoreError, match="a/1"):
        store.get("a/1")


def test_a_base_and_its_changes_are_restored(store: ObjectStore, tmp_path: Path) -> None:
    """An empty machine gets the states as of the last change: changed, added and forgotten ones (R-002-13)."""
    made = copies(store)
    made.save(0, [row("a"), row("b"), row("c")], mark(5), None)
    made.save(0, [row("a", 2), row("d")], mark(9), 5)
    made.save(0, [("b", "residue", 0, None, None)], mark(12), 9)
    assert {"a": 2, "c": 1, "d": 1} == restored(made, tmp_path / "empty")


def test_changes_of_several_owners_make_one_chain(store: ObjectStore, tmp_path: Path) -> None:
    """A change that overlaps what is there is taken, one behind a gap is not: nothing is skipped (promise 3)."""
    copies(store, "w-1").save(0, [row("a")], mark(5), None)
    copies(store, "w-2").save(0, [row("a", 3)], mark(9), 3)
    copies(store, "w-3").save(0, [row("a", 9)], mark(40), 30)
    chain = copies(store).newest(0)
    assert chain is not None
    assert 9 == chain.mark.diff_offset
    assert {"a": 3} == restored(copies(store), tmp_path / "empty")


def test_a_damaged_copy_is_left_for_the_one_before(store: ObjectStore, tmp_path: Path) -> None:
    """Rows that are not what their manifest says are never loaded; the older base is (R-002-13)."""
    made = copies(store)
    made.save(0, [row("a")], mark(5), None)
    made.save(0, [row("a", 2)], mark(9), None)
    newest = next(name for name in store.names("") if name.endswith(".rows") and f"{9:020d}" in name)
    store.put(newest, b"not what was put")
    assert {"a": 1} == restored(made, tmp_path / "empty")


def test_a_copy_with_a_part_missing_is_left_for_the_one_before(store: ObjectStore, tmp_path: Path) -> None:
    """What the storage has lost costs no more than what is damaged; where nothing is left, that is said (R-002-13)."""
    made = copies(store)
    made.save(0, [row("a")], mark(5), None)
    made.save(0, [row("a", 2)], mark(9), None)
    older, newest = (name for name in store.names("") if name.endswith(".rows"))
    store.delete(newest)
    assert {"a": 1} == restored(made, tmp_path / "empty")
    store.delete(older)
    with pytest.raises(ObjectStoreError):
        restored(made, tmp_path / "none")


def test_copies_of_another_log_are_not_used(store: ObjectStore, tmp_path: Path) -> None:
    """A copy ahead of the log, or of another topic, is another register's (promise 3)."""
    copies(store).save(0, [row("a")], mark(5), None)
    assert restored(copies(store), tmp_path / "ahead", log_end=5) is None
    assert restored(copies(store, topic="other"), tmp_path / "other") is None


def test_old_copies_are_deleted(store: ObjectStore, tmp_path: Path) -> None:
    """Two bases are kept with what follows them; what lies before is deleted."""
    made = copies(store)
    for offset in (5, 9, 15):
        made.save(0, [row("a", offset)], mark(offset), None)
    made.prune(0)
    assert not [name for name in store.names("") if f"{5:020d}" in name]
    assert {"a": 15} == restored(made, tmp_path / "empty")


class Metrics:
    """Counts and gauges by name and reason."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.calls = 0

    def __call__(self, name: str, value: float, reason: str = "") -> None:
        key = f"{name}/{reason}"
        self.values[key] = value if name == COPIED else self.values.get(key, 0) + value
        self.calls += 1


class Broken(FolderStore):
    """A storage that is away while told so."""

    away = False

    def put(self, name: str, body: bytes) -> None:
        """Refused while away."""
        if self.away:
            message = f"put {name}: away"
            raise ObjectStoreError(message)
        super().put(name, body)


def write(local: SnapshotStore, copier: Copier, rows: list[Row], offset: int) -> None:
    """A snapshot, and its copy, as the runtime makes them."""
    before = local.mark(0)
    local.write(0, rows, mark(offset))
    copier.written(0, rows, mark(offset), None if before is None else before.diff_offset)


def drained(copier: Copier) -> None:
    """All that waited is copied."""
    copier.close()
    assert not copier._thread.is_alive()


def told(metrics: Metrics, known: int) -> None:
    """The copier has counted or set something since."""
    until = time.monotonic() + 30
    while metrics.calls == known:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_the_copier_makes_up_for_a_storage_that_was_away(tmp_path: Path) -> None:
    """What could not be copied is in the next copy, which is whole; the failure is counted (R-002-16)."""
    place, metrics = Broken(tmp_path / "copies"), Metrics()
    with snapshots(tmp_path / "local") as local:
        copier = Copier(copies(place), local.whole, metrics, metrics, LOG)
        for offset, away in ((5, False), (9, True), (12, False)):
            known, place.away = metrics.calls, away
            write(local, copier, [row("a", offset), row(f"new-{offset}")], offset)
            told(metrics, known)
        drained(copier)
    assert {"a": 12, "new-5": 1, "new-9": 1, "new-12": 1} == restored(copies(place), tmp_path / "empty")
    assert (1, mark(12).stamped_at / 1_000) == (metrics.values[f"{FAILED}/put"], metrics.values[f"{COPIED}/"])


def test_the_time_of_the_last_copy_grows_old_while_one_partition_fails(tmp_path: Path) -> None:
    """Another partition's copy does not hide it (R-002-16)."""
    place, metrics = Broken(tmp_path / "copies"), Metrics()
    with snapshots(tmp_path / "local") as local:
        copier = Copier(copies(place), local.whole, metrics, metrics, LOG)
        place.away = True
        write(local, copier, [row("a")], 5)
        told(metrics, 0)
        place.away = False
        local.write(1, [row("b")], mark(7))
        copier.written(1, [row("b")], mark(7), None)
        drained(copier)
    assert f"{COPIED}/" not in metrics.values


def test_only_changes_are_copied_after_the_base(tmp_path: Path) -> None:
    """The second snapshot copies its changed rows and no more, so that a copy costs what changed (R-002-13)."""
    place = FolderStore(tmp_path / "copies")
    with snapshots(tmp_path / "local") as local:
        copier = Copier(copies(place), local.whole, Metrics(), Metrics(), LOG)
        write(local, copier, [row(str(number)) for number in range(100)], 5)
        write(local, copier, [row("7", 2)], 9)
        drained(copier)
    chain = copies(place).newest(0)
    assert chain is not None
    # the base may have been made after the second write, and then it has it
    assert [100, 1] == [sum(part.rows for part in one.parts) for one in chain.copies] or len(chain.copies) == 1
    assert 2 == (restored(copies(place), tmp_path / "empty") or {})["7"]


@pytest.mark.parametrize(("url", "kind"), [("", FolderStore), ("file:///tmp/x", FolderStore), ("s3://b/p", S3Store)])
def test_the_setting_names_the_storage(url: str, kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty is the default folder; a folder and a bucket are named by URL."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    assert isinstance(object_store(url, tmp_path), kind)


@pytest.mark.parametrize("url", ["gs://bucket", "s3://", "copies", "file://host/x"])
def test_any_other_setting_is_refused(url: str, tmp_path: Path) -> None:
    """The message names the setting and what it may be."""
    with pytest.raises(ValueError, match="snapshot_copies"):
        object_store(url, tmp_path)
