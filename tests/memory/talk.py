"""Turns for the tests of windows and references."""

from __future__ import annotations

from memory.turns import Said, Thing, Turn


def turn(number: int, asked: str, told: str = "", *things: Thing, intent: str = "logistics") -> Turn:
    """One message of each side; the things are named by the answer."""
    said = [Said(f"c{number}", "customer", asked, number)]
    if told:
        said.append(Said(f"a{number}", "agent", told, number, things))
    return Turn(number, tuple(said), intent)


def order(name: str, *, number: int | None = None, **values: str) -> Thing:
    """An order that a message is about, or that it offers under a number."""
    return Thing("order", name, values, "subject" if number is None else "offered", number)


def parcels(count: int) -> list[Turn]:
    """Turns that each ask for a parcel of their own."""
    return [turn(at, f"订单{1000 + at}到哪了", f"订单{1000 + at}：已到分拨中心", order(str(1000 + at)))
            for at in range(1, count + 1)]  # fmt: skip


def chat(count: int, words: str = "今天天气不错") -> list[Turn]:
    """Turns about nothing."""
    return [turn(at, f"{words}{at}", f"是的{at}", intent="out_of_scope") for at in range(1, count + 1)]
