"""What perception adds to one message: windows, references, return words, order of speech, and its marks."""

from __future__ import annotations

import pytest

from agents.understanding.normalize import CONTRADICTION, MISSING_ITEM, checked
from agents.understanding.port import Reading, Slots, Wish
from schemas.events import UnsupportedBody
from schemas.messages import NormalizedMessage
from tests.agents.heard import T0, Heard
from tests.agents.support import Chat, order


def reasons(heard: Heard, prefix: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """The last decision's reasons of these rules."""
    return [one for one in heard.last.reasons if one[0].startswith(prefix)]


def test_a_pronoun_is_filled_from_the_window_and_says_so() -> None:
    """The word "它" is the order that was just named: value, span, window and kept messages are recorded (R-000-27)."""
    heard = Heard()
    heard.read("查1001", "m-1")
    message = heard.read("它到哪了", "m-2", T0 + 5_000)

    assert "1001" == (message.target_item and message.target_item.order_id)
    assert ("resolved",) == message.marks
    (reference,) = [one for one in message.evidence if one.field == "reference"]
    assert "它" == message.text[reference.start : reference.end]
    ((rule, text, kept),) = reasons(heard, "window.")
    assert ("window.strong", ("m-1",)) == (rule, kept)
    assert "dropped none" in text


def test_another_thing_is_not_the_last_order() -> None:
    """Case F03: 1001 is not known to be a blue cup, so nothing is carried over, and the reason says why."""
    heard = Heard()
    heard.read("查1001", "m-1")
    message = heard.read("那个蓝色杯子到哪了", "m-2", T0 + 5_000)

    assert message.target_item is not None
    assert message.target_item.order_id is None
    assert ["perception.reference_unknown"] == [rule for rule, _, _ in reasons(heard, "perception.reference")]


@pytest.mark.parametrize("words", ["2", "第二个", "我要第二个", "the second one"])
def test_a_place_in_a_list_is_a_choice(words: str) -> None:
    """Under a numbered list its second entry may be meant in any of these ways."""
    chat = Chat()
    chat.say("我要退货")
    chat.say("不知道订单号")
    chat.result({"orders": [order("1001"), order("1002")]})
    chat.say(words)

    assert "1002" == chat.state["planning"]["flows"][0]["slots"]["order_id"]


@pytest.mark.parametrize(("intent", "words", "contradicted"), [
    ("return", False, True), ("return", True, False), ("refund_status", False, True), ("logistics", True, True),
    ("logistics", False, False), ("exchange", True, False), ("exchange", False, False), ("thanks", True, False),
    ("human", True, False), ("complaint", True, False), ("inform", True, False),
])  # fmt: skip
def test_an_intent_against_the_return_words_is_less_sure(intent: str, words: bool, contradicted: bool) -> None:  # noqa: FBT001
    """R-000-18: words of returning and an intent of something else, or the other way round, cost confidence."""
    reading, marks = checked(Reading((Wish(intent, 0.9, Slots(order_id="1001")),), return_words=words))

    assert contradicted == ("contradicts_return_words" in marks)
    assert round(0.9 - CONTRADICTION * contradicted, 3) == reading.wishes[0].confidence


def test_a_second_wish_explains_the_return_words() -> None:
    """R-000-18: the parcel first, then the refund: nothing contradicts."""
    both = Reading((Wish("logistics", 0.9), Wish("refund", 0.9)), return_words=True)

    assert () == checked(both)[1]


@pytest.mark.parametrize("text", ["我要退货", "给我赔点钱吧", "where is my parcel", "谢谢"])
def test_every_intent_step_says_whether_return_words_were_used(text: str) -> None:
    """R-000-18: the chain keeps it for each message, and whether the intent stood against it."""
    heard = Heard()
    message = heard.read(text)
    step = heard.state["perception"]["intents"]["m-1#1"]

    assert message.return_words == step["return_words"]
    assert ("contradicts_return_words" in message.marks) == step["contradicted"]


@pytest.mark.parametrize(("intent", "slots", "has_order", "missing"), [
    ("return", Slots(), False, True), ("exchange", Slots(colour="blue"), False, True),
    ("return", Slots(order_id="1001"), False, False), ("exchange", Slots(sku_id="s1"), False, False),
    ("refund", Slots(), True, False), ("logistics", Slots(), False, False),
])  # fmt: skip
def test_a_return_without_an_item_is_marked(intent: str, slots: Slots, has_order: bool, missing: bool) -> None:  # noqa: FBT001
    """R-002-03: order or item number are needed for a return or exchange, unless the open task has its order."""
    reading = Reading((Wish(intent, 0.9, slots),), return_words=True)

    assert missing == (MISSING_ITEM in checked(reading, has_order=has_order)[1])


def test_transcripts_are_put_in_the_order_in_which_they_were_spoken() -> None:
    """Case B19: the earlier recording comes later; the planner gets it, and then the correction once more."""
    heard = Heard()
    heard.read("不对，是1002", "v2", T0 + 5_000, occurred_at=T0 + 3_000)
    heard.read("1001要退", "v1", T0 + 8_000, occurred_at=T0)
    told = [emit.value for emit in heard.last.emits if isinstance(emit.value, NormalizedMessage)]

    assert [("v1", 1), ("v2", 2)] == [(one.ref.message_id, one.ref.revision) for one in told]
    assert ["late" in one.marks for one in told] == [True, True]
    assert "perception.reordered" in heard.rules()


@pytest.mark.parametrize(("later", "apart"), [
    ("确认", 3_000), ("查1002的物流", 3_000), ("不对，是1002", 31_000), ("手机13800000000", 3_000),
])  # fmt: skip
def test_only_a_near_answer_is_read_again(later: str, apart: int) -> None:
    """A yes counts once, a wish stands by itself, and what was masked can't be read again (case B19)."""
    heard = Heard()
    heard.read(later, "v2", T0 + 40_000, occurred_at=T0 + apart)
    heard.read("1001要退", "v1", T0 + 41_000, occurred_at=T0)

    assert 1 == len(heard.last.emits)


def test_what_a_channel_can_not_name_is_no_turn() -> None:
    """Case B07: no reading, no session, no state; the register keeps the channel's own name of it."""
    heard = Heard()

    assert heard.put(UnsupportedBody(kind="unsupported", type="hologram")) is None
    assert ("perception.unsupported", "hologram") == heard.last.reasons[0][:2]
    assert () == heard.last.changes
