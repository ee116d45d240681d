"""Entities by exact span: Bitext's test split, and what stands of the shop's own records in the tau tasks' texts.

Nothing is trained: every figure is zero-shot. Bitext's train and dev splits were read while the patterns were written.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from agents.understanding.port import Found
from agents.understanding.slots import entities
from bench.evals.data import NoDataError, data_file, json_of, read, reader
from bench.report import Result, missing, more_is_better

Entity = tuple[str, int, int]  # field, start, end
_TAU = ("order_id", "email", "zip_code", "person_name")
_NAMES = {"order_id": "order_ids", "email": "emails", "zip_code": "zips", "person_name": "names"}
ROWS = {"slots_f1": "%", "slots_f1_dev": "%"} | {
    f"{_NAMES[field]}_{kind}": "%" for field in _TAU for kind in ("recall", "precision")
}
_FIELDS = {
    "order_id": "order_id", "person_name": "person_name", "invoice_id": "invoice_id", "account_type": "account_type",
    "city": "delivery_city", "country": "delivery_country", "amount": "refund_amount",
    "foreign_amount": "refund_amount",
}  # fmt: skip
_FIGURE = re.compile(r"[0-9][0-9.,]*")
# What one writes in a minute for these seven types.
_PLAIN = {
    "order_id": r"(?:order|purchase)\s*(\d{6,})", "invoice_id": r"(#\d{5})", "refund_amount": r"\$(\d+)|(\d+) dollars",
    "person_name": r"from ((?:Mr\.|Ms\.|[A-Z]\w+) [A-Z]\w+)", "account_type": r"(\w+) (?:account|profile)",
    "delivery_city": r"(?:ship|deliver|deliveries|shipments|shipping|order) (?:to|from) ([A-Z]\w+)",
    "delivery_country": r"(?!)",
}  # fmt: skip


@dataclass(slots=True)
class Counts:
    """True and false finds, and misses."""

    right: int = 0
    wrong: int = 0
    missed: int = 0

    def add(self, gold: set[Any], found: set[Any]) -> None:
        """Count one text."""
        self.right += len(gold & found)
        self.wrong += len(found - gold)
        self.missed += len(gold - found)

    @property
    def precision(self) -> float:
        """Share of the finds that are right, in percent; 100 without any."""
        return 100 * self.right / (self.right + self.wrong) if self.right + self.wrong else 100.0

    @property
    def recall(self) -> float:
        """Share of the gold that is found, in percent; 100 without any."""
        return 100 * self.right / (self.right + self.missed) if self.right + self.missed else 100.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, in percent."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def bitext(split: str) -> list[tuple[str, set[Entity]]]:
    """The texts of a split with their entity, if any. Raises NoDataError."""
    with data_file("bitext-intents", f"{split}.csv").open(encoding="utf-8", newline="") as file:
        return [
            (row["utterance"], {(row["entity_type"], int(row["start_offset"]), int(row["end_offset"]))}
             if row["entity_type"] else set())
            for row in csv.DictReader(file)
        ]  # fmt: skip


def ours(text: str) -> set[Entity]:
    """The entities of a text as the product reads it, in Bitext's types."""
    return {_entity(text, found) for found in read(reader(), text).evidence if found.field in _FIELDS}


def _entity(text: str, found: Found) -> Entity:
    kind = _FIELDS[found.field]
    figure = _FIGURE.search(text, found.start, found.end) if kind == "refund_amount" else None
    return (kind, *(figure.span() if figure else (found.start, found.end)))  # Bitext leaves the currency out


def plain(text: str) -> set[Entity]:
    """The baseline: one regular expression a type and nothing else."""
    return {
        (kind, *match.span(match.lastindex or 0))
        for kind, pattern in _PLAIN.items()
        for match in re.finditer(pattern, text, re.IGNORECASE if kind == "order_id" else 0)
    }


def counted(rows: Iterable[tuple[str, set[Entity]]], finder: Callable[[str], set[Entity]]) -> Counts:
    """The finder's counts over texts with their gold."""
    counts = Counts()
    for text, gold in rows:
        counts.add(gold, finder(text))
    return counts


def tau_texts() -> Iterator[str]:
    """The texts of tau1's train tasks and of all tau2 tasks: briefs for a customer, with their records in them."""
    for task in json_of("tau2-retail", "tau1_tasks_train.json"):
        yield task["instruction"]
    for task in json_of("tau2-retail", "tasks.json"):
        yield "\n".join(filter(None, task["user_scenario"]["instructions"].values()))


def records() -> dict[str, set[str]]:
    """What the shop has on record, by field: only this counts as gold where it stands in a text.

    Of emails every one that stands there counts: the briefs hold some that their customers misremember.
    """
    shop = json_of("tau2-retail", "db.json")
    users, orders = shop["users"].values(), shop["orders"].values()
    places = [one["address"] for one in (*users, *orders)]
    return {
        "order_id": {order["order_id"].lstrip("#") for order in orders},
        "zip_code": {place["zip"] for place in places},
        "person_name": {f"{user['name']['first_name']} {user['name']['last_name']}" for user in users},
    }


def _standing(text: str, known: set[str] | None, shape: str) -> set[str]:
    return {match[0] for match in re.finditer(shape, text) if known is None or match[0] in known}


def tau_counts() -> dict[str, Counts]:
    """Counts by field over tau_texts: distinct values of each text.

    By the finder of entities alone: the guard against forged text cuts a brief at its first Python dictionary.
    """
    known, counts = records(), {field: Counts() for field in _TAU}
    shapes = {
        "order_id": r"(?<!\w)W\d{7}(?!\w)", "email": r"[\w.]+@[\w.]+\w", "zip_code": r"(?<!\w)\d{5}(?!\w)",
        "person_name": r"[A-Z][a-z]+ [A-Z][a-z]+",
    }  # fmt: skip
    for text in tau_texts():
        found = entities(text)
        for field in _TAU:
            counts[field].add(_standing(text, known.get(field), shapes[field]),
                              {hit.value for hit in found if hit.field == field})  # fmt: skip
    return counts


def _bitext_row(name: str, split: str) -> Result:
    texts = bitext(split)
    counts, base = counted(texts, ours), counted(texts, plain)
    gold = Counter(kind for _, entities in texts for kind, _, _ in entities)
    note = (f"Bitext {split}, exact span and type, zero-shot; precision {counts.precision:.2f}, recall "
            f"{counts.recall:.2f}; {json.dumps(gold)}; baseline: one regular expression a type")  # fmt: skip
    return more_is_better(name, counts.f1, "%", base.f1, sum(gold.values()), note)


def rows() -> list[Result]:
    """The rows of ROWS; null with the reason without the data."""
    try:
        results = [_bitext_row("slots_f1", "test"), _bitext_row("slots_f1_dev", "dev")]
        what = "tau1 train and tau2: the shop's records that stand in the text; all of it was read while developing"
        for field, counts in tau_counts().items():
            n = counts.right + counts.missed
            for kind, share in (("recall", counts.recall), ("precision", counts.precision)):
                results.append(Result(f"{_NAMES[field]}_{kind}", round(share, 2), "%", n=n, note=what))
    except NoDataError as error:
        return [missing(name, unit, str(error)) for name, unit in ROWS.items()]
    return results
