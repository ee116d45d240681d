"""What a store of facts must do: one list of checks for Weaviate and the embedded store."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest

from memory.facts.port import Fact, FactsError, FactStore
from memory.facts.ranking import fact_text, ranked
from memory.facts.vectors import HashedVectors, Vector, hashed

START = 1_764_550_000_000  # ms
BAD = "畸形"  # a summary with it gets a vector that is too short
ADDRESS_A, ADDRESS_B = "收货地址：上海路1号", "收货地址：南京路2号"


class OddVectors(HashedVectors):
    """The embedded vectors, one of them broken on demand."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """A short vector for a text that asks for one."""
        return [hashed(text)[:7] if BAD in text else hashed(text) for text in texts]


class Shop:
    """Makes facts of one shop, each with a write id and a second of its own."""

    def __init__(self, name: str) -> None:
        self.name, self._writes = name, 0

    def fact(self, summary: str, key: str, *, customer: str = "s/web/u1", **changes: object) -> Fact:
        """The next write."""
        self._writes += 1
        base = Fact(self.name, customer, key, "preference", summary, f"w{self._writes}", "t1", "sess_1",
                    START + 1000 * self._writes)  # fmt: skip
        return dataclasses.replace(base, **changes)  # type: ignore[arg-type]  # fields by name


async def texts(store: FactStore, shop: Shop, text: str, **where: object) -> list[str]:
    """Summaries that a search finds."""
    return [hit.fact.summary for hit in await store.search(shop.name, text, **where)]  # type: ignore[arg-type]


async def repeated_batch(store: FactStore, shop: Shop, _folder: Path) -> None:
    """A batch that is sent three times is stored once (case I01)."""
    batch = [shop.fact(f"likes tea number {number}", f"k{number}") for number in range(5)]

    results = [await store.put(batch) for _ in range(3)]

    assert [tuple(fact.write_id for fact in batch)] * 3 == [result.stored for result in results]
    assert batch[::-1] == [hit.fact for hit in await store.search(shop.name, "", top=50, active_only=False)]


async def late_repeat(store: FactStore, shop: Shop, _folder: Path) -> None:
    """A repeated write that a later one has replaced changes nothing."""
    first, second = shop.fact("wants a red cup", "item"), shop.fact("wants a blue cup", "item")
    await store.put([first])
    await store.put([second])

    await store.put([first])
    await store.put([first, second])

    assert [(second.write_id, True), (first.write_id, False)] == [
        (fact.write_id, fact.active) for fact in await store.by_key(shop.name, first.customer, "item")
    ]


async def partial_failure(store: FactStore, shop: Shop, _folder: Path) -> None:
    """Of ten facts, one with a wrong vector size, nine are stored and one is reported (case I03)."""
    batch = [shop.fact(f"{BAD if number == 4 else 'fine'} {number}", f"k{number}") for number in range(10)]

    result = await store.put(batch)

    assert ([batch[4].write_id], 9) == ([one.write_id for one in result.failed], len(result.stored))
    assert "vector" in result.failed[0].reason
    assert 9 == len(await store.search(shop.name, "", top=50))


async def first_one_bad(store: FactStore, shop: Shop, _folder: Path) -> None:
    """A wrong vector that comes first does not set the size for all others."""
    result = await store.put([shop.fact(BAD, "a"), shop.fact("fine", "b")])

    assert (1, 1) == (len(result.stored), len(result.failed))


async def no_chat(store: FactStore, shop: Shop, _folder: Path) -> None:
    """A text too long to be a summary is refused with the reason: facts are no copies of chats (R-002-18)."""
    result = await store.put([shop.fact("customer: hello. agent: hello. " * 20, "a"), shop.fact("likes tea", "b")])

    assert (["w1"], ("w2",)) == ([one.write_id for one in result.failed], result.stored)
    assert "no chat" in result.failed[0].reason


async def exact_session(store: FactStore, shop: Shop, _folder: Path) -> None:
    """Finding and deleting session sess_1 never touches sess_1_old, SESS_1 or "sess_1 2" (case I05)."""
    sessions = ["sess_1", "sess_1_old", "SESS_1", "sess_1 2", "old sess_1", "sess-1"]
    await store.put([shop.fact(f"fact of {one}", one, session_id=one) for one in sessions])

    assert ["fact of sess_1"] == [fact.summary for fact in await store.by_session(shop.name, "sess_1")]
    assert 1 == await store.delete_session(shop.name, "sess_1")
    assert sessions[:0:-1] == [hit.fact.session_id for hit in await store.search(shop.name, "", top=50)]


async def exact_customer(store: FactStore, shop: Shop, _folder: Path) -> None:
    """Deleting a customer takes the trail too, and nobody whose id only looks alike (R-004-19)."""
    others = ["s/web/u1_old", "s/web/U1", "s/web/u10", "s/app/u1", "s/web/u1 2"]
    await store.put([shop.fact("likes milk", "drink", customer=one) for one in ["s/web/u1", *others]])
    await store.put([shop.fact("likes tea", "drink")])

    assert 2 == await store.delete_customer(shop.name, "s/web/u1")
    assert [] == await store.by_key(shop.name, "s/web/u1", "drink")
    assert set(others) == {hit.fact.customer for hit in await store.search(shop.name, "", top=50, active_only=False)}


async def chinese_words(store: FactStore, shop: Shop, _folder: Path) -> None:
    """Chinese text is found by a part of it, also by one character (case I07)."""
    await store.put(
        [shop.fact("用户要求更换收货地址", "a"), shop.fact("喜欢喝绿茶", "b"), shop.fact("shoes pinch", "c")]
    )

    assert ["用户要求更换收货地址"] == await texts(store, shop, "收货地址", top=1)
    assert ["喜欢喝绿茶"] == await texts(store, shop, "喝")


async def across_languages(store: FactStore, shop: Shop, _folder: Path) -> None:
    """A word of the shop finds the same thing in the other language (R-002-18)."""
    await store.put([shop.fact("bought a dress in size M", "a"), shop.fact("asked for a paper box", "b"),
                     shop.fact("要求开公司发票", "c")])  # fmt: skip

    assert ["bought a dress in size M"] == await texts(store, shop, "连衣裙")
    assert ["要求开公司发票"] == await texts(store, shop, "invoices")


async def contradiction(store: FactStore, shop: Shop, _folder: Path) -> None:
    """A contradiction is what is known now; the fact before it stays in the trail, inactive (case J07)."""
    await store.put([shop.fact("喜欢发顺丰", "preference/carrier")])
    await store.put([shop.fact("不要发顺丰", "preference/carrier")])

    assert ["不要发顺丰"] == await texts(store, shop, "快递 顺丰")
    trail = await store.by_key(shop.name, "s/web/u1", "preference/carrier")
    assert [("不要发顺丰", True, "w1"), ("喜欢发顺丰", False, "")] == [
        (fact.summary, fact.active, fact.supersedes) for fact in trail
    ]


async def correction_rolled_back(store: FactStore, shop: Shop, _folder: Path) -> None:
    """After a correction only B is found, after its rollback only A; every write stays in the trail (case J09)."""
    await store.put([shop.fact(ADDRESS_A, "address")])
    await store.put([shop.fact(ADDRESS_B, "address")])
    corrected = await texts(store, shop, "收货地址")
    await store.put([shop.fact(ADDRESS_A, "address")])

    assert ([ADDRESS_B], [ADDRESS_A]) == (corrected, await texts(store, shop, "收货地址"))
    assert [ADDRESS_A, ADDRESS_B, ADDRESS_A] == [
        fact.summary for fact in await store.by_key(shop.name, "s/web/u1", "address")
    ]


async def same_key_in_one_batch(store: FactStore, shop: Shop, _folder: Path) -> None:
    """Three writes of a key in one batch are a trail of three, the last one active."""
    batch = [shop.fact(f"size {size}", "size") for size in "SML"]

    await store.put(batch)
    await store.put(batch[1:])

    assert [("w3", True), ("w2", False), ("w1", False)] == [
        (fact.write_id, fact.active) for fact in await store.by_key(shop.name, "s/web/u1", "size")
    ]


async def ended_key(store: FactStore, shop: Shop, _folder: Path) -> None:
    """A write that ends a key leaves nothing known under it, and the trail; repeated, it ends no later one."""
    first, end = shop.fact("wants a call back", "call"), shop.fact("", "call", active=False)
    await store.put([first, end])
    nothing = await texts(store, shop, "call back")
    await store.put([shop.fact("wants a call at nine", "call")])
    await store.put([end])

    assert ([], ["wants a call at nine"]) == (nothing, await texts(store, shop, "call"))
    assert 3 == len(await store.by_key(shop.name, "s/web/u1", "call"))


async def filters(store: FactStore, shop: Shop, _folder: Path) -> None:
    """Customer, kinds, time and number are kept exactly; without text the newest come first."""
    facts = [
        shop.fact(f"blue cup {number}", f"k{number}", kind="item" if number % 2 else "promise") for number in range(6)
    ]
    await store.put([*facts, shop.fact("blue cup of another", "k0", customer="s/web/u2")])
    where = {"customer": "s/web/u1", "kinds": ("item",), "since_ms": facts[2].at}

    assert {"blue cup 3", "blue cup 5"} == set(await texts(store, shop, "blue cup", **where))
    assert ["blue cup 5", "blue cup 3"] == await texts(store, shop, "", **where)
    assert 2 == len(await texts(store, shop, "blue cup", top=2))
    assert [] == await texts(store, shop, "blue cup", kinds=("complaint",))


async def shops_apart(store: FactStore, shop: Shop, _folder: Path) -> None:
    """Two shops share nothing, whatever their names hold; a shop without facts is empty, no error."""
    odd = Shop(f"{shop.name} 店#1?..%")
    same = shop.fact("likes tea", "drink")
    await store.put([same, dataclasses.replace(same, shop=odd.name, summary="likes milk")])

    assert (["likes tea"], ["likes milk"]) == (await texts(store, shop, "likes"), await texts(store, odd, "likes"))
    assert 1 == await store.delete_customer(odd.name, "s/web/u1")
    assert (["likes tea"], []) == (await texts(store, shop, ""), await texts(store, Shop("nobody's"), "tea"))


async def fresh_facts(store: FactStore, shop: Shop, _folder: Path) -> None:
    """A fact is found by its number at once after the write, among 215 that nothing has flushed yet."""
    await store.put([shop.fact(f"a parcel with number {70_000 + number}", f"k{number}") for number in range(215)])
    asked = range(70_000, 70_215, 9)

    found = [await texts(store, shop, str(number), top=1) for number in asked]

    assert [[f"a parcel with number {number}"] for number in asked] == found


async def exact_text(store: FactStore, shop: Shop, _folder: Path) -> None:
    """Text with quotes, operators and backslashes is stored as it is and can be searched for."""
    summary = 'NEAR("a" OR b*) AND NOT \\c`; DROP -- 50% {x: "y"} 🙂 \u200b'
    fact = shop.fact(summary, "k/é/%", fields={"order": "OD100008", "nested": {"n": [1, 2.5, None, True]}})
    await store.put([fact])

    assert [fact] == [hit.fact for hit in await store.search(shop.name, summary)]
    assert [fact] == [hit.fact for hit in await store.search(shop.name, "OD100008")]
    assert [fact] == await store.by_key(shop.name, fact.customer, "k/é/%")


async def one_ranking(store: FactStore, shop: Shop, _folder: Path) -> None:
    """Order and score are those of the one formula, so that a replay on the other store recalls the same."""
    facts = [shop.fact(text, f"k{number}") for number, text in enumerate(
        ("blue cup", "蓝色杯子破损", "refund for a blue cup", "blue", "cups and plates", "red shoes"))]  # fmt: skip
    await store.put(facts)

    expected = ranked("blue cup", hashed("blue cup"), [(fact, hashed(fact_text(fact))) for fact in facts], 5)
    assert expected == await store.search(shop.name, "blue cup")


async def no_letters(store: FactStore, shop: Shop, _folder: Path) -> None:
    """A fact without letters and digits is stored, and a search for nothing but signs finds nothing."""
    result = await store.put([shop.fact("！！！", "a"), shop.fact("tea", "b")])

    assert (2, []) == (len(result.stored), await texts(store, shop, "？？"))
    assert ["tea", "！！！"] == await texts(store, shop, "")


async def backup_and_restore(store: FactStore, shop: Shop, folder: Path) -> None:
    """A restored shop is what it was: trail, order and search; what came after the backup is gone (R-004-11)."""
    await store.put([shop.fact("likes tea", "drink"), shop.fact("likes milk", "drink"), shop.fact("size M", "size")])
    before = await store.search(shop.name, "", top=50, active_only=False)
    assert 3 == await store.backup(shop.name, folder / "facts.gz")
    await store.put([shop.fact("likes juice", "drink"), shop.fact("later", "later")])

    assert 3 == await store.restore(shop.name, folder / "facts.gz")

    assert before == await store.search(shop.name, "", top=50, active_only=False)
    assert ["likes milk"] == await texts(store, shop, "likes")
    assert ["w2", "w1"] == [fact.write_id for fact in await store.by_key(shop.name, "s/web/u1", "drink")]


async def bad_backups(store: FactStore, shop: Shop, folder: Path) -> None:
    """A backup that is cut short, altered or another shop's is refused, and changes nothing."""
    await store.put([shop.fact("likes tea", "drink")])
    file, other = folder / "facts.gz", Shop(f"{shop.name}-2")
    await store.backup(shop.name, file)
    (folder / "cut.gz").write_bytes(file.read_bytes()[:-9])

    for name, target in (("cut.gz", shop), ("facts.gz", other), ("none.gz", shop)):
        with pytest.raises(FactsError, match=name):
            await store.restore(target.name, folder / name)
    assert ["likes tea"] == await texts(store, shop, "")


CHECKS = (
    repeated_batch, late_repeat, partial_failure, first_one_bad, no_chat, exact_session, exact_customer, chinese_words,
    across_languages, contradiction, correction_rolled_back, same_key_in_one_batch, ended_key, filters, shops_apart,
    fresh_facts, exact_text, one_ranking, no_letters, backup_and_restore, bad_backups,
)  # fmt: skip
