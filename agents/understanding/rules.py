"""Understanding by rules, and by a classifier beside them where one is given: no state, no clock, no I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agents.understanding import denials, forged, intents, slots, tone
from agents.understanding.clauses import Layout, layout
from agents.understanding.combine import Classifier, combined
from agents.understanding.fold import Folded, fold
from agents.understanding.intents import COURTESIES, KIN, ORDERED, QUERIES, TASKS, Mention
from agents.understanding.lexicon import Lexicon, View, lexicon
from agents.understanding.money import Hit
from agents.understanding.orders import only_a_number
from agents.understanding.pointing import remembered, vocabulary
from agents.understanding.port import Context, Found, Reading, Slots, Wish
from agents.understanding.times import placed

_SLOT_FIELDS = frozenset(Slots.__dataclass_fields__)
_ANSWERS = _SLOT_FIELDS | {"choice", "reason", "time_reference"}
_BARE, _LOOSE, _UNKNOWN = 0.85, 0.65, 0.3  # inform: all of the text, part of it; out_of_scope: no word was known
_BRIEF = 16  # characters of a reason that is an answer; a longer one may hold a wish
WISHES_MAX = 20  # of one message: 20,000 characters hold 4,000 order numbers
_ASKS = re.compile(r"[?？]\s*$|(?:吗|么|呢)[。!\s]*$")
_YIELDS = 0.7  # a task read below this gives way to the answer that the flow asked for


def asks(text: str) -> bool:
    """Whether the text ends as a question."""
    return _ASKS.search(text) is not None


@dataclass(slots=True)
class _Draft:
    """A wish in the making."""

    intent: str
    confidence: float
    segment: int
    start: int
    values: dict[str, Any] = field(default_factory=dict)
    denies: str | None = None  # see Mention

    def take(self, hit: Hit, *, replacing: bool = False) -> bool:
        """Fill the slot; False when it is filled with something else."""
        value = int(hit[1]) if hit[0] == "amount" else hit[1]
        if replacing:
            self.values[hit[0]] = value
        return bool(self.values.setdefault(hit[0], value) == value)

    def wish(self) -> Wish:
        return Wish(self.intent, self.confidence, Slots(**self.values))


class RuleUnderstanding:
    """Reads Chinese and English by lexicon and patterns; abstains (out_of_scope) where they say nothing."""

    def __init__(self, words: Lexicon | None = None, model: Classifier | None = None) -> None:
        self._words = words or lexicon()
        self._model = model

    def read(self, text: str, context: Context) -> Reading:
        """See Understanding. Confidence is 0 for a text with nothing in it to read."""
        folded, words = fold(text), self._words
        text, view = folded.text, View(folded.text)
        private = slots.sensitive(text)
        marks = forged.forged(view, words)
        hits = denials.kept(text, forged.said(slots.slots(view, context, words, private), marks))
        cut = layout(text, [hit[2:] for hit in hits if hit[0] in ("address", "amount", "reason", "phone")])
        spoken = intents.mentions(view, cut, context, words)
        # A guess at words that only name a thing of the past says nothing of what is wanted with it.
        if self._model is not None and (spoken or remembered(text, vocabulary()) < 1):
            spoken = combined(spoken, text, cut, self._model, context, bare=_is_bare(text, hits))
        order_named = context.flow is None and any(hit[0] == "order_id" for hit in hits)
        spoken = forged.meant(intents.wanted(spoken, text, cut, order_named=order_named), marks, len(cut.segments) - 1)
        hits += self._awaited_reason(text, spoken, hits, context) if not marks else []
        drafts = self._drafts(text, spoken, hits, cut, context)
        feeling, felt = tone.sentiment(view, words)
        haste, hasty = tone.urgency(view, words)
        hits += [(kind, value, *match.span()) for kind, value, match in
                 (("sentiment", feeling, felt), ("urgency", haste, hasty)) if match]  # fmt: skip
        hits += marks
        returning = words.return_words.search(view)
        if returning:
            hits.append(("return_words", returning[0], *returning.span()))
        hits += [("intent", mention.intent, mention.start, mention.end) for mention in spoken]
        # Reversed, so that of several the first counts.
        named = {hit[0]: hit[1] for hit in reversed(hits)}
        return Reading(
            wishes=tuple(draft.wish() for draft in drafts), evidence=_found(hits, folded),
            language=tone.language(text, context), sentiment=feeling, urgency=haste,
            time_reference=placed(named.get("time_reference"), context), reason=_reason(named, drafts),
            return_words=returning is not None,
        )  # fmt: skip

    def _awaited_reason(self, text: str, spoken: Sequence[Mention], hits: Sequence[Hit], context: Context) -> list[Hit]:
        """Asked for a reason, the customer may say it in any words."""
        if context.expects != "reason" or any(hit[0] in ("reason", "choice") for hit in hits):
            return []
        plain = text.strip()
        if len(plain) < 2 or only_a_number(plain) or any(mention.confidence >= _YIELDS for mention in spoken):
            return []
        if not any(char.isalnum() for char in plain) or asks(plain):
            return []  # who asks back has given no reason
        start, plain = text.index(plain), plain[: slots.REASON_CHARS].rstrip()
        return [("reason", plain, start, start + len(plain))]

    def _drafts(self, text: str, spoken: Sequence[Mention], hits: Sequence[Hit], cut: Layout,
                context: Context) -> list[_Draft]:  # fmt: skip
        awaited = _awaited(spoken, hits, context)
        plain = awaited or not spoken
        chosen = [self._plain(text, hits, awaited=awaited)] if plain else _chosen(spoken, context)
        _attach(chosen, [hit for hit in hits if hit[0] in _SLOT_FIELDS], cut)
        return [draft for draft in chosen if _stops(draft, chosen, context)] or [self._plain(text, (), awaited=False)]

    def _plain(self, text: str, hits: Sequence[Hit], *, awaited: bool) -> _Draft:
        """A bare answer, or nothing that the rules know."""
        if awaited:
            return _Draft("inform", self._words.scoring.expected, 0, 0)
        if any(hit[0] in _ANSWERS for hit in hits):
            return _Draft("inform", _BARE if _is_bare(text, hits) else _LOOSE, 0, 0)
        return _Draft("out_of_scope", _UNKNOWN if any(map(str.isalnum, text)) else 0.0, 0, 0)


def _is_bare(text: str, hits: Sequence[Hit]) -> bool:
    """Whether the text is slots and little else: an answer, whatever the words in it look like."""
    said = sum(hit[3] - hit[2] for hit in hits if hit[0] in _ANSWERS and (hit[0] != "reason" or len(hit[1]) <= _BRIEF))
    return only_a_number(text) or (said > 0 and said >= 0.6 * len(text.strip()))


def _awaited(spoken: Sequence[Mention], hits: Sequence[Hit], context: Context) -> bool:
    """The slot that the flow asked for is there, and no other wish is clear beside it."""
    if context.expects in (None, "confirm") or not any(hit[0] == context.expects for hit in hits):
        return False
    return all(
        mention.intent in COURTESIES
        or mention.intent == "confirm"
        or mention.confidence < _YIELDS
        or _same_flow(mention.intent, context.flow)
        for mention in spoken
    )


def _same_flow(intent: str, flow: str | None) -> bool:
    return flow is not None and (KIN.get(intent, intent) in flow or ("address" in intent and "address" in flow))


def _chosen(spoken: Sequence[Mention], context: Context) -> list[_Draft]:
    """One draft an intent, in order: a person first of all (X9), answers behind tasks unless asked for."""
    first: dict[str, _Draft] = {}
    for mention in spoken:
        known = first.get(mention.intent)
        if known is None:
            first[mention.intent] = _Draft(
                mention.intent, mention.confidence, mention.segment, mention.start, denies=mention.denies
            )
        else:
            known.confidence = max(known.confidence, mention.confidence)
            known.denies = known.denies and mention.denies
    # "I want to return it and get my money back" is one wish, told by its first words.
    drafts = [draft for draft in first.values() if not _told_before(draft, first)]
    # "Yes, refund it" under a confirmation is the yes, and no second refund.
    if context.expects == "confirm" and "confirm" in first:
        drafts = [draft for draft in drafts if not _same_flow(draft.intent, context.flow)]
    if any(draft.intent not in COURTESIES for draft in drafts):
        drafts = [draft for draft in drafts if draft.intent not in COURTESIES]
    return sorted(drafts, key=lambda draft: _rank(draft.intent, context))


def _stops(draft: _Draft, drafts: Sequence[_Draft], context: Context) -> bool:
    """False for a stop of something that is not under way, beside a wish: "no refund, an exchange" is an exchange.

    Who denies a wish that nobody has in hand does not stop another one.
    """
    if draft.intent != "stop":
        return True
    if draft.denies is not None and context.flow is not None:
        return _same_flow(draft.denies, context.flow)
    return context.flow is not None or not any(one.intent in TASKS - {"stop"} for one in drafts)


def _told_before(draft: _Draft, first: dict[str, _Draft]) -> bool:
    twin = next((one for one in KIN if one != "hurry_up" and KIN[one] == draft.intent), KIN.get(draft.intent))
    return twin in first and twin is not None and (first[twin].start, twin) < (draft.start, draft.intent)


def _rank(intent: str, context: Context) -> int:
    if intent == "human":
        return 0
    asked = context.expects == "confirm" and intent in ("confirm", "deny")
    return 1 if intent in TASKS or asked else 2


def _attach(drafts: list[_Draft], hits: Sequence[Hit], cut: Layout) -> None:
    """Each slot goes to the wish of its segment, else to the wish before it, else to the one behind."""
    holders = [draft for draft in drafts if draft.intent in TASKS - {"human", "stop"}] or drafts[:1]
    places = [draft for draft in drafts if draft.intent in ("change_address", "change_phone")]
    in_order = sorted(holders, key=lambda draft: draft.start)
    denied = [draft.start for draft in drafts if draft.intent == "deny"]
    for hit in hits:
        segment = cut.segment_at(hit[2])
        here = [draft for draft in in_order if draft.segment == segment]
        if not here and hit[0] == "order_id":  # "not 1001, refund 1002": a stop keeps the order that it names
            here = [draft for draft in drafts if draft.intent == "stop" and draft.segment == segment]
        if hit[0] in ("address", "phone"):
            here = places or here
        before = [draft for draft in in_order if draft.start <= hit[2]]
        holder = (here or before[-1:] or in_order[:1])[0]
        corrected = any(holder.start < place <= hit[2] for place in denied)  # "退1001，不对，是1002"
        if not holder.take(hit, replacing=corrected) and hit[0] == "order_id" and holder.intent in ORDERED:
            known = any(draft.intent == holder.intent and draft.values.get("order_id") == hit[1] for draft in drafts)
            if not known and len(drafts) < WISHES_MAX:
                drafts.append(replace(holder, values={"order_id": hit[1]}, start=hit[2]))
    _share_order(drafts)


def _share_order(drafts: list[_Draft]) -> None:
    """The only order of a message is meant by all its wishes ("退1001，顺便查下物流")."""
    known = {draft.values["order_id"] for draft in drafts if "order_id" in draft.values}
    if len(known) == 1:
        for draft in drafts:
            if draft.intent in ORDERED:
                draft.values.setdefault("order_id", next(iter(known)))


def _reason(named: dict[str, str], drafts: Sequence[_Draft]) -> str | None:
    """A reason counts where something is asked back or answered, not where the customer asks for a parcel."""
    silent = {"change_address", "change_phone", "human", *(QUERIES - {"coupon_price"}), *COURTESIES}
    return None if all(draft.intent in silent for draft in drafts) else named.get("reason")


def _found(hits: Sequence[Hit], folded: Folded) -> tuple[Found, ...]:
    return tuple(Found(name, value, *folded.raw(start, end)) for name, value, start, end in hits if start < end)
