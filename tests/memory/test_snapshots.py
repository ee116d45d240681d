"""Local snapshots: whole or not used, and never another's."""

from __future__ import annotations

import logging
import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.snapshots import Row, SnapshotError, SnapshotStore
from schemas.state import Mark

REUSED = [HealthCheck.function_scoped_fixture]  # the folder is emptied for each example
LOG = logging.getLogger("test.snapshots")


class Skips:
    """Counts skipped snapshots by reason."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def __call__(self, name: str, value: float, /, *, reason: str) -> None:
        assert ("interlock_snapshot_skipped_total", 1) == (name, value)
        self.reasons.append(reason)


@pytest.fixture
def skips() -> Skips:
    """The reasons of what was skipped."""
    return Skips()


@pytest.fixture
def store(tmp_path: Path, skips: Skips) -> Iterator[SnapshotStore]:
    """A store of one worker."""
    with SnapshotStore(tmp_path / "0", "cluster-1", "topic-1", skips, LOG) as opened:
        yield opened


def mark(offset: int, stamped_at: int = 1_000) -> Mark:
    """A mark at an offset of state.diffs."""
    return Mark(diff_offset=offset, handled={"channel.events": offset + 1}, unsent=offset, stamped_at=stamped_at)


def row(name: str, version: int = 1, body: bytes | None = b"{}", kind: str = "state", due: int | None = None) -> Row:
    """A row of a snapshot."""
    return f"shop-1/web/{name}", kind, version, body, due


def rows_of(store: SnapshotStore, partition: int, log_start: int = 0) -> list[Row]:
    """The rows of the snapshot, which must be usable."""
    loaded = store.load(partition, log_start)
    assert loaded is not None
    return sorted(loaded.rows())


def test_a_snapshot_comes_back_as_it_was_written(store: SnapshotStore) -> None:
    """Rows and the three log values are read back whole, in binary, from local disk (R-002-13)."""
    rows = [row("li", 3, b'{"a":1}', due=5_000), row("wang", 9, b"\x00\xff", "residue")]
    store.write(4, rows, mark(17))
    loaded = store.load(4, log_start=0)
    assert loaded is not None
    assert (rows, mark(17)) == (sorted(loaded.rows()), loaded.mark)
    assert [rows[0]] == list(loaded.rows("state"))


def test_only_changed_rows_are_written(store: SnapshotStore) -> None:
    """A later snapshot hands over what changed; the rest stays, and a row without a body goes (R-002-13)."""
    store.write(0, [row("li", 1), row("wang", 1), row("zhao", 1)], mark(1))
    store.write(0, [row("li", 2, b"[2]"), row("zhao", 1, None)], mark(2))
    loaded = store.load(0, log_start=0)
    assert loaded is not None
    assert [row("li", 2, b"[2]"), row("wang", 1)] == sorted(loaded.rows())
    assert 2 == loaded.mark.diff_offset


def test_partitions_have_files_of_their_own(store: SnapshotStore) -> None:
    """Each partition is loaded alone (R-002-16)."""
    store.write(0, [row("li")], mark(1))
    store.write(1, [row("wang")], mark(2))
    assert [row("li")] == rows_of(store, 0)
    assert [row("wang")] == rows_of(store, 1)
    assert store.load(2, 0) is None


def test_a_failed_write_leaves_the_last_snapshot(store: SnapshotStore) -> None:
    """Rows and offset are one transaction: of a write that breaks off nothing is seen (R-002-13)."""
    store.write(0, [row("li", 1)], mark(1))

    def broken() -> Iterator[Row]:
        yield row("li", 2)
        message = "the encoder broke"
        raise ValueError(message)

    with pytest.raises(ValueError, match="the encoder broke"):
        store.write(0, broken(), mark(2))
    loaded = store.load(0, 0)
    assert loaded is not None
    assert ([row("li", 1)], 1) == (list(loaded.rows()), loaded.mark.diff_offset)


def test_a_mark_does_not_go_back(store: SnapshotStore) -> None:
    """A snapshot of an older owner's view is refused: its rows could be older than the file's (promise 2)."""
    store.write(0, [row("li", 5)], mark(9))
    with pytest.raises(SnapshotError, match="8 is below the 9"):
        store.write(0, [row("li", 4)], mark(8))
    assert row("li", 5) == store.find(0, "shop-1/web/li")


# -- what is not used -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "cluster", "topic", "log_start", "log_end"),
    [
        ("foreign", "cluster-2", "topic-1", 0, None),
        ("foreign", "cluster-1", "topic-2", 0, None),
        ("foreign", "cluster-1", "topic-1", 0, 17),
        ("stale", "cluster-1", "topic-1", 19, None),
    ],
)
def test_a_foreign_or_stale_snapshot_is_skipped(
    tmp_path: Path, skips: Skips, caplog: pytest.LogCaptureFixture,
    reason: str, cluster: str, topic: str, log_start: int, log_end: int | None,
) -> None:  # fmt: skip
    """A file of another log, or whose following diffs are gone, is skipped with a metric and a line (R-002-16)."""
    with SnapshotStore(tmp_path / "0", "cluster-1", "topic-1", skips, LOG) as first:
        first.write(0, [row("li")], mark(17))
    with SnapshotStore(tmp_path / "0", cluster, topic, skips, LOG) as store:
        assert store.load(0, log_start, log_end) is None
        assert [reason] == skips.reasons
        assert "partition-0000.skipped" in caplog.text
        assert store.load(0, log_start, log_end) is None
        store.write(0, [row("wang")], mark(30))
        assert [row("wang")] == rows_of(store, 0, log_start)


@pytest.mark.parametrize(("log_start", "log_end"), [(18, 18), (0, 18), (18, None)])
def test_a_snapshot_at_the_edge_of_the_log_is_used(store: SnapshotStore, log_start: int, log_end: int | None) -> None:
    """When the next diff is the log's first or does not exist yet, nothing is missing (R-002-15)."""
    store.write(0, [row("li")], mark(17))
    assert store.load(0, log_start, log_end) is not None


def test_a_file_of_another_partition_is_foreign(store: SnapshotStore, skips: Skips) -> None:
    """A file that was renamed or copied to another partition is not loaded there (promise 2)."""
    store.write(0, [row("li")], mark(17))
    store.release(0)
    shutil.copy(store.path(0), store.path(1))
    assert store.load(1, 0) is None
    assert ["foreign"] == skips.reasons


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a whole file with three snapshots."""
    with SnapshotStore(tmp_path_factory.mktemp("whole"), "cluster-1", "topic-1", Skips(), LOG) as store:
        for offset in range(3):
            store.write(0, [row(f"{number}", offset + 1, bytes([number]) * 900) for number in range(40)], mark(offset))
        store.release(0)
        return store.path(0).read_bytes()


def _load(tmp_path: Path, content: bytes) -> tuple[list[Row] | None, list[str]]:
    skips = Skips()
    shutil.rmtree(tmp_path / "damaged", ignore_errors=True)
    with SnapshotStore(tmp_path / "damaged", "cluster-1", "topic-1", skips, LOG) as store:
        store.path(0).write_bytes(content)
        loaded = store.load(0, 0)
        return None if loaded is None else sorted(loaded.rows()), skips.reasons


@settings(max_examples=25, deadline=None, suppress_health_check=REUSED)
@given(share=st.floats(0, 0.999))
def test_a_truncated_file_is_skipped(tmp_path: Path, whole: bytes, share: float) -> None:
    """A file cut off anywhere is torn, and never half loaded (R-002-13)."""
    assert (None, ["torn"]) == _load(tmp_path, whole[: int(len(whole) * share)])


@settings(max_examples=60, deadline=None, suppress_health_check=REUSED)
@given(share=st.floats(0, 0.999), flip=st.integers(1, 255))
def test_a_flipped_byte_is_noticed_or_harmless(tmp_path: Path, whole: bytes, share: float, flip: int) -> None:
    """One byte changed anywhere: the rows are those that were written, or the file is skipped (R-002-13)."""
    good, _ = _load(tmp_path, whole)
    damaged = bytearray(whole)
    damaged[int(len(whole) * share)] ^= flip
    rows, reasons = _load(tmp_path, bytes(damaged))
    assert rows == good if rows is not None else len(reasons) == 1


@pytest.mark.parametrize("content", [b"", b"rubbish" * 2_000, b"SQLite format 3\0" + bytes(5_000), bytes(4_096)])
def test_a_file_of_rubbish_is_skipped(tmp_path: Path, content: bytes) -> None:
    """Random bytes in the file's place are torn (R-002-13)."""
    assert (None, ["torn"]) == _load(tmp_path, content)


def test_pages_of_two_times_are_noticed(tmp_path: Path) -> None:
    """Rows of one time under the totals of another are torn, though each page looks well (R-002-13)."""
    with SnapshotStore(tmp_path / "0", "cluster-1", "topic-1", Skips(), LOG) as store:
        store.write(0, [row("li", 1), row("wang", 1)], mark(1))
        writer = store._file(0)._writer
        old = writer.execute("SELECT * FROM states WHERE conversation = 'shop-1/web/li'").fetchone()
        store.write(0, [row("li", 2, b"[2]")], mark(2))
        writer.execute("INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?, ?)", old)
        assert store.load(0, 0) is None


# -- one worker, one folder -----------------------------------------------------------------------------


def test_two_workers_never_share_a_folder(store: SnapshotStore) -> None:
    """A folder is locked while its worker lives: the second is refused and told what to do (R-002-16)."""
    with pytest.raises(SnapshotError, match="another worker holds this snapshot folder"):
        SnapshotStore(store.folder, "cluster-1", "topic-1", Skips(), LOG)


def test_a_worker_claims_the_first_free_folder(tmp_path: Path) -> None:
    """Workers side by side get folders of their own, and the next one finds the folder that was left (R-002-16)."""

    def claim() -> SnapshotStore:
        return SnapshotStore.claim(tmp_path, "cluster-1", "topic-1", Skips(), LOG)

    with claim() as second:
        with claim() as third:
            assert ["0", "1"] == [second.folder.name, third.folder.name]
        with claim() as again:
            assert "1" == again.folder.name


def _hold(folder: Path, ready: multiprocessing.synchronize.Event) -> None:
    SnapshotStore(folder, "cluster-1", "topic-1", Skips(), LOG)
    ready.set()
    threading.Event().wait(60)


def test_a_killed_worker_leaves_no_lock(tmp_path: Path) -> None:
    """The lock of a worker killed with -9 is gone with it (R-002-15)."""
    fork = multiprocessing.get_context("fork")
    ready = fork.Event()
    other = fork.Process(target=_hold, args=(tmp_path / "0", ready))
    other.start()
    assert ready.wait(30)
    with pytest.raises(SnapshotError):
        SnapshotStore(tmp_path / "0", "cluster-1", "topic-1", Skips(), LOG)
    other.kill()
    other.join(30)
    SnapshotStore(tmp_path / "0", "cluster-1", "topic-1", Skips(), LOG).close()


# -- look-ups, age, import ------------------------------------------------------------------------------


def test_a_closed_conversation_is_found_on_disk(store: SnapshotStore) -> None:
    """The residue of a closed conversation is one look-up away, though it is not in memory (R-002-15)."""
    assert store.find(0, "shop-1/web/li") is None
    store.write(0, [row("li", 12, b"{}", "residue")], mark(1))
    assert row("li", 12, b"{}", "residue") == store.find(0, "shop-1/web/li")
    assert store.find(0, "shop-1/web/wang") is None


def test_a_damaged_residue_is_not_returned(store: SnapshotStore) -> None:
    """A single look-up checks its row: a wrong version would start a second history (promise 3)."""
    store.write(0, [row("li", 12, b"{}", "residue")], mark(1))
    store._file(0)._writer.execute("UPDATE states SET version = 11")
    with pytest.raises(SnapshotError, match="shop-1/web/li"):
        store.find(0, "shop-1/web/li")


def test_a_look_up_does_not_wait_for_a_write(store: SnapshotStore) -> None:
    """While a snapshot is being written, a look-up answers with what was committed before (R-002-15)."""
    store.write(0, [row("li", 1)], mark(1))
    half, go_on = threading.Event(), threading.Event()

    def slow() -> Iterator[Row]:
        yield row("li", 2)
        half.set()
        assert go_on.wait(30)

    writer = threading.Thread(target=store.write, args=(0, slow(), mark(2)))
    writer.start()
    assert half.wait(30)
    assert row("li", 1) == store.find(0, "shop-1/web/li")
    go_on.set()
    writer.join(30)
    assert row("li", 2) == store.find(0, "shop-1/web/li")


def test_conversations_with_a_deadline_are_listed(store: SnapshotStore) -> None:
    """What is due is found without reading every state; an earlier deadline comes first (R-002-15)."""
    assert [] == store.due(0, 9_000)
    store.write(0, [row("li", due=8_000), row("wang", due=7_000), row("zhao", due=9_001), row("qian")], mark(1))
    assert [("shop-1/web/wang", 7_000), ("shop-1/web/li", 8_000)] == store.due(0, 9_000)
    assert [("shop-1/web/wang", 7_000)] == store.due(0, 9_000, limit=1)


def test_the_age_is_the_time_since_the_last_mark(store: SnapshotStore) -> None:
    """The age behind the alarm counts from the newest snapshot; without one there is none (R-002-13, R-002-16)."""
    assert store.age_ms(0, 5_000) is None
    store.write(0, [], mark(1, stamped_at=2_000))
    assert [3_000, 0] == [store.age_ms(0, 5_000), store.age_ms(0, 1_000)]


def test_an_import_becomes_the_snapshot_when_it_is_finished(store: SnapshotStore) -> None:
    """A checkpoint is streamed into a new file: later rows win, and only a finished file counts (case C15)."""
    store.write(0, [row("old", 1)], mark(1))
    with store.begin_import(0) as fresh:
        fresh.add([row("li", 1), row("wang", 4), row("zhao", 1)])
        fresh.add([row("li", 2), row("zhao", 1, None)])
        assert [row("old", 1)] == rows_of(store, 0)
        fresh.finish(mark(40))
    loaded = store.load(0, log_start=30)
    assert loaded is not None
    assert ([row("li", 2), row("wang", 4)], 40) == (sorted(loaded.rows()), loaded.mark.diff_offset)


def test_a_broken_import_leaves_nothing(store: SnapshotStore) -> None:
    """An import that breaks off is thrown away, and the next one starts anew (R-002-15)."""

    def break_off() -> None:
        with store.begin_import(0) as fresh:
            fresh.add([row("li", 1)])
            raise ConnectionError

    with pytest.raises(ConnectionError):
        break_off()
    assert store.load(0, 0) is None
    assert ["lock"] == [path.name for path in store.folder.iterdir()]


def _crash(folder: Path) -> None:
    store = SnapshotStore(folder, "cluster-1", "topic-1", Skips(), LOG)
    store.write(0, [row("li", 1)], mark(1))
    store.write(0, [row("li", 2)], mark(2))

    def last() -> Iterator[Row]:
        yield row("li", 3)
        os.kill(os.getpid(), signal.SIGKILL)

    store.write(0, last(), mark(3))


def test_a_worker_killed_in_mid_snapshot_keeps_the_one_before(tmp_path: Path) -> None:
    """With kill -9 inside a snapshot, the next worker loads the last whole one (R-002-15)."""
    process = multiprocessing.get_context("fork").Process(target=_crash, args=(tmp_path / "0",))
    process.start()
    process.join(30)
    assert -signal.SIGKILL == process.exitcode
    with SnapshotStore(tmp_path / "0", "cluster-1", "topic-1", Skips(), LOG) as store:
        loaded = store.load(0, 0)
        assert loaded is not None
        assert ([row("li", 2)], 2) == (list(loaded.rows()), loaded.mark.diff_offset)
