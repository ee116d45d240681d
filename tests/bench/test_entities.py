"""How entities are counted, on rows made up here."""

from __future__ import annotations

import pytest

from bench.evals.data import VARIABLE
from bench.evals.entities import ROWS, Counts, counted, ours, plain, rows


def test_counts_give_precision_recall_and_their_mean() -> None:
    """Two right, one wrong, one missed: two thirds each; nothing found and nothing there is no fault."""
    counts = Counts()
    counts.add({("order_id", 0, 4), ("order_id", 5, 9)}, {("order_id", 0, 4), ("city", 5, 9)})
    counts.add({("person_name", 1, 3)}, {("person_name", 1, 3)})

    assert pytest.approx((200 / 3,) * 3) == (counts.precision, counts.recall, counts.f1)
    assert (100.0, 100.0) == (Counts().precision, Counts().recall)


def test_a_span_that_is_off_by_one_is_wrong() -> None:
    """Spans are exact: the currency stands outside, the hash of an invoice inside."""
    texts = [("refund $160", {("refund_amount", 8, 11)}), ("get invoice #00108", {("invoice_id", 12, 18)})]

    assert 100.0 == counted(texts, ours).f1
    assert 0.0 == counted([("refund $160", {("refund_amount", 7, 11)})], ours).f1
    assert 100.0 == counted(texts, plain).f1


def test_without_the_data_every_row_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row is never left out: it has no value, and its note says where the data was looked for."""
    monkeypatch.setenv(VARIABLE, "/nowhere")

    assert {(name, None) for name in ROWS} == {(row.name, row.value) for row in rows()}
    assert all("/nowhere" in row.note for row in rows())
