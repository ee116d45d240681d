"""CrossWOZ as turns with things, and the messages in it that refer to an entity without naming it.

An item is a customer's message that asks for something of one entity whose name it does not hold; the gold answer is
the name that the annotated goal has for it. It must have been named before. Messages about two entities are left out.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from agents.understanding.pointing import Vocabulary, vocabulary
from bench.evals.data import data_file, json_of
from memory.turns import Role, Said, Thing

PLACES = ("景点", "餐馆", "酒店")
NAME = "名称"
_KINDS = {
    "景点": ["景点", "景区", "公园"],
    "餐馆": ["餐馆", "餐厅", "饭店", "饭馆", "饭庄", "馆子"],
    "酒店": ["酒店", "宾馆", "旅馆", "旅店"],
}
_TRAITS = {
    "餐馆": ["推荐菜|人均|营业|菜|味道"],
    "景点": ["门票|票价|游玩|玩多|开放"],
    "酒店": ["房|入住|早餐|wifi|停车|服务"],
}


_NEAR = re.compile("周边|附近|周围|旁边")


@dataclass(frozen=True)
class Item:
    """A message that refers to `name`, last named `back` turns before it (1: in the turn before)."""

    name: str
    kind: str
    back: int


@dataclass(frozen=True)
class Line:
    """One message of a dialogue; `names` are all entities in it, in text order."""

    said: Said
    names: tuple[str, ...]
    item: Item | None


def words() -> Vocabulary:
    """The product's words that point, with the kinds of things of this domain."""
    return vocabulary().of(_KINDS, _TRAITS)


def dialogues(split: str) -> Iterator[list[Line]]:
    """The dialogues of `val` or `test`. Raises NoDataError without the data set."""
    with zipfile.ZipFile(data_file("crosswoz", f"{split}.json.zip")) as archive:
        data = json.loads(archive.read(archive.namelist()[0]))
    for number, dialogue in data.items():
        yield list(_lines(number, dialogue["messages"]))


class Catalogue:
    """The names of the data set's places, to find things by the words alone, without the annotation of messages."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        for kind, file in zip(PLACES, ("attraction", "restaurant", "hotel"), strict=True):
            self.kinds.update((name, kind) for name, _ in json_of("crosswoz", "database", f"{file}_db.json"))
        longest = sorted(self.kinds, key=len, reverse=True)
        self._names = re.compile("|".join(map(re.escape, longest)))

    def named(self, said: Said) -> Said:
        """The message with the things that its words name; behind a word like "nearby" they are named by the way."""
        found = list({match[0]: match.start() for match in self._names.finditer(said.text)}.items())
        near = [_NEAR.search(re.split("[。！？]", said.text[:start])[-1]) is not None for _, start in found]
        offered = said.who == "agent" and near.count(False) > 1
        return replace(said, things=tuple(
            Thing(self.kinds[name], name, {}, "aside" if aside else "offered" if offered else "subject")
            for (name, _), aside in zip(found, near, strict=True)
        ))  # fmt: skip


def _lines(number: str, messages: list[Any]) -> Iterator[Line]:
    open_goals: dict[tuple[int, str, str], bool] = {}
    named: dict[str, int] = {}
    for at, message in enumerate(messages):
        who = "customer" if message["role"] == "usr" else "agent"
        item = _item(message, open_goals, named, at // 2) if who == "customer" else None
        if who == "customer":
            open_goals = {(goal, domain, slot): done for goal, domain, slot, _, done in message["user_state"]}
        names = tuple(_names(message))
        named.update(dict.fromkeys(names, at // 2))
        said = Said(f"{number}-{at}", who, message["content"], at, tuple(_things(message)))  # type: ignore[arg-type]
        yield Line(said, names, item)


def _item(message: Any, before: dict[tuple[int, str, str], bool], named: dict[str, int], turn: int) -> Item | None:
    """What the message asks of an entity that it does not name: the goals that it newly asks for say which."""
    acts = message["dialog_act"]
    told = {domain for act, domain, slot, _ in acts if slot == NAME}  # named here, or asked to be told a new one
    asked = {(domain, slot) for act, domain, slot, _ in acts if act == "Request" and domain in PLACES} - {
        (domain, NAME) for domain in PLACES
    }
    state = {(goal, domain, slot): (value, done) for goal, domain, slot, value, done in message["user_state"]}
    golds = set()
    for domain, slot in asked:
        goals = [
            key[0] for key, (_, done) in state.items() if key[1:] == (domain, slot) and done and not before.get(key)
        ]
        name = state.get((goals[0], domain, NAME), ("", False))[0] if len(goals) == 1 else ""
        if domain not in told and isinstance(name, str) and name and name not in message["content"]:
            golds.add((name, domain))
    if len(golds) != 1:
        return None
    ((name, domain),) = golds
    return Item(name, domain, turn - named[name]) if name in named else None


def _mentions(message: Any) -> list[tuple[int, str, str, bool]]:
    """Where, name, kind, and whether it is named by the way (near something else)."""
    text = message["content"]
    found = {}
    for _, domain, slot, value in message["dialog_act"]:
        near = slot.removeprefix("周边")
        if domain in PLACES and value and (slot == NAME or near in PLACES):
            found[value] = (text.find(value), value, domain if slot == NAME else near, slot != NAME)
    return sorted(found.values())


def _names(message: Any) -> Iterator[str]:
    yield from (name for at, name, _, _ in _mentions(message) if at >= 0)


def _things(message: Any) -> Iterator[Thing]:
    """One name is what the message is about, several are an offer, names of what is near are by the way."""
    found = _mentions(message)
    several = sum(not aside for *_, aside in found) > 1 and message["role"] == "sys"
    for number, (_, name, kind, aside) in enumerate(found, 1):
        role: Role = "aside" if aside else "offered" if several else "subject"
        yield Thing(kind, name, {}, role, number if len(found) > 1 else None)
