"""windows_p95, tokens_saved: what the windows cost and what they save."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from agents.understanding.pointing import vocabulary
from agents.understanding.references import point
from bench.evals.crosswoz import Line, dialogues, words
from bench.evals.data import NoDataError
from bench.evals.references import Choose, Outcome, by_product, play, share
from bench.report import Result, less_is_better, missing, percentile
from memory import embedding, tokens
from memory.turns import Said, Thing, Turn
from memory.windows import Budgets, Chooser, Window, choose

TURNS = 200
TRIES = 100
FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0)
ASKED = (
    ("那个蓝色的到哪了", False), ("where is it now?", False), ("我要退款", True), ("I want a refund", True),
    ("上次那个杯子还能退吗", False), ("the one I bought last time", False), ("好的", False), ("ok", False),
)  # fmt: skip


def run() -> Iterator[Result]:
    """Both rows."""
    yield _speed()
    try:
        lines = list(dialogues("test"))
    except NoDataError as error:
        yield missing("tokens_saved", "%", str(error))
        return
    yield _saved(lines)


def _speed() -> Result:
    """Nothing is known before: each try counts and embeds all texts anew, as after a restart."""
    turns = [_turn(number) for number in range(TURNS)]
    times, kinds = [], set()
    vocabulary()
    for number in range(TRIES):
        text, new_intent = ASKED[number % len(ASKED)]
        embedding.vector.cache_clear()
        tokens.count.cache_clear()
        start = time.perf_counter_ns()
        window = choose(turns, text, new_intent=new_intent)
        point(text, window)
        times.append((time.perf_counter_ns() - start) / 1e6)
        kinds.add(window.kind)
    note = f"{TURNS} turns of two messages, nothing cached, reference resolved; kinds: {', '.join(sorted(kinds))}"
    return less_is_better("windows_p95", percentile(times, 0.95), "ms", None, TRIES, note)


def _turn(number: int) -> Turn:
    """A turn about an order of its own, every third in English."""
    order = f"OD{100_000 + number}"
    asked, told = f"帮我查一下订单{order}到哪里了", f"订单{order}：包裹已到达分拨中心，5月3日更新"
    if number % 3 == 0:
        asked, told = f"where is my order {order}?", f"Order {order}: the parcel reached the sorting centre on May 3"
    thing = Thing("order", order, {"category": "cup", "colour": "blue"})
    return Turn(number, (Said(f"c{number}", "customer", asked, number, (thing,)),
                         Said(f"a{number}", "agent", told, number, (thing,))), "logistics")  # fmt: skip


def _saved(lines: Sequence[Sequence[Line]]) -> Result:
    """Over all messages of customers; accuracy on those that refer to something, against the whole history's."""
    whole = _played(lines, _whole)
    ours = _played(lines, by_product)
    curve = [f"{factor:g}: {_saving(some):.1f} % saved, {_right(some):.1f} % right"
             for factor in FACTORS for some in [_played(lines, _scaled(factor))]]  # fmt: skip
    note = (f"CrossWOZ test, every customer message; references right {_right(ours):.1f} %, with the whole history "
            f"{_right(whole):.1f} %; by share of the budgets {'; '.join(curve)}; tokens by {tokens.NAME}; "
            "tau2 holds no dialogues")  # fmt: skip
    return Result("tokens_saved", round(_saving(ours), 1), "%", 0.0, None, len(ours), note)


def _played(lines: Sequence[Sequence[Line]], chosen: Choose) -> list[Outcome]:
    known = words()
    return [one for dialogue in lines for one in play(dialogue, known, chosen)]


def _saving(outcomes: Sequence[Outcome]) -> float:
    return 100 * (1 - sum(one.window.tokens for one in outcomes) / sum(one.history for one in outcomes))


def _right(outcomes: Sequence[Outcome]) -> float:
    return share([one for one in outcomes if one.item is not None])


def _scaled(factor: float) -> Choose:
    budgets = Budgets()
    scaled = Budgets(
        *(int(factor * size) for size in (budgets.strong, budgets.weak, budgets.long_range, budgets.fallback))
    )
    chooser = Chooser(scaled)
    return lambda turns, text, new_intent: chooser.choose(turns, text, new_intent=new_intent)


def _whole(turns: Sequence[Turn], text: str, new_intent: bool) -> Window:  # noqa: FBT001 (see by_product)
    """Everything that was said, as if there were no windows."""
    del new_intent
    return Window("fallback", "the whole history", 0, 0, text, turns[-1].number + 1 if turns else 1, tuple(turns), ())
