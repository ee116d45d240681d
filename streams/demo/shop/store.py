"""The shop's SQLite: orders, effects by idempotency key, and the rules of its business. One transaction an effect."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from streams.demo.shop import seed

_TABLES = """
create table if not exists customers(customer_id text primary key, name text, level text, phone text);
create table if not exists orders(order_id text primary key, customer_id text, status text, amount_fen integer,
    refunded_fen integer, refundable_until integer, items text, address text, phone text, events text);
create table if not exists effects(seq integer primary key, key text unique, kind text, order_id text,
    customer_id text, amount_fen integer, at integer, hash text, status integer, response text);
"""


class ShopError(Exception):
    """A request that the shop refuses: HTTP status, code, and words."""

    def __init__(self, status: int, code: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.field = status, code, message, field


class Store:
    """All of the shop's data. `path` may be `:memory:`."""

    def __init__(self, path: str, now_ms: Callable[[], int]) -> None:
        self._now = now_ms
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        self._db.row_factory = sqlite3.Row
        self._db.execute("pragma journal_mode=wal")
        self._db.executescript(_TABLES)
        self.add(seed.customers(), seed.orders())

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def order(self, order_id: str, customer_id: str) -> dict[str, Any]:
        """The customer's own order. Raises ShopError order_not_found or not_owner."""
        row = self._db.execute("select * from orders where order_id = ?", (order_id,)).fetchone()
        if row is None:
            raise ShopError(404, "order_not_found", f"there is no order {order_id}")
        if row["customer_id"] != customer_id:
            raise ShopError(403, "not_owner", f"order {order_id} is another customer's")
        return _order(row)

    def orders(self, customer_id: str) -> list[dict[str, Any]]:
        """The customer's orders, newest first."""
        self.customer(customer_id)
        rows = self._db.execute("select * from orders where customer_id = ? order by rowid desc", (customer_id,))
        return [_order(row) for row in rows]

    def customer(self, customer_id: str) -> dict[str, Any]:
        """A customer. Raises ShopError customer_not_found."""
        row = self._db.execute("select * from customers where customer_id = ?", (customer_id,)).fetchone()
        if row is None:
            raise ShopError(404, "customer_not_found", f"there is no customer {customer_id}")
        return dict(row)

    def profile(self, customer_id: str) -> dict[str, Any]:
        """What the shop's CRM knows of a customer, newest first. Raises ShopError customer_not_found."""
        customer, orders = self.customer(customer_id), self.orders(customer_id)
        asked = [_problem(one) for one in reversed(self.ledger(customer_id))]
        return {
            "customer_id": customer_id, "name": customer["name"], "level": customer["level"],
            "addresses": list(dict.fromkeys(one["address"] for one in orders if one["address"])),
            "orders": [{name: one[name] for name in ("order_id", "status", "amount_fen", "items")} for one in orders],
            "problems": asked,
        }  # fmt: skip

    def logistics(self, order_id: str, customer_id: str) -> dict[str, Any]:
        """Where the parcel is; no events before it was shipped."""
        order = self.order(order_id, customer_id)
        row = self._db.execute("select events from orders where order_id = ?", (order_id,)).fetchone()
        events = orjson.loads(row["events"])
        tracking = f"EX{order_id}" if events else ""
        return {"order_id": order_id, "status": order["status"], "carrier": seed.CARRIER if events else "",
                "tracking_no": tracking, "events": events}  # fmt: skip

    def refund(self, key: str, request: dict[str, Any]) -> tuple[int, dict[str, Any], bool]:
        """Refund once for a key: status, answer, and whether it is an earlier answer."""
        return self._once("refund", key, request, 201, self._refund)

    def change_address(self, key: str, request: dict[str, Any]) -> tuple[int, dict[str, Any], bool]:
        """Change the address once for a key: status, answer, and whether it is an earlier answer."""
        return self._once("address", key, request, 200, self._change_address)

    def effect(self, key: str) -> dict[str, Any] | None:
        """What happened under the key, or None."""
        row = self._db.execute("select * from effects where key = ?", (key,)).fetchone()
        return None if row is None else _effect(row)

    def ledger(self, customer_id: str = "") -> list[dict[str, Any]]:
        """All effects, or a customer's, in the order they happened."""
        rows = self._db.execute("select * from effects where ? in ('', customer_id) order by seq", (customer_id,))
        return [_effect(row) for row in rows]

    def add(self, customers: Iterable[seed.Customer], orders: Iterable[seed.Order]) -> None:
        """Rows that are not there yet; another process may serve the same file meanwhile."""
        now = self._now()
        self._db.execute("begin immediate")
        self._db.executemany(
            "insert or ignore into customers values (?, ?, ?, ?)",
            [(one.customer_id, one.name, one.level, one.phone) for one in customers],
        )
        self._db.executemany(
            "insert or ignore into orders values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(one.order_id, one.customer_id, one.status, one.amount_fen, one.refunded_fen,
              now + one.refundable_days * seed.DAY_MS, orjson.dumps([seed.item_of(one)]), one.address, one.phone,
              orjson.dumps([{"at": now + at, "text_zh": zh, "text_en": en} for at, zh, en in one.events]))
             for one in orders],
        )  # fmt: skip
        self._db.execute("commit")

    def _once(
        self, kind: str, key: str, request: dict[str, Any], status: int,
        act: Callable[[str, dict[str, Any]], dict[str, Any]],
    ) -> tuple[int, dict[str, Any], bool]:  # fmt: skip
        """Look up and act in one write transaction, so that two callers with one key can't both act (A15)."""
        digest = hashlib.sha256(orjson.dumps([kind, request], option=orjson.OPT_SORT_KEYS)).hexdigest()
        self._db.execute("begin immediate")
        try:
            row = self._db.execute("select * from effects where key = ?", (key,)).fetchone()
            if row is not None:
                if row["hash"] != digest:
                    raise ShopError(409, "key_reused", f"key {key} was used for another request")
                return row["status"], orjson.loads(row["response"]), True
            answer = act(key, request)
            self._db.execute(
                "insert into effects(key, kind, order_id, customer_id, amount_fen, at, hash, status, response) "
                "values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (key, kind, request["order_id"], request["customer_id"], request.get("amount_fen"), self._now(),
                 digest, status, orjson.dumps(answer)),
            )  # fmt: skip
            self._db.execute("commit")
        finally:
            if self._db.in_transaction:
                self._db.execute("rollback")
        return status, answer, False

    def _refund(self, key: str, request: dict[str, Any]) -> dict[str, Any]:
        order = self.order(request["order_id"], request["customer_id"])
        left = order["amount_fen"] - order["refunded_fen"]
        if left == 0:
            raise ShopError(409, "already_refunded", f"order {order['order_id']} was refunded in full")
        if self._now() > order["refundable_until"]:
            raise ShopError(409, "out_of_period", f"the refund period of order {order['order_id']} is over")
        if request["amount_fen"] > left:
            raise ShopError(422, "over_amount", f"at most {left} fen can be refunded", "amount_fen")
        after = order["refunded_fen"] + request["amount_fen"]
        self._db.execute("update orders set refunded_fen = ? where order_id = ?", (after, order["order_id"]))
        return {"refund_id": f"RF-{hashlib.sha256(key.encode()).hexdigest()[:12]}", "order_id": order["order_id"],
                "amount_fen": request["amount_fen"], "status": "accepted",
                "before": {"refunded_fen": order["refunded_fen"]}, "after": {"refunded_fen": after}}  # fmt: skip

    def _change_address(self, _key: str, request: dict[str, Any]) -> dict[str, Any]:
        order = self.order(request["order_id"], request["customer_id"])
        if order["status"] != "paid":
            raise ShopError(409, "already_shipped", f"order {order['order_id']} is {order['status']}")
        phone = request.get("phone") or order["phone"]
        self._db.execute("update orders set address = ?, phone = ? where order_id = ?",
                         (request["address"], phone, order["order_id"]))  # fmt: skip
        return {"order_id": order["order_id"], "status": "changed",
                "before": {"address": order["address"], "phone": order["phone"]},
                "after": {"address": request["address"], "phone": phone}}  # fmt: skip


def _order(row: sqlite3.Row) -> dict[str, Any]:
    order = {name: row[name] for name in row.keys() if name != "events"}  # noqa: SIM118 (a Row iterates its values)
    order["items"] = orjson.loads(order["items"])
    return order


def _problem(effect: dict[str, Any]) -> dict[str, Any]:
    """Something that was asked of the shop, and what came of it."""
    money = f" {effect['amount_fen'] / 100:.2f}" if effect["amount_fen"] is not None else ""
    return {"problem": f"{effect['kind']}{money}", "order_id": effect["order_id"],
            "solution": effect["response"]["status"], "at": effect["at"]}  # fmt: skip


def _effect(row: sqlite3.Row) -> dict[str, Any]:
    return {"key": row["key"], "kind": row["kind"], "order_id": row["order_id"], "customer_id": row["customer_id"],
            "amount_fen": row["amount_fen"], "at": row["at"], "status": row["status"],
            "response": orjson.loads(row["response"])}  # fmt: skip
