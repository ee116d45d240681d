"""What came of a scripted conversation, from topics and the shop's ledger, and how it differs from the script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.tools import PROFILE
from streams.scenario.format import Expect, Outcome, Scenario

# the topics that an observation is made of
TOPICS = (
    "messages.normalized", "plans", "tools.results", "actions.outbound", "delivery.states", "human.requests",
    "feedback.health", "memory.writes",
)  # fmt: skip

RANK = {"failed": -1, "queued": 0, "sent": 1, "delivered": 2, "displayed": 3, "read": 4}

Row = Mapping[str, Any]


@dataclass
class Observation:
    """All that is known of one conversation: its records by topic (decoded, in order) and its effects in the shop."""

    records: dict[str, list[Row]] = field(default_factory=dict)
    effects: list[Row] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)

    def of(self, topic: str) -> list[Row]:
        """The conversation's records of a topic, oldest first."""
        return self.records.get(topic, [])

    @property
    def templates(self) -> list[str]:
        """Templates said to the customer, once a message: a resend is no new message."""
        first = {row["message_id"]: row["template_id"] for row in reversed(self.of("actions.outbound"))}
        return [first[key] for key in dict.fromkeys(row["message_id"] for row in self.of("actions.outbound"))]

    @property
    def intents(self) -> list[str]:
        """Intents as understood."""
        return [row["intent"] for row in self.of("messages.normalized")]

    @property
    def deliveries(self) -> dict[str, str]:
        """Message id to the last state that we hold to be true."""
        return {row["message_id"]: row["state"] for row in self.of("delivery.states")}

    @property
    def scores(self) -> list[int]:
        """Health scores, the last revision of each window."""
        return list({row["window_start"]: row["score"] for row in self.of("feedback.health")}.values())

    @property
    def plans(self) -> dict[str, tuple[str, str]]:
        """Plan id to flow and last status, oldest plan first."""
        return {row["plan_id"]: (row["flow"], row["status"]) for row in self.of("plans")}

    @property
    def remembered(self) -> list[str]:
        """`kind/subject` of each write that says what is known, oldest first."""
        return [_subject(row["key"]) for row in self.of("memory.writes") if row["value_after"] is not None]

    @property
    def recalled(self) -> set[str]:
        """`kind/subject` of what the store of facts gave back when a session started, by its write in the register.

        The first session of a new customer gets nothing, so what is here was applied by a keeper and found again.
        """
        writes = {row["write_id"] for row in self.of("memory.writes")}
        facts = [fact for row in self.of("tools.results") if row["tool"] == PROFILE
                 for fact in row["data"].get("facts", ())]  # fmt: skip
        return {fact["key"] for fact in facts if fact["write_id"] in writes}

    def done(self, kind: str) -> list[Row]:
        """The shop's effects of a kind (`refund`, `address`)."""
        return [row for row in self.effects if row["kind"] == kind]

    @property
    def outcome(self) -> Outcome:
        """The one word for it: a person beats what was done in the shop, which beats how the plans ended."""
        statuses = {status for _, status in self.plans.values()}
        verdicts: tuple[tuple[Outcome, bool], ...] = (
            ("handed_over", any(row["kind"] == "handover" for row in self.of("human.requests"))),
            ("refunded", bool(self.done("refund"))),
            ("address_changed", bool(self.done("address"))),
            ("cancelled", "cancelled" in statuses),
            ("abandoned", bool({"open", "suspended"} & statuses)),
            ("explained", "failed" in statuses),
            ("answered", bool(self.templates)),
        )
        return next((word for word, holds in verdicts if holds), "open")


def _subject(key: str) -> str:
    """`preference/carrier` of `shop/channel/sender/preference/carrier`."""
    return "/".join(key.rsplit("/", 2)[-2:])


def _subsequence(wanted: Sequence[str], found: Sequence[str]) -> str | None:
    """The first wanted item that is not found in its turn."""
    rest = iter(found)
    return next((item for item in wanted if item not in rest), None)


def _exactly(what: str, wanted: Counter[Any], found: Counter[Any]) -> Iterator[str]:
    for item in wanted.keys() | found.keys():
        if wanted[item] != found[item]:
            yield f"{what} {item}: {found[item]} times, expected {wanted[item]}"


def _effects(expect: Expect, seen: Observation) -> Iterator[str]:
    refunds = Counter((row["order_id"], row["amount_fen"]) for row in seen.done("refund"))
    yield from _exactly("refund", Counter((item.order_id, item.amount_fen) for item in expect.refunds), refunds)
    moved = Counter(row["order_id"] for row in seen.done("address"))
    yield from _exactly("address change of", Counter(item.order_id for item in expect.address_changes), moved)


def _words(expect: Expect, seen: Observation) -> Iterator[str]:
    missing = _subsequence(expect.says, seen.templates)
    if missing:
        yield f"{missing} not said in its turn; said: {', '.join(seen.templates) or 'nothing'}"
    for template in expect.never_says:
        if template in seen.templates:
            yield f"{template} was said"
    if len(seen.templates) > expect.max_messages:
        yield f"{len(seen.templates)} messages, at most {expect.max_messages}"
    intent = _subsequence(expect.intents, seen.intents)
    if intent:
        yield f"intent {intent} not understood in its turn; understood: {', '.join(seen.intents) or 'nothing'}"


def _memory(expect: Expect, seen: Observation) -> Iterator[str]:
    for key in expect.remembers:
        if key not in seen.remembered:
            yield f"{key} not remembered; remembered: {', '.join(seen.remembered) or 'nothing'}"
    for key in expect.recalls:
        if key not in seen.recalled:
            yield f"{key} not recalled in a later session; recalled: {', '.join(sorted(seen.recalled)) or 'nothing'}"


def differences(scenario: Scenario, seen: Observation) -> list[str]:
    """How it differs from what the script expects; empty when it came out right."""
    expect = scenario.expect
    found = [*_effects(expect, seen), *_words(expect, seen), *_memory(expect, seen)]
    if seen.outcome != expect.outcome:
        found.insert(0, f"outcome {seen.outcome}, expected {expect.outcome}")
    if expect.delivery:
        low = [key for key, state in seen.deliveries.items() if RANK[state] < RANK[expect.delivery]]
        if low or (seen.templates and not seen.deliveries):
            found.append(f"{len(low)} of {len(seen.deliveries)} messages did not reach {expect.delivery}")
    if expect.health and seen.scores:
        low_score, high_score = expect.health
        found.extend(f"health {score} outside {low_score}..{high_score}"
                     for score in seen.scores if not low_score <= score <= high_score)  # fmt: skip
    return found
