"""The shop's seed: customers, orders and parcels with fixed ids, the same at every start.

A customer's id says what it is for: `c-zh-refund` wants a refund and writes Chinese. The Chinese
customers have orders 1001, 1002, …, the English ones OD100001, OD100002, … of the same kinds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

DAY_MS = 86_400_000
REFUND_DAYS = 30

Status = Literal["paid", "shipped", "delivered", "closed"]


@dataclass(frozen=True)
class Customer:
    """A customer; the id is the sender of the conversation."""

    customer_id: str
    name: str
    level: Literal["gold", "standard"]
    phone: str


@dataclass(frozen=True)
class Order:
    """An order; `refundable_days` from the seed time on, negative for one whose period is over."""

    order_id: str
    customer_id: str
    status: Status
    amount_fen: int
    refunded_fen: int = 0
    refundable_days: int = REFUND_DAYS
    item: int = 0
    address: str = ""
    phone: str = ""
    events: tuple[tuple[int, str, str], ...] = field(default=())


# customer, what for: (order number, status, amount, refunded, days, item, parcel)
_ROWS: tuple[tuple[str, tuple[tuple[int, Status, int, int, int, int, int], ...]], ...] = (
    ("refund", ((1, "delivered", 5_000, 0, 30, 0, 3),)),
    ("noorder", ((2, "delivered", 12_900, 0, 30, 1, 3),)),
    ("over", ((3, "delivered", 5_000, 0, 30, 0, 3),)),
    ("unknown", ((4, "delivered", 8_800, 0, 30, 2, 3),)),
    ("notmine", ((5, "delivered", 6_600, 0, 30, 2, 3),)),
    ("address", ((6, "paid", 19_900, 0, 30, 1, 0),)),
    ("shipped", ((7, "shipped", 19_900, 0, 30, 1, 2),)),
    ("logistics", ((8, "shipped", 3_300, 0, 30, 3, 2),)),
    ("two", ((9, "delivered", 9_900, 0, 30, 0, 3), (10, "shipped", 4_500, 0, 30, 3, 1))),
    ("away", ((11, "delivered", 7_700, 0, 30, 2, 3),)),
    ("recall", ((12, "delivered", 5_500, 0, 30, 0, 3),)),
    ("duplicate", ((13, "delivered", 5_000, 0, 30, 0, 3),)),
    ("timeout", ((14, "delivered", 5_000, 0, 30, 0, 3),)),
    ("late", ((15, "delivered", 5_000, 0, -1, 0, 3),)),
    ("done", ((16, "closed", 5_000, 5_000, 30, 0, 3),)),
    ("partly", ((17, "delivered", 20_000, 8_000, 30, 1, 3),)),
    ("human", ((18, "delivered", 5_000, 0, 30, 0, 3),)),
    ("noparcel", ((19, "paid", 3_300, 0, 30, 3, 0),)),
    ("many", ((20, "delivered", 5_000, 0, 30, 0, 3), (21, "delivered", 12_900, 0, 30, 1, 3),
              (22, "shipped", 3_300, 0, 30, 3, 2))),
    ("refused", ((23, "delivered", 5_000, 0, 30, 0, 3),)),
    ("back", ((24, "delivered", 5_500, 0, 30, 1, 3),)),
    ("remembers", ((25, "shipped", 3_300, 0, 30, 3, 2),)),
)  # fmt: skip
_GOLD = frozenset({"refund", "timeout", "many"})
ITEMS = (
    {"sku_id": "SKU-CUP-01", "name": "Cup", "category": "kitchen", "colour": "white", "size": "M"},
    {"sku_id": "SKU-COAT-02", "name": "Coat", "category": "clothing", "colour": "blue", "size": "L"},
    {"sku_id": "SKU-LAMP-03", "name": "Lamp", "category": "home", "colour": "black", "size": "S"},
    {"sku_id": "SKU-BOOK-04", "name": "Book", "category": "books", "colour": "red", "size": "A5"},
)
_PARCEL = (
    (-3 * DAY_MS, "包裹已从仓库发出", "The parcel left the warehouse"),
    (-2 * DAY_MS, "包裹已到达分拨中心", "The parcel reached the sorting centre"),
    (-1 * DAY_MS, "包裹已签收", "The parcel was delivered"),
)
CARRIER = "Example Express"


def order_number(language: str, number: int) -> str:
    """The fixed id of the `number`th order: 1001 or OD100001."""
    return f"{1000 + number}" if language == "zh" else f"OD{100_000 + number}"


def customers() -> list[Customer]:
    """Every customer, both languages."""
    return [
        Customer(f"c-{language}-{kind}", _name(language, index), "gold" if kind in _GOLD else "standard",
                 _phone(language, index))
        for language in ("zh", "en") for index, (kind, _) in enumerate(_ROWS, 1)
    ]  # fmt: skip


def orders() -> list[Order]:
    """Every order, both languages."""
    return [
        Order(order_number(language, number), f"c-{language}-{kind}", status, amount, refunded, days, item,
              _address(language, number), _phone(language, index), _PARCEL[:parcel])
        for language in ("zh", "en") for index, (kind, rows) in enumerate(_ROWS, 1)
        for number, status, amount, refunded, days, item, parcel in rows
    ]  # fmt: skip


def item_of(order: Order) -> dict[str, Any]:
    """The one item of an order, priced so that it makes up the amount."""
    return {**ITEMS[order.item], "price_fen": order.amount_fen, "quantity": 1}


def _name(language: str, index: int) -> str:
    return f"顾客{index:02d}" if language == "zh" else f"Customer {index:02d}"


def _phone(language: str, index: int) -> str:
    return f"138{'1' if language == 'zh' else '2'}00000{index:02d}"


def _address(language: str, number: int) -> str:
    return f"示例市示例区示例路{number}号" if language == "zh" else f"{number} Example Road, Example Town"
