"""reference_accuracy: what the product's resolver makes of CrossWOZ's references, by how far back it may look.

The baseline takes the entity that was named last within three messages. Windows and resolver are the product's; what
the resolver found for earlier messages stays known, as a conversation's state would hold it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from agents.understanding.pointing import Vocabulary, cues
from agents.understanding.references import point
from bench.evals.crosswoz import Catalogue, Item, Line, dialogues, words
from bench.evals.data import NoDataError
from bench.report import Result, missing
from memory.tokens import count
from memory.turns import Said, Thing, Turn
from memory.windows import Window, choose

ROWS = {"reference_accuracy": "%", **{f"reference_accuracy_{back}": "%" for back in (1, 2, 3, 4)},
        "reference_accuracy_words": "%"}  # fmt: skip
WHOLE = 1_000
BASELINE_MESSAGES = 3


Choose = Callable[[Sequence[Turn], str, bool], Window]


@dataclass(frozen=True)
class Outcome:
    """A customer's message with its window; for an item, whether we and the baseline were right, or we asked back."""

    item: Item | None
    window: Window
    history: int
    right: bool = False
    baseline: bool = False
    answered: bool = False


def rows(split: str = "test") -> list[Result]:
    """Accuracy over all and with 1 to 4 turns to look back at; each against the baseline on the same messages."""
    try:
        lines = list(dialogues(split))
    except NoDataError as error:
        return [missing(name, unit, str(error)) for name, unit in ROWS.items()]
    results = []
    for back in (WHOLE, 1, 2, 3, 4):
        start = time.perf_counter()
        played = [one for dialogue in lines for one in play(dialogue, words(), back=back)]
        spent = 1_000 * (time.perf_counter() - start) / len(played)
        outcomes = [one for one in played if one.item is not None]
        name = "reference_accuracy" if back == WHOLE else f"reference_accuracy_{back}"
        results.append(_result(name, outcomes, f"CrossWOZ {split}, {_looking(back)}", spent))
    return [*results, _by_words(lines, split)]


def _by_words(lines: Sequence[Sequence[Line]], split: str) -> Result:
    """The same when the agent's messages do not say what they show: names are found by a catalogue, roles by words."""
    catalogue = Catalogue()
    found = [[replace(line, said=catalogue.named(line.said)) for line in dialogue] for dialogue in lines]
    start = time.perf_counter()
    played = [one for dialogue in found for one in play(dialogue, words())]
    spent = 1_000 * (time.perf_counter() - start) / len(played)
    outcomes = [one for one in played if one.item is not None]
    return _result("reference_accuracy_words", outcomes, f"CrossWOZ {split}, things found by names in the text", spent)


def _looking(back: int) -> str:
    return "all turns to look back at" if back == WHOLE else f"{back} turns to look back at"


def _result(name: str, outcomes: Sequence[Outcome], what: str, spent: float) -> Result:
    ours = share(outcomes)
    base = 100 * sum(one.baseline for one in outcomes) / len(outcomes)
    by_back = []
    for back in sorted({one.item.back for one in outcomes if one.item}):
        some = [one for one in outcomes if one.item and one.item.back == back]
        of_base = 100 * sum(one.baseline for one in some) / len(some)
        by_back.append(f"{back}: {share(some):.1f} to {of_base:.1f} of {len(some)}")
    asked = sum(not one.answered for one in outcomes)
    note = (f"{what}; baseline: named last within {BASELINE_MESSAGES} messages; by turns since it was named "
            f"{', '.join(by_back)}; {asked} asked back; {spent:.2f} ms a message")  # fmt: skip
    return Result(name, round(ours, 2), "%", round(base, 2), round(ours / base, 3), len(outcomes), note)


def share(outcomes: Sequence[Outcome]) -> float:
    """Per cent of the items that were resolved right."""
    return 100 * sum(one.right for one in outcomes) / len(outcomes)


def by_product(turns: Sequence[Turn], text: str, new_intent: bool) -> Window:  # noqa: FBT001 (one way to choose)
    """The product's own choice."""
    return choose(turns, text, new_intent=new_intent)


def play(lines: Sequence[Line], known: Vocabulary, chosen: Choose = by_product, back: int = WHOLE) -> Iterator[Outcome]:
    """Go through a dialogue as the product would, and give the outcome of each message of the customer."""
    turns: list[Turn] = []
    for at, line in enumerate(lines):
        said = line.said
        if said.who == "agent":
            if turns:
                turns[-1] = replace(turns[-1], said=(*turns[-1].said, said))
            continue
        found = cues(said.text, known)
        window = chosen(turns[-back:], said.text, bool(found.wanted) and not found.kinds)
        outcome = Outcome(line.item, window, sum(count(text_of(one)) + 1 for turn in turns for one in turn.said))
        if line.item is not None:
            pointed = point(said.text, window, known)
            last = next((name for turn, name in _before(lines, at) if at // 2 - turn <= back), None)
            meant = pointed.candidate
            right = meant is not None and meant.name == line.item.name
            outcome = replace(outcome, right=right, baseline=last == line.item.name, answered=meant is not None)
            if meant is not None:
                said = replace(said, things=(*said.things, Thing(meant.kind, meant.name)))
        yield outcome
        turns.append(Turn(at // 2, (said,)))


def _before(lines: Sequence[Line], at: int) -> Iterator[tuple[int, str]]:
    """Turn and name of all that was named in the messages before, the last first."""
    for index in range(at - 1, max(-1, at - 1 - BASELINE_MESSAGES), -1):
        yield from ((index // 2, name) for name in reversed(lines[index].names))


def text_of(one: Said) -> str:
    """A message as a model sees it."""
    return f"{one.who}: {one.text}"
