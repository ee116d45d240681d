"""Backups of relations: portable between the stores, whole or not there, and without those who are forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory.relations import dump
from memory.relations.embedded import EmbeddedRelations
from memory.relations.port import RelationsError
from tests.memory.relations.checks import CUSTOMER, Shop, path


async def test_backup_without_a_forgotten_customer(shop: Shop, tmp_path: Path) -> None:
    """A kept backup loses exactly the forgotten customer's rows, and can still be restored (R-004-19)."""
    store, file = EmbeddedRelations(tmp_path / "relations.db"), tmp_path / "backup"
    await store.merge([*shop.story(), shop.order("OD1", customer="s/web/u10"), shop.complaint(note="canary")])
    await store.backup(shop.name, file)
    assert b"canary" in file.read_bytes()

    assert 6 == dump.without(file, shop.name, CUSTOMER)

    assert b"canary" not in file.read_bytes()
    assert 0 == dump.without(file, shop.name, CUSTOMER)
    assert 1 == await store.restore(shop.name, file)
    assert (0, 1) == (len(await path(store, shop)), len(await path(store, shop, "s/web/u10")))
    await store.close()


def test_backup_that_fails_leaves_the_one_before(tmp_path: Path) -> None:
    """A backup that is cut short by an error leaves no file, and the one that was there as it was."""
    file = tmp_path / "backup"
    with dump.Writer(file, "shop"):
        pass
    before = file.read_bytes()

    with pytest.raises(KeyError), dump.Writer(file, "shop"):
        raise KeyError

    assert [file] == [*tmp_path.iterdir()]
    assert before == file.read_bytes()


def test_folder_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    """A disk that does not take the backup is an error that names the file."""
    (tmp_path / "file").touch()

    with pytest.raises(RelationsError, match="can't be written"):
        dump.Writer(tmp_path / "file" / "backup", "shop")
