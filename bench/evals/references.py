"""reference_accuracy: what the product's resolver makes of CrossWOZ's references, by how far back it may look.

The baseline takes the entity that was named last within three messages. Windows and resolver are the product's; what
the resolver found for earlier messages stays known, as a conversation's state would hold it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agents.understanding.pointing import Vocabulary, cues
from agents.understanding.references import point
from bench.evals.crosswoz import Item, Line, dialogues, words
from bench.evals.data import NoDataError
from bench.report import Result, missing
from memory.turns import Said, Thing, Turn
from memory.windows import Chooser, Window

ROWS = {"reference_accuracy": "%", **{f"reference_accuracy_{back}": "%" for back in (1, 2, 3, 4)}}
WHOLE = 1_000
BASELINE_MESSAGES = 3


@dataclass(frozen=True)
class Outcome:
    """One item: whether we and the baseline were right; the window, and what the whole history would cost."""

    item: Item
    right: bool
    baseline: bool
    window: Window
    history: int
    answered: bool


def rows(split: str = "test") -> list[Result]:
    """Accuracy over all and with 1 to 4 turns to look back at; each against the baseline on the same messages."""
    try:
        lines = list(dialogues(split))
    except NoDataError as error:
        return [missing(name, unit, str(error)) for name, unit in ROWS.items()]
    results = []
    for back in (WHOLE, 1, 2, 3, 4):
        start = time.perf_counter()
        outcomes = [one for dialogue in lines for one in play(dialogue, words(), back=back)]
        spent = 1_000 * (time.perf_counter() - start) / sum(map(len, lines))
        name = "reference_accuracy" if back == WHOLE else f"reference_accuracy_{back}"
        results.append(_result(name, outcomes, f"CrossWOZ {split}, {_looking(back)}", spent))
    return results


def _looking(back: int) -> str:
    return "all turns to look back at" if back == WHOLE else f"{back} turns to look back at"


def _result(name: str, outcomes: Sequence[Outcome], what: str, spent: float) -> Result:
    ours = share(outcomes)
    base = 100 * sum(one.baseline for one in outcomes) / len(outcomes)
    by_back = []
    for back in sorted({one.item.back for one in outcomes}):
        some = [one for one in outcomes if one.item.back == back]
        of_base = 100 * sum(one.baseline for one in some) / len(some)
        by_back.append(f"{back}: {share(some):.1f} to {of_base:.1f} of {len(some)}")
    asked = sum(not one.answered for one in outcomes)
    note = (f"{what}; baseline: named last within {BASELINE_MESSAGES} messages; by turns since it was named "
            f"{', '.join(by_back)}; {asked} asked back; {spent:.2f} ms a message")  # fmt: skip
    return Result(name, round(ours, 2), "%", round(base, 2), round(ours / base, 3), len(outcomes), note)


def share(outcomes: Sequence[Outcome]) -> float:
    """Per cent of the items that were resolved right."""
    return 100 * sum(one.right for one in outcomes) / len(outcomes)


def play(
    lines: Sequence[Line], known: Vocabulary, *, back: int = WHOLE, chooser: Chooser | None = None
) -> Iterator[Outcome]:
    """Go through a dialogue as the product would, and give each item's outcome."""
    choose = (chooser or Chooser()).choose
    turns: list[Turn] = []
    for at, line in enumerate(lines):
        said = line.said
        if said.who == "agent":
            if turns:
                turns[-1] = replace(turns[-1], said=(*turns[-1].said, said))
            continue
        if line.item is not None:
            found = cues(said.text, known)
            window = choose(turns[-back:], said.text, new_intent=bool(found.wanted) and not found.kinds)
            pointed = point(said.text, window, known)
            meant = pointed.candidate
            right = meant is not None and meant.name == line.item.name
            heard = [(turn, name) for turn, one in _before(lines, at) for name in reversed(one.names)]
            last = next((name for turn, name in heard if at // 2 - turn <= back), None)
            yield Outcome(line.item, right, last == line.item.name, window, _cost(turns, chooser), meant is not None)
            if meant is not None:
                said = replace(said, things=(*said.things, Thing(meant.kind, meant.name)))
        turns.append(Turn(at // 2, (said,)))


def _before(lines: Sequence[Line], at: int) -> Iterator[tuple[int, Line]]:
    for index in range(at - 1, max(-1, at - 1 - BASELINE_MESSAGES), -1):
        yield index // 2, lines[index]


def _cost(turns: Sequence[Turn], chooser: Chooser | None) -> int:
    counted = (chooser or Chooser()).count
    return sum(counted(_line(one)) + 1 for turn in turns for one in turn.said)


def _line(one: Said) -> str:
    return f"{one.who}: {one.text}"
