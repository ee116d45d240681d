"""A restore: read whole first, nobody who was forgotten, the register on top, and to be taken back (R-004-11)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson
import pytest

from memory.facts.port import FactsError
from memory.relations.port import RelationsError
from schemas.errors import InterlockError
from schemas.memory import MemoryWrite
from streams.memory_backup import back_up, backups
from streams.memory_restore import Register, Restore, RestoreError, files_of, opened, restored_event
from streams.privacy.stores import clear, clear_backups, clear_stores
from tests.streams.keeping import T0, Bench, records, trail, wanted, writes

MADE = list(writes(42))  # two of each key, of seven customers
LOST = "demo/web/u-1"
NOT_WHOLE = "damaged|no whole backup|can be read"


class World:
    """Stores that keepers filled, and a backup of when half of it was written."""

    def __init__(self, folder: Path) -> None:
        self.bench, self.backups = Bench(folder), folder / "backups"

    async def filled(self, at: int = 21) -> Path:
        """The backup's folder; everything is written."""
        emitted = list(records(MADE))
        self.bench.publish(emitted[:at])
        await self.bench.keep()
        made = await back_up(self.bench.stores, self.backups, ["demo"], T0, keep=20)
        self.bench.publish(emitted[at:])
        await self.bench.keep()
        return made

    async def restore(self, *paths: Path, register: Register = lambda: MADE) -> Restore:
        """Restore the files."""
        with opened(files_of(paths), self.bench.keys.forgotten, self.backups) as found:
            await found.carry_out(self.bench.stores, register)
        return found

    async def trail(self) -> dict[str, list[str]]:
        """Of each key the writes that the store of facts has."""
        return await trail(self.bench.facts, MADE)

    async def steps(self, customer: str) -> int:
        """How many relations of a customer are found."""
        return len(await self.bench.relations.customer_path("demo", customer, T0, T0 + 1_000))

    async def forget(self, customer: str, at: int = T0 + 1_000) -> None:
        """As the command does it: keys, stores, backups."""
        self.bench.keys.forget(customer, at)
        await clear_stores(self.bench.stores, [customer])


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A world of the test's own."""
    return World(tmp_path)


async def test_lost_stores_come_back_with_what_was_written_since(world: World) -> None:
    """From an old backup and the register: every fact, every trail, every relation, as before the loss."""
    made = await world.filled()
    await world.bench.facts.delete_customer("demo", LOST)
    await world.bench.relations.delete_customer("demo", LOST)
    assert 0 == await world.steps(LOST)

    done = (await world.restore(made)).done

    assert wanted(MADE) == await world.trail()
    assert 1 == await world.steps(LOST)
    assert 42 == done[f"{made.name}/demo.facts"]
    assert done[f"{made.name}/demo.relations"] > 7


async def test_one_store_alone_is_restored_alone(world: World) -> None:
    """A file of facts changes no relation, and the other way round."""
    made = await world.filled()
    await world.bench.facts.delete_customer("demo", LOST)
    await world.bench.relations.delete_customer("demo", LOST)

    await world.restore(made / "demo.relations")

    assert [] == (await world.trail())[f"{LOST}/preference/carrier"]
    assert 1 == await world.steps(LOST)


async def test_who_was_forgotten_does_not_come_back(world: World, tmp_path: Path) -> None:
    """Neither by an old backup that was carried away before, nor by the register; the others come back (promise 9)."""
    made = await world.filled()
    kept = tmp_path / "carried away"
    made.rename(kept)
    await world.forget(LOST)
    await world.bench.facts.delete_customer("demo", "demo/web/u-2")

    with opened(files_of([kept]), world.bench.keys.forgotten, world.backups) as found:
        assert [(3, 1), (2, 1)] == [(one.left_out, one.forgotten) for one in found.contents]
        planned = await found.planned(world.bench.stores, lambda: MADE)
        await found.carry_out(world.bench.stores, lambda: MADE)

    assert {f"demo/web/u-2/{kind}" for kind in ("preference/carrier", "complaint/c1", "address/delivery")} == set(
        planned["demo"].lines
    )
    assert {key: [] if LOST in key else ids for key, ids in wanted(MADE).items()} == await world.trail()
    assert (0, 1) == (await world.steps(LOST), await world.steps("demo/web/u-2"))
    await back_up(world.bench.stores, world.backups, ["demo"], T0 + 1, keep=20)
    assert 0 == await clear_backups(world.backups, [LOST])


async def test_what_they_said_after_that_is_theirs_and_comes_back(world: World) -> None:
    """A customer who was forgotten and came again has what they said since, and nothing else."""
    made = await world.filled(at=42)
    world.bench.keys.forget(LOST, T0 + 1 + 7)  # behind the first two of their six writes

    await world.restore(made)

    lost = {key: ids for key, ids in (await world.trail()).items() if key.startswith(f"{LOST}/")}
    assert [f"w-{number}" for number in (15, 22, 29, 36)] == sorted(one for ids in lost.values() for one in ids)


async def test_who_is_forgotten_meanwhile_does_not_come_back(world: World) -> None:
    """Forgotten between two looks at the register: it is done once more, without them (promise 9)."""
    made = await world.filled()
    looks: list[int] = []

    def register() -> Sequence[MemoryWrite]:
        looks.append(1)
        if len(looks) == 2:
            world.bench.keys.forget(LOST, T0 + 1_000)
        return MADE

    await world.restore(made, register=register)

    assert [] == (await world.trail())[f"{LOST}/preference/carrier"]
    assert 0 == await world.steps(LOST)


async def test_forgetting_waits_for_a_restore(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """What the restore works on is not taken from under it, and what it had read is cleared behind it (promise 9)."""
    made, done, threads = await world.filled(), list[tuple[int, int, int]](), list[threading.Thread]()

    def forget() -> None:
        done.append(asyncio.run(clear(world.bench.stores, world.backups, [LOST])))

    def register() -> Sequence[MemoryWrite]:
        if not threads:
            threads.append(threading.Thread(target=forget))
            threads[0].start()
            threads[0].join(0.5)
        assert not done
        return MADE

    await world.restore(made, register=register)
    threads[0].join(30)

    assert (6, 2) == (done[0][0], done[0][2])
    assert 0 == await world.steps(LOST)
    assert "another command is at work" in caplog.text


async def test_what_keepers_apply_meanwhile_is_not_lost(world: World) -> None:
    """The register grew while a store was replaced: its news stand on top in the end."""
    made, shown = await world.filled(), iter([MADE[:30], MADE[:40], MADE, MADE])

    await world.restore(made, register=lambda: next(shown))

    assert wanted(MADE) == await world.trail()


async def test_a_register_that_never_rests_is_told(world: World) -> None:
    """After some tries it says what to do, and does not claim to be done (promise 10)."""

    def growing() -> Iterator[list[MemoryWrite]]:
        for count in range(1, 40):
            yield MADE[:count]

    made, shown = await world.filled(), growing()
    with pytest.raises(RestoreError, match="stop the keepers"):
        await world.restore(made, register=lambda: next(shown))


async def test_a_restore_is_taken_back_by_the_backup_before_it(world: World) -> None:
    """What stood before, with what the register does not know, too, stands again."""
    made = await world.filled()
    await world.bench.facts.delete_customer("demo", LOST)
    before = await back_up(world.bench.stores, world.backups, ["demo"], T0 + 1, keep=1, spare=[made])
    assert [made, before] == backups(world.backups)  # the one that is restored is not the one that goes
    await world.restore(made, register=lambda: MADE[:21])
    assert ["w-1"] == (await world.trail())[f"{LOST}/preference/carrier"]

    await world.restore(before, register=list)

    assert {key: [] if LOST in key else ids for key, ids in wanted(MADE).items()} == await world.trail()


@pytest.mark.parametrize(("spoil", "error", "said"), [
    (lambda path: path.write_bytes(path.read_bytes()[:-20]), (FactsError, RelationsError), NOT_WHOLE),
    (lambda path: path.write_bytes(b"hello"), (FactsError, RelationsError), NOT_WHOLE),
    (lambda path: path.write_bytes(b""), (FactsError, RelationsError), NOT_WHOLE),
    (lambda path: path.rename(path.with_stem("other")), (FactsError, RelationsError), "shop '?other"),
    (lambda path: path.rename(path.with_suffix(".zip")), (RestoreError,), "SHOP.facts or SHOP.relations"),
    (lambda path: path.unlink(), (RestoreError,), "can't be read"),
])  # fmt: skip
@pytest.mark.parametrize("name", ["demo.facts", "demo.relations"])
async def test_what_is_no_whole_backup_of_the_shop_is_refused(
    world: World, name: str, spoil: object, error: tuple[type[InterlockError], ...], said: str
) -> None:
    """Torn, foreign, another shop's, or not there: a clear error that names the file, and nothing is changed."""
    made = await world.filled()
    path = made / name
    assert callable(spoil)
    named = spoil(path)
    path = named if isinstance(named, Path) else path
    others = [one for one in made.iterdir() if one != path]

    with pytest.raises(error, match=said) as told:
        await world.restore(*others, path)

    assert path.name in str(told.value)
    assert wanted(MADE) == await world.trail()
    assert [made] == [one for one in world.backups.iterdir() if one.is_dir()]


async def test_a_folder_without_backups_and_two_of_one_shop_are_refused(world: World, tmp_path: Path) -> None:
    """Which of two files is meant is not guessed; an empty folder is no backup."""
    made = await world.filled()
    again = await back_up(world.bench.stores, world.backups, ["demo"], T0 + 1, keep=20)
    (tmp_path / "none").mkdir()
    with pytest.raises(RestoreError, match="no backup is in it"):
        files_of([tmp_path / "none"])
    with pytest.raises(RestoreError, match="name one of them"):
        files_of([made, again])


async def test_what_a_killed_restore_left_goes_with_the_forgotten(world: World) -> None:
    """A half made folder holds facts of everybody: forgetting removes it (promise 9)."""
    await world.filled()
    for name in (".restore-x", ".20260105T020000.000Z"):
        (world.backups / name).mkdir()
        (world.backups / name / "demo.facts").write_bytes(b"everybody")

    await clear_backups(world.backups, [LOST])

    assert [] == [one for one in world.backups.iterdir() if one.name.startswith(".")]


async def test_the_register_hears_of_it(world: World) -> None:
    """The word on system.events names shop, files with checksum, who, why, and the backup of before."""
    made = await world.filled()
    with opened(files_of([made]), world.bench.keys.forgotten, world.backups) as found:
        record = restored_event(found, world.backups / "before", "restore-1", "li", "disk lost", T0)

    said = orjson.loads(record.value or b"")
    assert ("memory_restored", "demo", "li") == (said["kind"], said["subject"], said["by"])
    assert ("before", "disk lost") == (said["data"]["backup_before"], said["data"]["reason"])
    assert [f"{made.name}/demo.facts", f"{made.name}/demo.relations"] == [one["file"] for one in said["data"]["files"]]
    assert (b"~0", 0) == (record.key, record.partition)
