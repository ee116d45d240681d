"""The words that point."""

from __future__ import annotations

import pytest

from agents.understanding.lexicon import LexiconError
from agents.understanding.pointing import cues, remembered, vocabulary
from memory.cues import cites_past
from tests.agents.understanding.past import NO_THING, THINGS

PLACES = vocabulary().of({"hotel": ["酒店", "hotel"], "sight": ["景点", "sight"]}, {"hotel": ["房|入住"]})


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ("那个蓝色的", "deictic"), ("这双鞋", "deictic"), ("this one", "deictic"),
        ("它到了吗", "pronoun"), ("refund it", "pronoun"),
        ("第二个", "ordinal"), ("the last one", "ordinal"), ("前者", "ordinal"),
        ("另一个呢", "other"), ("the other?", "other"),
        ("上次那个", "past"), ("the one I bought last time", "past"), ("昨天买的那个", "past"),
        ("我的包裹", "kind"), ("地址呢", "bare"), ("那请问怎么退", "bare"), ("is it possible to pay?", "bare"),
        ("I think that you are right", "bare"), ("第二次", "bare"), ("how long does it take", "bare"),
    ],
)  # fmt: skip
def test_how_a_text_points(text: str, pointer: str) -> None:
    """Chinese and English; a "that" or "it" that only joins words points to nothing (R-002-08)."""
    assert pointer == cues(text, vocabulary()).pointer


@pytest.mark.parametrize(
    ("text", "known", "wanted"),
    [
        ("这家酒店周边有什么景点", ("hotel",), ("sight",)), ("酒店的电话", ("hotel",), ()),
        ("推荐一家酒店", (), ("hotel",)),
        ("附近有景点吗", (), ("sight",)), ("is there another hotel", (), ("hotel",)),
        ("what sights are near the hotel", (), ("sight", "hotel")),
    ],
)  # fmt: skip
def test_a_kind_is_spoken_of_as_known_or_asked_for_anew(
    text: str, known: tuple[str, ...], wanted: tuple[str, ...]
) -> None:
    """Who asks for another one does not mean the one in sight (R-002-08)."""
    found = cues(text, PLACES)

    assert (known, wanted) == (found.kinds, tuple(sorted(found.wanted, reverse=True)))


def test_what_only_one_kind_has_tells_the_kind() -> None:
    """Rooms are a hotel's."""
    assert "hotel" == cues("还有房吗", PLACES).trait


@pytest.mark.parametrize("text", THINGS)
def test_words_of_an_earlier_talk_name_a_thing_of_the_past(text: str) -> None:
    """The whole message is such words, so the stores are asked what they mean, in both languages alike (R-002-10)."""
    assert ("past", 1.0) == (cues(text, vocabulary()).pointer, remembered(text, vocabulary()))
    assert cites_past(text)


@pytest.mark.parametrize("text", NO_THING)
def test_what_happened_earlier_names_no_thing(text: str) -> None:
    """Who speaks of a rude agent, a price or a wait of last time points to nothing that was bought (case F03)."""
    assert remembered(text, vocabulary()) <= 0.5


@pytest.mark.parametrize(("text", "share"), [
    ("上次问的那个到了吗", 6 / 7), ("and the one from my last chat, please", 1), ("上次那个呢？", 1), ("", 0),
    ("has the one I asked about last time arrived?", 25 / 35),
])  # fmt: skip
def test_what_says_nothing_by_itself_is_not_counted(text: str, share: float) -> None:
    """Of "and", "please" and "呢" nothing can be wanted; of "arrived" it can."""
    assert share == pytest.approx(remembered(text, vocabulary()))


def test_the_other_day_is_no_other_thing() -> None:
    """Of two things "the other" is one; a day is none."""
    assert "past" == cues("the one I asked about the other day", vocabulary()).pointer
    assert "other" == cues("the other one", vocabulary()).pointer


def test_a_wrong_pattern_is_named() -> None:
    """The entry that is no pattern, as the file has it."""
    with pytest.raises(LexiconError, match=r"references.yaml: '\(\?:\(\)' is no pattern"):
        vocabulary().of({"order": ["("]}, {})
