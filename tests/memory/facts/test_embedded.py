"""What only the embedded store can show: searches over a whole shop, several processes, a process that is killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from memory.facts import backup
from memory.facts.embedded import EmbeddedFacts
from memory.facts.nearest import Index, folded
from memory.facts.port import FactsError
from memory.facts.vectors import HashedVectors, hashed
from tests.memory.facts.checks import Shop

GOODS = [
    "连衣裙", "dress", "耳机", "phone", "保温杯", "sneakers", "羽绒服", "suitcase", "电饭煲", "lipstick", "红色",
    "蓝色", "黑色", "refund", "退货", "换货", "address", "地址", "发票", "invoice", "破损", "尺码", "顺丰", "evening",
    "周末", "承诺", "投诉", "会员", "积分", "late", "repair", "毛巾", "玩具", "tea", "咖啡", "gift",
]  # fmt: skip
WRITER = """
import asyncio, sys
from pathlib import Path
from tests.memory.facts.test_embedded import write

asyncio.run(write(Path(sys.argv[1])))
"""


async def write(folder: Path) -> None:
    """1,000 writes in batches of 50, each told when it is stored."""
    store, shop = EmbeddedFacts(folder), Shop("shop")
    facts = [shop.fact(f"fact {number}", f"k{number % 900}") for number in range(1000)]
    for at in range(0, 1000, 50):
        await store.put(facts[at : at + 50])
        sys.stdout.write(f"{at}\n")
        sys.stdout.flush()
    await store.close()


def _killed(folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        while int(writer.stdout.readline()) < 500:
            pass
        writer.kill()


async def test_kill_during_writes_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """1,000 writes by a process that is killed, and all of them once more: each is there exactly once."""
    await asyncio.to_thread(_killed, tmp_path)
    await write(tmp_path)

    store = EmbeddedFacts(tmp_path)
    found = await store.by_session("shop", "sess_1")

    assert [f"w{number}" for number in range(1, 1001)] == [fact.write_id for fact in found]
    assert 900 == sum(fact.active for fact in found)
    await store.close()


async def test_writes_of_another_process_are_found(shop: Shop, tmp_path: Path) -> None:
    """A reader's index over a whole shop follows what another process stores, replaces and deletes."""
    writer, reader = EmbeddedFacts(tmp_path), EmbeddedFacts(tmp_path)

    async def found() -> list[str]:
        return [hit.fact.summary for hit in await reader.search(shop.name, "blue cup")]

    await writer.put([shop.fact("a blue cup", "item")])
    first = await found()
    await writer.put(
        [shop.fact("two blue cups", "item"), shop.fact("a blue cup broke", "complaint", customer="s/web/u2")]
    )
    second = await found()
    await writer.delete_customer(shop.name, "s/web/u2")

    assert (["a blue cup"], {"two blue cups", "a blue cup broke"}) == (first, set(second))
    assert ["two blue cups"] == await found()
    await writer.close()
    await reader.close()


async def test_order_number_is_found_in_a_whole_shop(shop: Shop, tmp_path: Path) -> None:
    """Among 300 facts that are alike, a rare word finds its fact whatever the vectors say."""
    store = EmbeddedFacts(tmp_path)
    await store.put(
        [shop.fact(f"wants a refund for a blue cup OD{500_000 + number}", f"k{number}") for number in range(300)]
    )

    hits = await store.search(shop.name, "blue cup refund OD500287", top=1)

    assert ["wants a refund for a blue cup OD500287"] == [hit.fact.summary for hit in hits]
    await store.close()


def test_folded_vectors_keep_the_nearest() -> None:
    """Of 1,000 facts, 95 % of the five nearest in full are among the 100 nearest folded ones, filters kept."""
    words = np.random.default_rng(7).choice(GOODS, size=(1_000, 4))
    vectors = np.stack([hashed(" ".join(row)) for row in words])
    index = Index()
    index.add([(row, row, True, "a" if row % 2 else "b", vector.tobytes()) for row, vector in enumerate(vectors)])

    kept = []
    for asked in range(0, 1_000, 40):
        best = np.argsort(-(vectors @ vectors[asked]))
        wanted = [int(row) for row in best if row % 2 and row >= 100][:5]
        found = index.nearest(vectors[asked], 100, ("a",), 100, active_only=True)
        assert all(row % 2 and row >= 100 for row in found)
        kept += [row in found for row in wanted]
    assert sum(kept) >= 0.95 * len(kept)


def test_folding_keeps_angles_for_any_size() -> None:
    """A vector of another size than a multiple of 64 folds too; a vector is as near to itself as before."""
    vectors = np.random.default_rng(8).normal(size=(4, 100)).astype(np.float32)

    assert (4, 64) == folded(vectors).shape
    assert np.allclose(folded(vectors[:1]), folded(vectors)[:1])


async def test_file_of_other_vectors_is_refused(shop: Shop, tmp_path: Path) -> None:
    """Vectors of two models are never mixed in one file."""

    class Others(HashedVectors):
        name = "another model"

    store = EmbeddedFacts(tmp_path)
    await store.put([shop.fact("tea", "drink")])
    await store.close()

    with pytest.raises(FactsError, match="another model"):
        await EmbeddedFacts(tmp_path, Others()).search(shop.name, "tea")


async def test_forgotten_customer_leaves_no_byte(shop: Shop, tmp_path: Path) -> None:
    """After delete_customer the value is not in the file, its words index or the write-ahead log (R-004-19)."""
    store = EmbeddedFacts(tmp_path)
    await store.put([shop.fact("zebrafish in 97319731", "pet"), shop.fact("milk", "drink", customer="s/web/u2")])
    await store.delete_customer(shop.name, "s/web/u1")

    left = await asyncio.to_thread(lambda: b"".join(file.read_bytes() for file in tmp_path.iterdir()))
    assert b"milk" in left
    assert not [word for word in (b"zebrafish", b"97319731", b"s/web/u1") if word in left]
    await store.close()


async def test_backup_without_a_forgotten_customer(shop: Shop, tmp_path: Path) -> None:
    """A kept backup can be rewritten without a customer; the rest stays whole."""
    store, file = EmbeddedFacts(tmp_path / "facts"), tmp_path / "facts.gz"
    await store.put([shop.fact("tea", "drink"), shop.fact("milk", "drink", customer="s/web/u2")])
    await store.backup(shop.name, file)
    await store.close()

    assert 1 == backup.without(file, shop.name, lambda fact: fact.customer == "s/web/u1")
    assert ["milk"] == [fact.summary for fact in backup.read(file, shop.name)]
