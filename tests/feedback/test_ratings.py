"""Ratings: a thumb or a score, tied to its message and session, in the state, on the topic and in a replay."""

from __future__ import annotations

from typing import Any

import pytest

from feedback.step import RATINGS_MAX
from schemas import codec
from schemas.events import RatingBody, RawEvent
from streams.commands.replay import chain_of, text_lines
from streams.scenario.memory import MemoryWorld
from tests.feedback.listening import Talk
from tests.streams.conversation import T0
from tests.streams.replay.recorded import customer, record, send


def rating(**body: Any) -> RawEvent:
    """A rating as a producer sends it."""
    event = {
        "id": "r-1",
        "shop": "demo",
        "channel": "web",
        "sender": "c-en-logistics",
        "body": {"kind": "rating", **body},
    }
    return codec.validate(RawEvent, event)


def rate(talk: Talk, at: int, score: int, message_id: str | None, text: str = "") -> None:
    """The customer rates a message."""
    talk.event(RatingBody(kind="rating", score=score, message_id=message_id, text=text), at)


@pytest.mark.parametrize(("thumb", "score"), [("up", 5), ("down", 1)])
def test_a_thumb_is_a_score(thumb: str, score: int) -> None:
    """A thumb counts as 1 or 5; one that contradicts the score beside it is refused (R-002-42)."""
    body = rating(thumb=thumb).body
    assert isinstance(body, RatingBody)
    assert (score, thumb) == (body.score, body.thumb)
    with pytest.raises(Exception, match="send one of the two"):
        rating(thumb=thumb, score=6 - score)


def test_a_rating_belongs_to_its_messages_session() -> None:
    """Rated after the next session began, it still counts in the session of its message (R-002-42)."""
    talk = Talk()
    talk.answers(1_000)
    talk.begin("s-2")
    rate(talk, 5_000, 2, "m-1000", "too slow")
    (signal,) = talk.signals("rating")
    assert ("s-1", "m-1000", 2.0, "too slow") == (signal.session_id, signal.message_id, signal.value, signal.evidence)
    kept = {"score": 2, "text": "too slow", "session_id": "s-1", "message_id": "m-1000", "at": T0 + 5_000}
    assert {"m-1000": kept} == talk.get("feedback", "ratings")


def test_the_newest_rating_of_a_thing_stands() -> None:
    """A customer who thinks again replaces the rating in the state; the topic has both (R-002-42)."""
    talk = Talk()
    talk.answers(1_000)
    for at, score in ((2_000, 1), (3_000, 5)):
        rate(talk, at, score, "m-1000")
        rate(talk, at, score, None)
    scores = {name: one["score"] for name, one in talk.get("feedback", "ratings").items()}
    assert {"m-1000": 5, "s-1": 5} == scores
    assert [1.0, 1.0, 5.0, 5.0] == [signal.value for signal in talk.signals("rating")]


def test_ratings_in_the_state_are_bounded() -> None:
    """The newest 20 are kept, whatever a client sends (R-002-42)."""
    talk = Talk()
    for number in range(50):
        rate(talk, number, 3, f"m-{number}")
    assert [f"m-{number}" for number in range(50 - RATINGS_MAX, 50)] == list(talk.get("feedback", "ratings"))


def test_a_rating_of_nothing_is_told_and_not_lost_in_silence() -> None:
    """A message that we never sent, or no session at all: the register says so (promise 10, R-002-42)."""
    talk = Talk()
    rate(talk, 1, 3, "m-unknown")
    assert "feedback.rating.unknown_message" in [reason["rule"] for reason in talk.decided[-1].diff["reasons"]]
    talk.state = {**talk.state, "session": None}
    rate(talk, 2, 3, None)
    assert "feedback.rating.unbound" in [reason["rule"] for reason in talk.decided[-1].diff["reasons"]]


def test_a_rating_is_seen_in_a_replay() -> None:
    """From the producer's event to the signal: the replay shows thumb, score and words, a phone in them masked."""

    async def body(world: MemoryWorld) -> None:
        await customer(world, "en-logistics")
        await send(world, rating(thumb="down", text="call me: 13812345678"))

    told = "\n".join(text_lines("x", chain_of(record(body).source, "demo/web/c-en-logistics"), internals=True))
    event, signal = (
        'rating · “call me: 138****5678” · {"score":1,"thumb":"down"',
        "signal rating 1 · call me: 138****5678",
    )
    for words in (event, signal, "because feedback.rating", "health "):
        assert words in told
    assert "13812345678" not in told
