"""References: what "那个蓝色的", "it" or "the second one" stand for, by what the window shows (R-002-08, case F03).

Never a guess: what the customer named is never replaced, two that fit alike are `ambiguous`, and something of which
only another is known is `unknown`. Then the customer is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agents.understanding.fold import Folded, fold
from agents.understanding.pointing import Cues, Vocabulary, cues, remembered, vocabulary
from agents.understanding.port import Found, Reading, Slots, Wish
from agents.understanding.rules import asks
from memory.embedding import similarity, vector
from memory.turns import Role, Said, Thing
from memory.windows import Window

Status = Literal["none", "named", "filled", "ambiguous", "unknown"]
OF_THING = ("order_id", "sku_id", "category", "colour", "size")  # slots that a thing can fill
DESCRIBING = ("category", "colour", "size")
CHOICE = "choice"  # the kind of a numbered choice that stands for no thing; planning knows what it means
NEAR_TURNS = 2  # a message that points with no word at all means what was talked of just now
ALIKE = 0.25  # cosine of message and name from which on part of a name counts as a pointer
_OPEN = {"inform", "out_of_scope"}  # wishes that take over what was asked before ("and the other one?")
_CARRIED = 0.7  # confidence of a wish that was taken over: clear, yet below one that was said
_CITED = 0.5  # a message without a wish means a thing of the past when most of it says so
_MOSTLY = 0.4  # share of a message that points and says nothing else: "and the other one?", "第二个"


@dataclass(slots=True)
class Candidate:
    """A thing in the window: what is known of it, and when it was last spoken of."""

    kind: str
    name: str
    values: dict[str, str]
    role: Role
    turn: int
    place: int
    message_id: str


@dataclass(frozen=True, slots=True)
class Pointed:
    """What the words of a message stand for; `ranked` is best first, `why` one sentence."""

    status: Status
    cues: Cues
    ranked: tuple[Candidate, ...]
    why: str

    @property
    def candidate(self) -> Candidate | None:
        """The thing that is meant, when it is known."""
        return self.ranked[0] if self.status == "filled" else None


@dataclass(frozen=True, slots=True)
class Resolved:
    """A reading with what it points to filled in, or the reason why it could not be."""

    reading: Reading
    status: Status
    why: str
    message_id: str | None = None
    options: tuple[str, ...] = ()


def candidates(window: Window, extra: Iterable[Thing] = ()) -> list[Candidate]:
    """The things of the window, one each, least recent first.

    `extra` are known from elsewhere: they tell values, and of the past (long range) also what nobody named here.
    """
    found: dict[tuple[str, str], Candidate] = {}
    place = 0
    for turn in window.kept:
        for one in turn.said:
            for thing in one.things:
                place += 1
                _seen(found, thing, turn.number, place, one)
    for thing in extra:
        known = found.get((thing.kind, thing.name))
        if known is not None:
            known.values.update(thing.values)
        elif window.kind == "long_range":
            long_ago = window.ahead - 1 - NEAR_TURNS
            found[thing.kind, thing.name] = Candidate(
                thing.kind, thing.name, dict(thing.values), thing.role, long_ago, 0, "")  # fmt: skip
    return sorted(found.values(), key=lambda one: one.place)


def _seen(found: dict[tuple[str, str], Candidate], thing: Thing, turn: int, place: int, one: Said) -> None:
    known = found.get((thing.kind, thing.name))
    if known is None:
        known = found[thing.kind, thing.name] = Candidate(
            thing.kind, thing.name, {}, thing.role, turn, place, one.message_id)  # fmt: skip
    known.values.update(thing.values)
    # What was talked of is not forgotten because it is named by the way; offered again, it is one of several.
    if thing.role != "aside" or known.role == "aside":
        known.role, known.turn, known.place, known.message_id = thing.role, turn, place, one.message_id


def point(
    text: str, window: Window, words: Vocabulary | None = None, values: Mapping[str, str] | None = None,
    extra: Iterable[Thing] = (),
) -> Pointed:  # fmt: skip
    """What `text` points to. `values` are what it says of the thing itself (colour, category, size)."""
    found = cues(text, words or vocabulary())
    told = dict(values or {})
    all_of_them = candidates(window, extra)
    if found.pointer == "ordinal":
        return _counted(found, window, all_of_them)
    pool = [one for one in all_of_them if one.kind != CHOICE]
    if not pool:
        return Pointed("unknown", found, (), "nothing is in sight")
    fitting = [one for one in pool if all(one.values.get(name) == value for name, value in told.items())]
    if not fitting:
        said = ", ".join(f"{name} {value}" for name, value in sorted(told.items()))
        return Pointed("unknown", found, (), f"nothing in sight is known to be {said}")
    ranked = sorted(_of_kind(found, fitting), key=lambda one: _rank(one, text), reverse=True)
    if found.pointer == "other":
        return _the_other(found, ranked)
    if found.pointer == "past":
        return _of_the_past(found, ranked, window, described=bool(told))
    return _decided(found, ranked, text)


def _of_kind(found: Cues, pool: list[Candidate]) -> list[Candidate]:
    """Those of the kind that the words name; without one, of the kind that has what is asked for."""
    for kinds in (found.kinds, (found.trait,) if found.trait else ()):
        agreeing = [one for one in pool if one.kind in kinds and (kinds is found.kinds or one.role != "aside")]
        if agreeing:
            return agreeing
    return pool


def _rank(one: Candidate, text: str) -> tuple[bool, int, int]:
    """Part of its name, then whether it is talked of or only named by the way, then how recently."""
    partly = similarity(vector(text), vector(one.name)) >= ALIKE
    return partly, {"aside": 0, "offered": 1, "subject": 1}[one.role], one.place


def _decided(found: Cues, ranked: Sequence[Candidate], text: str) -> Pointed:
    first, *others = ranked
    rank = _rank(first, text)[:2]
    rivals = [one for one in others if one.message_id == first.message_id and _rank(one, text)[:2] == rank]
    if rivals:
        return Pointed("ambiguous", found, tuple(ranked), f"{len(rivals) + 1} were named together: {first.message_id}")
    return Pointed("filled", found, tuple(ranked), f"{found.pointer}: {first.kind} {first.name} of {first.message_id}")


def _of_the_past(found: Cues, ranked: Sequence[Candidate], window: Window, *, described: bool) -> Pointed:
    """What is talked of now is not what was bought last time, unless it is described."""
    past = [one for one in ranked
            if described or one.turn <= window.earlier or window.ahead - one.turn > NEAR_TURNS]  # fmt: skip
    if len(past) == 1:
        return Pointed("filled", found, tuple(past), f"past: {past[0].kind} {past[0].name}")
    return Pointed("ambiguous" if past else "unknown", found, tuple(past), f"{len(past)} things of the past are known")


def _counted(found: Cues, window: Window, pool: Sequence[Candidate]) -> Pointed:
    """The list that was shown last decides what the number means, and no older one."""
    said = [one for turn in window.kept for one in turn.said if any(thing.number for thing in one.things)]
    if not said:
        return Pointed("unknown", found, (), "no list was shown")
    if found.several:
        return Pointed("ambiguous", found, tuple(pool), "several numbers of the list")
    shown = sorted((thing for thing in said[-1].things if thing.number), key=lambda thing: thing.number or 0)
    at = found.ordinal - 1 if found.ordinal > 0 else len(shown) + found.ordinal
    if not 0 <= at < len(shown):
        return Pointed("unknown", found, (), f"the list has {len(shown)} entries")
    if shown[at].kind == CHOICE:
        return Pointed("none", found, (), "a choice of the flow's own")
    meant = next(one for one in pool if (one.kind, one.name) == (shown[at].kind, shown[at].name))
    return Pointed("filled", found, (meant,), f"number {at + 1} of the list in {said[-1].message_id}")


def _the_other(found: Cues, ranked: Sequence[Candidate]) -> Pointed:
    """Of two things the one that was not spoken of last."""
    rest = [one for one in ranked[1:] if one.kind == ranked[0].kind]
    if len(rest) == 1:
        return Pointed("filled", found, (rest[0], ranked[0]), f"the other than {ranked[0].name}")
    return Pointed("ambiguous" if rest else "unknown", found, tuple(rest), f"{len(rest)} others are in sight")


def resolve(reading: Reading, window: Window, extra: Iterable[Thing] = (), words: Vocabulary | None = None) -> Resolved:
    """The reading of `window.message` with the thing that it points to, where that is certain.

    `extra` are things known from elsewhere (a flow, a profile). Only empty slots of wishes about an order are filled;
    the evidence gets a `reference` with the span of the words that point.
    """
    known = words or vocabulary()
    if any(wish.slots.order_id or wish.slots.sku_id for wish in reading.wishes):
        return Resolved(reading, "named", "the customer named it")
    first = next((wish for wish in reading.wishes if wish.intent in known.bound), None)
    if first is None:
        return Resolved(reading, "none", "no wish is about an order")
    folded, others = fold(window.message), tuple(extra)
    # A wish that describes its thing is looked up by itself; one that does not means the same as the first.
    told = {wish: _told(wish) or _told(first) for wish in reading.wishes if wish.intent in known.bound}
    meant = {wish: _meant(folded.text, window, known, wish, told[wish], others) for wish in told}
    wishes = tuple(
        _filled(wish, meant[wish].candidate, window, known) if wish in meant else wish for wish in reading.wishes
    )
    pointed = meant[first]
    evidence = tuple(_evidence(one, folded, told[wish]) for wish, one in meant.items() if one.candidate)
    done = replace(reading, wishes=wishes, evidence=(*reading.evidence, *dict.fromkeys(evidence)))
    options = tuple(one.name for one in pointed.ranked) if pointed.status == "ambiguous" else ()
    message_id = pointed.candidate.message_id or None if pointed.candidate else None
    return Resolved(done, pointed.status, pointed.why, message_id, options)


def _told(wish: Wish) -> dict[str, str]:
    return {name: value for name in DESCRIBING if (value := getattr(wish.slots, name))}


def _meant(
    text: str, window: Window, words: Vocabulary, wish: Wish, told: Mapping[str, str], extra: Sequence[Thing]
) -> Pointed:
    pointed = point(text, window, words, told, extra)
    if wish.intent in _OPEN and pointed.cues.pointer == "past" and not told and remembered(text, words) <= _CITED:
        return replace(pointed, status="none", why="of the past something else is said than what is meant")
    status, why = _allowed(pointed, wish, window, words, told)
    return replace(pointed, status=status, why=why)


def _evidence(pointed: Pointed, folded: Folded, told: Mapping[str, str]) -> Found:
    """The words that point, or the whole message when it is described or bare."""
    cue = pointed.cues
    span = folded.raw(cue.start, cue.end) if cue.end else folded.raw(0, len(folded.text))
    how = "described" if told and cue.pointer in ("kind", "bare") else cue.pointer
    return Found("reference", f"{pointed.ranked[0].name} ({how})", *span)


def _allowed(
    pointed: Pointed, wish: Wish, window: Window, words: Vocabulary, told: Mapping[str, str]
) -> tuple[Status, str]:
    """No word that points: only a question about the only thing that is talked of, or one that is described."""
    length = pointed.cues.end - pointed.cues.start
    if wish.intent == "out_of_scope" and length < _MOSTLY * len(window.message.strip()):
        return "none", "what is wanted is not known"
    if pointed.cues.pointer not in ("kind", "bare") or (pointed.status == "filled" and told):
        return pointed.status, pointed.why
    if told:
        return pointed.status if wish.intent in words.queries else "none", pointed.why
    near = [one for one in pointed.ranked if window.ahead - one.turn <= NEAR_TURNS]
    if wish.intent in words.queries and asks(window.message) and len(pointed.ranked) == len(near) == 1:
        return pointed.status, pointed.why
    return "none", "no word points to anything"


def _filled(wish: Wish, candidate: Candidate | None, window: Window, words: Vocabulary) -> Wish:
    """Empty slots only; "and the other one?" asks of the other what was asked before, if that was about an order."""
    if candidate is None:
        return wish
    given = {**candidate.values, **({"order_id": candidate.name} if candidate.kind == "order" else {})}
    new = {name: value for name, value in given.items() if name in OF_THING and getattr(wish.slots, name) is None}
    slots: Slots = replace(wish.slots, **new)  # type: ignore[arg-type]
    before = window.kept[-1].intent if window.kept else ""
    if wish.intent in _OPEN:
        asked = before if asks(window.message) and before in words.bound else "inform"
        return Wish(asked, max(wish.confidence, _CARRIED), slots)
    return replace(wish, slots=slots)
