"""What a store of relations must do: one list of checks for Neo4j and the embedded store."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import pytest

from memory.relations.port import Node, Relation, RelationsError, RelationStore, Step
from memory.relations.schema import KINDS, LABELS, RESULTS

START = 1_764_550_000_000  # ms
DAY = 86_400_000
END = START + 30 * DAY
CUSTOMER = "s/web/u1"
HOSTILE = "it's \"the\" \\n `back`tick'}) DETACH DELETE n // \0 🙂 退货"
LISA, TOM = Node("Agent", "a1", {"name": "desk 1"}), Node("Agent", "a2", {"name": "desk 2"})


class Shop:
    """Makes relations of one shop, each with a write id and a second of its own."""

    def __init__(self, name: str) -> None:
        self.name, self._writes = name, 0

    def relation(self, kind: str, start: Node, end: Node, **changes: object) -> Relation:
        """The next write."""
        self._writes += 1
        at = START + 1_000 * self._writes
        base = Relation(self.name, CUSTOMER, kind, start, end, at, f"w{self._writes}", "t1", at)
        return dataclasses.replace(base, **changes)  # type: ignore[arg-type]  # fields by name

    def order(self, order_id: str = "OD1", customer: str = CUSTOMER, **changes: object) -> Relation:
        """An order made."""
        return self.relation(
            "MADE_ORDER", Node("User", customer), Node("Order", order_id), customer=customer, **changes
        )

    def complaint(self, complaint_id: str = "ev-911", reason: str = "return", note: str = "", customer: str = CUSTOMER,
                  **changes: object) -> Relation:  # fmt: skip
        """A complaint filed."""
        end = Node("Complaint", complaint_id, {"reason": reason, "note": note})
        return self.relation("FILED_COMPLAINT", Node("User", customer), end, customer=customer, **changes)

    def check(self, agent: Node, complaint_id: str = "ev-911", result: str = "marked_down", check_id: str = "q1",
              **changes: object) -> Relation:  # fmt: skip
        """A quality check of an agent, because of a complaint."""
        complaint = Node("Complaint", complaint_id)
        return self.relation("TRIGGERED_QUALITY_CHECK", complaint, agent, fields={"result": result}, id=check_id,
                             **changes)  # fmt: skip

    def story(self) -> list[Relation]:
        """One customer's order, the complaint about it, who handled both and how that was judged."""
        order, complaint = Node("Order", "OD1", {"summary": "a dress"}), Node("Complaint", "ev-911")
        return [
            self.order(), self.complaint(note="too small"), self.relation("ABOUT", complaint, order),
            self.relation("HANDLED_BY", complaint, LISA), self.relation("HANDLED_BY", order, TOM), self.check(LISA),
        ]  # fmt: skip


async def path(store: RelationStore, shop: Shop, customer: str = CUSTOMER) -> list[Step]:
    """The customer's path within 30 days."""
    return await store.customer_path(shop.name, customer, START, END)


async def whole_path(store: RelationStore, shop: Shop, _folder: Path) -> None:
    """One call gives a customer's orders, complaints and quality checks and who handled them (R-002-19)."""
    order, complaint, *_, check = writes = shop.story()
    await store.merge(writes)

    node = Node("Complaint", "ev-911", {"reason": "return", "note": "too small"})
    expected = [
        Step("TRIGGERED_QUALITY_CHECK", node, check.at, check.write_id, {"result": "marked_down"}, (LISA,), ("OD1",)),
        Step("FILED_COMPLAINT", node, complaint.at, complaint.write_id, {}, (LISA,), ("OD1",)),
        Step("MADE_ORDER", Node("Order", "OD1", {"summary": "a dress"}), order.at, order.write_id, {}, (TOM,)),
    ]
    assert expected == await path(store, shop)


async def stated_twice(store: RelationStore, shop: Shop, _folder: Path) -> None:
    """An order that two facts state is one step, of the newer; taken back by one of them it still stands (J09)."""
    first, second = shop.order(id="problem/p1"), shop.order(id="problem/p2")
    await store.merge([first, second, shop.order("OD2", id="problem/p1")])
    assert [("OD2", None), ("OD1", second.write_id)] == [
        (step.node.id, step.write_id if step.node.id == "OD1" else None) for step in await path(store, shop)
    ]

    await store.merge([shop.order(id="problem/p2", active=False)])
    assert {"OD1": first.write_id} == {
        step.node.id: step.write_id for step in await path(store, shop) if step.node.id == "OD1"
    }
    await store.merge([shop.order(id="problem/p1", active=False)])
    assert ["OD2"] == [step.node.id for step in await path(store, shop)]


async def window(store: RelationStore, shop: Shop, _folder: Path) -> None:
    """The window begins at its first millisecond and ends before its last; what is beyond is left out (R-002-19)."""
    times = {"before": START - 1, "first": START, "last": END - 1, "after": END}
    await store.merge([shop.order(name, at=at) for name, at in times.items()])
    await store.merge([shop.complaint(name) for name in times])
    await store.merge([shop.check(LISA, name, at=at) for name, at in times.items()])

    steps = await path(store, shop)
    assert ["last", "first"] == [step.node.id for step in steps if step.kind == "MADE_ORDER"]
    assert ["last", "first"] == [step.node.id for step in steps if step.kind == "TRIGGERED_QUALITY_CHECK"]
    (marked,) = await store.marked_down_agents(shop.name, START, END)
    assert (2, END - 1, ("last", "first")) == (marked.times, marked.last_at, marked.complaints)


async def marked_down(store: RelationStore, shop: Shop, _folder: Path) -> None:
    """Over all customers: only who was marked down, only for return complaints, most often first (R-002-19)."""
    await store.merge([
        shop.complaint("k1"), shop.complaint("k2", customer="s/web/u2"), shop.complaint("k3", reason="delivery"),
        shop.check(LISA, "k1"), shop.check(TOM, "k1", "passed"), shop.check(TOM, "k3"),
        shop.check(LISA, "k2", customer="s/web/u2"),
        shop.check(TOM, "k2", check_id="q2", customer="s/web/u2"),
    ])  # fmt: skip

    found = await store.marked_down_agents(shop.name, START, END)

    assert [(LISA, 2, 2, ("k2", "k1")), (TOM, 1, 1, ("k2",))] == [
        (one.agent, one.times, one.customers, one.complaints) for one in found
    ]
    assert [TOM] == [one.agent for one in await store.marked_down_agents(shop.name, START, END, "delivery")]


async def repeated(store: RelationStore, shop: Shop, _folder: Path) -> None:
    """Evidence ev-911 whose commit reply was lost and that is sent again, also at once, is one node (case I11)."""
    writes = shop.story()
    results = [await store.merge(writes) for _ in range(2)]
    results += await asyncio.gather(*(store.merge(writes) for _ in range(3)))

    assert [tuple(one.write_id for one in writes)] * 5 == [result.stored for result in results]
    assert 3 == len(await path(store, shop))
    assert 1 == (await store.marked_down_agents(shop.name, START, END))[0].times
    assert len(writes) == await store.delete_customer(shop.name, CUSTOMER)


async def several_writers(store: RelationStore, shop: Shop, _folder: Path) -> None:
    """Customers that are written at once share an agent, and none is lost."""
    customers = [f"s/web/u{number}" for number in range(20)]
    await asyncio.gather(*(
        store.merge([shop.complaint(f"k-{name}", customer=name), shop.check(LISA, f"k-{name}", customer=name)])
        for name in customers
    ))  # fmt: skip

    (marked,) = await store.marked_down_agents(shop.name, START, END)
    assert (20, 20) == (marked.times, marked.customers)


async def older_write(store: RelationStore, shop: Shop, _folder: Path) -> None:
    """A keeper that was frozen and writes an old value late does not undo the newer one."""
    old, new = shop.complaint(note="old"), shop.complaint(note="new")
    judged, again = shop.check(LISA), shop.check(LISA, result="passed")
    await store.merge([new, again])

    result = await store.merge([old, judged])

    assert ((old.write_id, judged.write_id), ()) == (result.stored, result.failed)
    check, complaint = await path(store, shop)
    assert ("new", "passed") == (complaint.node.fields["note"], check.fields["result"])
    assert again.write_id == check.write_id


async def same_key_in_one_batch(store: RelationStore, shop: Shop, _folder: Path) -> None:
    """Of two writes of one relation in a batch the later one holds, in whatever order they come."""
    first, second = shop.check(LISA), shop.check(LISA, result="passed")
    await store.merge([shop.complaint(), second, first])

    check = (await path(store, shop))[1]
    assert {"result": "passed"} == check.fields


async def taken_back(store: RelationStore, shop: Shop, _folder: Path) -> None:
    """What a later write takes back is in no answer; said again it is there (R-004-11)."""
    writes = shop.story()
    await store.merge(writes)
    later = [dataclasses.replace(one, active=False, written_at=one.written_at + DAY) for one in writes]

    await store.merge(later)

    assert ([], []) == (await path(store, shop), await store.marked_down_agents(shop.name, START, END))
    await store.merge([dataclasses.replace(one, active=True, written_at=one.written_at + DAY) for one in later])
    assert 3 == len(await path(store, shop))


async def fields_of_a_node(store: RelationStore, shop: Shop, _folder: Path) -> None:
    """A field that a write does not name stays; a relation's own fields are those of its last write."""
    first = dataclasses.replace(shop.check(LISA), fields={"result": "open", "note": "soon"})
    await store.merge([shop.complaint(note="too small"), first])
    await store.merge([shop.check(Node("Agent", "a1"))])

    check, complaint = await path(store, shop)
    assert ({"result": "marked_down"}, LISA) == (check.fields, check.agents[0])
    assert {"reason": "return", "note": "too small"} == complaint.node.fields


async def hostile_names(store: RelationStore, shop: Shop, _folder: Path) -> None:
    """A kind or label made of Cypher is refused, whatever else is in the batch is stored, nothing is lost (I13)."""
    await store.merge(shop.story())
    before = await path(store, shop)
    evil = "ABOUT`]->() MATCH (n) DETACH DELETE n //"
    user, order = Node("User", CUSTOMER), Node("Order", "OD2")
    bad = [
        shop.relation(evil, user, order), shop.relation("MADE_ORDER", Node("User`) DELETE n //", CUSTOMER), order),
        shop.relation("MADE_ORDER", user, Node("Order", "OD2", {"summary` = 1 //": "x"})),
        shop.relation("MADE_ORDER", order, user), shop.relation("DELETED", user, order),
    ]  # fmt: skip

    result = await store.merge([bad[0], shop.order("OD3"), *bad[1:]])

    assert ([one.write_id for one in bad], 1) == ([one.write_id for one in result.failed], len(result.stored))
    assert "none of MADE_ORDER" in result.failed[0].reason
    assert before == [step for step in await path(store, shop) if step.node.id != "OD3"]


async def hostile_values(store: RelationStore, shop: Shop, _folder: Path) -> None:
    """A note with quote, backslash and backtick is stored as it is; in ids and questions it is only a value (I13)."""
    evil = HOSTILE.replace("\0", "")
    await store.merge([*shop.story(), shop.complaint(evil, evil, HOSTILE)])

    assert HOSTILE == (await path(store, shop))[0].node.fields["note"]
    assert [] == await path(store, shop, evil)
    assert [] == await store.marked_down_agents(evil, START, END, evil)
    assert 0 == await store.delete_customer(shop.name, evil)
    assert 4 == len(await path(store, shop))


async def what_the_schema_refuses(store: RelationStore, shop: Shop, _folder: Path) -> None:
    """Each refusal names the field and what it must be, never its value."""
    wrong = {
        "at": shop.order(at=1_764_550_000), "written_at": shop.order(written_at=0), "shop": shop.order("OD1", shop=""),
        "customer": shop.order("OD1", customer="a\nb"), "end.id": shop.order("x" * 257),
        "start.id": shop.relation("MADE_ORDER", Node("User", "another"), Node("Order", "OD1")),
        "end.fields.note": shop.complaint(note="\ud800"), "end.fields.reason": shop.complaint(reason="x" * 20_001),
        "fields.result": shop.check(LISA, result="fine"),
    }  # fmt: skip
    result = await store.merge(list(wrong.values()))

    assert list(wrong) == [one.reason.partition(":")[0] for one in result.failed]
    assert () == result.stored


async def exact_customer(store: RelationStore, shop: Shop, _folder: Path) -> None:
    """Deleting a customer leaves others whose id looks alike, and the agents' names (R-004-19)."""
    await store.merge(shop.story())
    others = ["s/web/u1_old", "s/web/U1", "s/web/u10", "s/app/u1"]
    await store.merge([shop.order("OD1", customer=one) for one in others])
    await store.merge([shop.complaint("ev-911", customer="s/app/u1"), shop.check(LISA, customer="s/app/u1")])

    assert 6 == await store.delete_customer(shop.name, CUSTOMER)

    assert [] == await path(store, shop)
    assert [1, 1, 1, 3] == [len(await path(store, shop, one)) for one in others]
    assert [LISA] == [one.agent for one in await store.marked_down_agents(shop.name, START, END)]
    assert 0 == await store.delete_customer(shop.name, CUSTOMER)


async def apart(store: RelationStore, shop: Shop, _folder: Path) -> None:
    """Shops never see each other, and a customer who names another's order gets an order of their own."""
    other = Shop(f"{shop.name}-2")
    await store.merge([shop.order("OD1"), *other.story()])
    named = Node("Order", "OD1", {"summary": "theirs"})
    thief = "s/web/thief"
    await store.merge([shop.relation("MADE_ORDER", Node("User", thief), named, customer=thief)])

    (step,) = await path(store, shop)
    assert {} == step.node.fields
    assert [] == await store.marked_down_agents(shop.name, START, END)
    assert 6 == await store.delete_customer(other.name, CUSTOMER)
    assert 1 == len(await path(store, shop))


async def limited(store: RelationStore, shop: Shop, _folder: Path) -> None:
    """Of a long path the newest steps are given."""
    await store.merge([shop.order(f"OD{number}") for number in range(30)])

    steps = await store.customer_path(shop.name, CUSTOMER, START, END, 2)
    assert ["OD29", "OD28"] == [step.node.id for step in steps]


async def backup_and_restore(store: RelationStore, shop: Shop, folder: Path) -> None:
    """A restored shop is what it was: what came after the backup is gone, what was changed is back (R-004-11)."""
    await store.merge([*shop.story(), shop.order("OD7", active=False)])
    before, judged = await path(store, shop), await store.marked_down_agents(shop.name, START, END)
    other = Shop(f"{shop.name}-2")
    await store.merge(other.story())
    assert 7 == await store.backup(shop.name, folder / "relations")
    another, changed = Node("Order", "OD9", {"summary": "new"}), Node("Order", "OD1", {"summary": "x"})
    await store.merge([
        shop.check(LISA, result="passed"), shop.complaint("k9"), shop.relation("HANDLED_BY", changed, LISA),
        shop.relation("ABOUT", Node("Complaint", "k9"), another),
    ])  # fmt: skip

    for _ in range(2):
        assert 7 == await store.restore(shop.name, folder / "relations")
        assert before == await path(store, shop)
        assert judged == await store.marked_down_agents(shop.name, START, END)
        assert 3 == len(await path(store, other))
        await store.merge([shop.order("OD8"), *(dataclasses.replace(one, active=False) for one in shop.story())])


async def bad_backups(store: RelationStore, shop: Shop, folder: Path) -> None:
    """A backup that is cut short, altered, missing or another shop's is refused, and changes nothing."""
    await store.merge([shop.order()])
    file = folder / "whole"
    await store.backup(shop.name, file)
    (folder / "cut").write_bytes(file.read_bytes()[:-9])
    (folder / "short").write_bytes(b"\n".join(file.read_bytes().splitlines()[:-1]))
    (folder / "altered").write_bytes(file.read_bytes().replace(b"OD1", b"OD2"))

    targets = {"cut": shop.name, "short": shop.name, "altered": shop.name, "none": shop.name, "whole": "another"}
    for name, target in targets.items():
        with pytest.raises(RelationsError, match=name):
            await store.restore(target, folder / name)
    assert ["OD1"] == [step.node.id for step in await path(store, shop)]


async def every_kind(store: RelationStore, shop: Shop, _folder: Path) -> None:
    """Every kind of relation between every pair of labels that the schema allows can be stored."""
    writes: list[Relation] = []
    for kind, pairs in KINDS.items():
        for start, end in sorted(pairs):
            result = {"result": RESULTS[0]} if kind == "TRIGGERED_QUALITY_CHECK" else {}
            writes.append(shop.relation(kind, _node(start), _node(end), fields=result))

    assert tuple(one.write_id for one in writes) == (await store.merge(writes)).stored
    assert len(writes) == await store.delete_customer(shop.name, CUSTOMER)


def _node(label: str) -> Node:
    identity = CUSTOMER if label == "User" else f"{label}-1"
    return Node(label, identity, dict.fromkeys(LABELS[label], "text"))


CHECKS = (
    whole_path, stated_twice, window,
    marked_down, repeated, several_writers, older_write, same_key_in_one_batch, taken_back,
    fields_of_a_node, hostile_names, hostile_values, what_the_schema_refuses, exact_customer, apart, limited,
    backup_and_restore, bad_backups, every_kind,
)  # fmt: skip
