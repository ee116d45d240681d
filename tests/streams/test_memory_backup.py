"""Full backups before a rollback: whole or not there, restorable, and no more than are kept (R-004-11)."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory.facts.port import FactsUnavailableError
from streams.memory_backup import back_up, backups
from tests.streams.keeping import T0, Bench, records, trail, wanted, writes


async def test_a_backup_brings_both_stores_back(tmp_path: Path) -> None:
    """Facts with their trails and relations, from the files of one folder."""
    bench, made = Bench(tmp_path), list(writes(42))
    bench.publish(records(made))
    await bench.keep()
    folder = await back_up(bench.stores, tmp_path / "backups", ["demo"], T0, keep=20)
    for number in range(7):
        await bench.facts.delete_customer("demo", f"demo/web/u-{number}")
        await bench.relations.delete_customer("demo", f"demo/web/u-{number}")
    assert 42 == await bench.facts.restore("demo", folder / "demo.facts")
    assert await bench.relations.restore("demo", folder / "demo.relations") > 0
    assert wanted(made) == await trail(bench.facts, made)
    assert 1 == len(await bench.relations.customer_path("demo", "demo/web/u-0", T0, T0 + 100))


async def test_twenty_are_kept(tmp_path: Path) -> None:
    """The oldest go first; a folder of another name that is not whole counts as none."""
    bench = Bench(tmp_path)
    for number in range(23):
        await back_up(bench.stores, tmp_path / "b", ["demo"], T0 + number * 1_000, keep=20)
    (tmp_path / "b" / ".half").mkdir()
    kept = backups(tmp_path / "b")
    assert (20, "20260105T020003.000Z") == (len(kept), kept[0].name)


async def test_without_a_whole_backup_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that does not answer refuses the backup, and leaves no half of it."""
    bench = Bench(tmp_path)

    async def away(*_: object) -> int:
        message = "down"
        raise FactsUnavailableError(message)

    monkeypatch.setattr(bench.relations, "backup", away)
    with pytest.raises(FactsUnavailableError):
        await back_up(bench.stores, tmp_path / "b", ["demo"], T0, keep=20)
    assert [] == list((tmp_path / "b").iterdir())
