"""The perception step: one message for each thing said, repeats and recalls known, nothing sensitive in clear."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from agents.understanding.port import Context, Found, Reading, Wish
from memory.sealing import open_seal
from schemas.events import HeartbeatBody, IdentityLinkBody, PresenceBody, RatingBody
from schemas.messages import NormalizedMessage
from tests.agents.heard import T0, Heard


def test_a_message_is_normalised() -> None:
    """One message becomes one NormalizedMessage with intent, confidence, evidence, item and language (R-002-03)."""
    message = Heard().read("我要退款，订单OD100001，质量有问题")

    assert ("refund", "zh", "medium", "neutral") == (
        message.intent,
        message.language,
        message.urgency,
        message.sentiment,
    )
    assert message.target_item is not None
    assert ("OD100001", "质量有问题", True) == (message.target_item.order_id, message.reason, message.return_words)


def test_the_reading_and_its_basis_are_recorded() -> None:
    """Each decision says in one sentence what was read and from what (R-000-03, R-002-48)."""
    heard = Heard()
    heard.read("退1001")

    rule, text, evidence = heard.last.reasons[-1]
    assert "perception.read" == rule
    assert text.startswith("refund (0.")
    assert "order_id=1001" in text
    assert "m-1" in evidence


def test_the_state_remembers_what_was_heard() -> None:
    """The state holds the message and the intent chain with time and confidence (R-002-12)."""
    heard = Heard()
    message = heard.read("退1001", at=T0, occurred_at=T0 - 10)

    assert ("退1001", "refund", 1, False) == tuple(
        heard.message()[key] for key in ("text", "intent", "revision", "recalled")
    )
    link = {"intent": "refund", "confidence": message.confidence, "at": T0 - 10, "message_id": "m-1",
            "return_words": True, "contradicted": False}  # fmt: skip
    assert {"m-1#1": link} == heard.state["perception"]["intents"]
    assert "zh" == heard.state["perception"]["language"]


def test_the_last_twenty_are_remembered() -> None:
    """Messages and intents are bounded: the oldest of more than 20 goes (R-002-12)."""
    heard = Heard()
    for number in range(23):
        heard.read("查物流", f"m-{number}", T0 + number)

    assert [f"m-{number}" for number in range(3, 23)] == list(heard.state["perception"]["messages"])
    assert 20 == len(heard.state["perception"]["intents"])
    assert "m-3#1" == next(iter(heard.state["perception"]["intents"]))


def test_a_push_repeated_under_another_id_is_one_message() -> None:
    """A vendor's repeat of a message id is no second message, whatever its event id (cases A15, B03)."""
    heard = Heard()
    assert heard.say("查一下订单1001", event_id="push-1")
    before = heard.state["perception"]

    assert [None, None] == [heard.say("查一下订单1001", at=T0 + n, event_id=f"push-{n}") for n in (5_000, 10_000)]
    assert (["perception.repeat"], before) == (heard.rules(), heard.state["perception"])


def test_the_same_message_id_of_two_senders_is_two_messages() -> None:
    """What is known belongs to shop, channel and sender: two senders' equal ids are two messages (case B01)."""
    first, second = Heard(sender="u-A"), Heard(sender="u-B")

    messages = [heard.read("我要退款", "6500000000000000001") for heard in (first, second)]
    assert 2 == len({message.ref.event_id for message in messages})


def test_message_ids_are_exact_strings() -> None:
    """Ids that would collide as floats are two messages (case B05)."""
    heard = Heard()

    assert heard.say("退款", "9007199254740992")
    assert heard.say("退款", "9007199254740993")


def test_an_escaped_surrogate_pair_is_one_emoji() -> None:
    """An emoji written as two escapes is one character, and its words are read (case B15)."""
    text = orjson.loads(b'"\\ud83d\\ude2d\xe9\x80\x80\xe6\xac\xbe"')
    message = Heard().read(text)

    assert ("refund", "\U0001f62d退款") == (message.intent, message.text)
    assert message.model_dump_json().encode()


def test_nul_and_zero_width_hide_nothing() -> None:
    """NUL does not reach the stores, zero-width characters hide no word, evidence indexes the raw text (case B17)."""
    raw = "订单\x001001，退\u200b款"
    message = Heard().read(raw)

    assert message.target_item is not None
    assert ("refund", "1001") == (message.intent, message.target_item.order_id)
    assert "\x00" not in message.text
    assert "1001" == next(raw[one.start : one.end] for one in message.evidence if one.field == "order_id")


def test_a_recalled_message_is_marked() -> None:
    """A recall marks the message, is no user turn, and says so; a second one changes nothing (case B11)."""
    heard = Heard()
    heard.read("地址改成A路1号", "m-211")
    assert heard.recall("m-211") is None
    assert (True, ["perception.recalled"]) == (heard.message("m-211")["recalled"], heard.rules())

    heard.recall("m-211")
    assert (["perception.repeat"], ()) == (heard.rules(), heard.last.changes)


def test_after_a_recall_the_next_message_counts() -> None:
    """m-211 recalled, m-212 read: the final address is B (case B11)."""
    heard = Heard()
    heard.read("地址改成A路1号", "m-211")
    heard.recall("m-211", T0 + 20_000)
    message = heard.read("地址改成B路2号", "m-212", T0 + 40_000)

    assert message.address is not None
    assert ("change_address", "****") == (message.intent, message.address.text)
    assert message.seal is not None
    assert {"address": "B路2号"} == orjson.loads(open_seal(heard.keys, message.seal, heard.id) or b"")


def test_a_recall_that_comes_first_is_remembered() -> None:
    """A message that was recalled before it came is not read (case B11)."""
    heard = Heard()
    heard.recall("m-1", T0)

    assert heard.say("我要退款", "m-1", T0 + 10) is None
    assert ["perception.recalled_before"] == heard.rules()
    assert heard.edit("退1001") is None


def test_an_edit_is_a_new_revision() -> None:
    """An edited message is read again as a whole, under its next revision (case B13)."""
    heard = Heard()
    heard.read("退1001", "m-213")
    message = heard.edit("退1002", "m-213")

    assert message is not None
    assert message.target_item is not None
    assert (2, "1002") == (message.ref.revision, message.target_item.order_id)
    assert (2, "退1002") == (heard.message("m-213")["revision"], heard.message("m-213")["text"])


def test_an_edit_that_changes_nothing_is_a_repeat() -> None:
    """The same edit pushed again is no third revision; where text was masked it can't be told, so it is read."""
    heard = Heard()
    heard.read("退1001")
    assert heard.edit("退1002") is not None
    assert heard.edit("退1002") is None

    assert heard.edit("手机号13811112222") is not None
    assert heard.edit("手机号13833332222") is not None


def test_an_edit_of_an_unknown_message_is_read() -> None:
    """An edit whose original never came is revision 2; the original, coming late, is not read over it (case B13)."""
    heard = Heard()
    message = heard.edit("退1001")

    assert message is not None
    assert 2 == message.ref.revision
    assert heard.say("退1002") is None


@pytest.mark.parametrize(
    "text",
    [
        "手机号13800000000",
        "手机号１３８００００００００",
        "我的手机是幺三八零零零零零零零零",
        "138\u202a0000\u202c0000",
    ],
)
def test_nothing_sensitive_is_published_in_clear(text: str) -> None:
    """The message is masked, however the number was written; its clear value travels sealed (R-000-12, promise 9)."""
    heard = Heard()
    message = heard.read(text)
    assert message.seal is not None
    assert message.address is not None

    published = message.model_dump_json() + repr(heard.last.reasons) + repr(heard.state["perception"])
    assert not any(clear in published for clear in ("13800000000", text))
    assert "138****0000" == message.address.phone
    opened = open_seal(heard.keys, message.seal, heard.id)
    assert {"phone": "13800000000"} == orjson.loads(opened or b"")


def test_the_same_event_is_sealed_the_same() -> None:
    """Sealing is part of a pure decision: the same cause gives the same seal under the same key (promise 5)."""
    first, again = Heard(), Heard()
    again.keys = first.keys

    assert first.read("手机号13800000000").seal == again.read("手机号13800000000").seal


def test_a_message_without_anything_sensitive_has_no_seal() -> None:
    """No key is asked for where nothing is masked."""
    assert Heard().read("退1001").seal is None


def test_voice_and_picture_text_is_read_like_typed_text() -> None:
    """Transcripts and OCR go through the same layer as typed text (R-002-02, case B09)."""
    voice, image = Heard().attach("voice", "我要退款。"), Heard().attach("image", "订单号：OD100001")

    assert voice is not None
    assert image is not None
    assert image.target_item is not None
    assert ("refund", "OD100001") == (voice.intent, image.target_item.order_id)


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_attachment_without_words_is_no_turn(text: str) -> None:
    """Voice without a transcript is not read and not remembered as a turn (case B09)."""
    heard = Heard()

    assert heard.attach("voice", text) is None
    assert {} == heard.state["perception"]["messages"]
    assert heard.rules() == ["perception.session", "perception.wordless"]


class Confused:
    """A reader whose readings the contract refuses."""

    def read(self, text: str, context: Context) -> Reading:
        """A confidence above 1."""
        return Reading((Wish("refund", 1.7 + len(text) + (context.flow is not None)),), (Found("x", text, 0, 1),))


def test_a_reading_that_fails_the_schema_goes_to_a_person() -> None:
    """What can't be normalised is handed to a person at once, not tried again (R-002-04, X8)."""
    heard = Heard(Confused())
    message = heard.read("退款，手机13800000000")

    assert ("human", 0.0, "退款，手机138****0000") == (message.intent, message.confidence, message.text)
    assert ["perception.session", "perception.unreadable", "perception.read"] == heard.rules()


@pytest.mark.parametrize(("text", "language"), [("refund me now", "en"), ("退款", "zh"), ("退 please refund", "mixed")])
def test_an_unreadable_message_keeps_its_language(text: str, language: str) -> None:
    """Who writes English is told in English that a person comes."""
    assert Heard(Confused()).read(text).language == language


@pytest.mark.parametrize(
    "body",
    [
        HeartbeatBody(kind="heartbeat"),
        PresenceBody(kind="presence", status="online"),
        RatingBody(kind="rating", score=5),
        IdentityLinkBody(kind="identity_link", root="demo/app/u-1", proof="login"),
    ],
)
def test_other_events_are_not_for_perception(body: HeartbeatBody) -> None:
    """Heartbeats, presence, ratings and links are no message and change nothing here."""
    heard = Heard()

    assert heard.put(body) is None
    assert ((), ()) == (heard.last.changes, heard.last.reasons)


def test_the_open_flow_is_the_context() -> None:
    """What the active flow waits for tells how an answer is read; a flow that waits for nobody does not."""
    readings = []
    for waiting in ("customer", "tool"):
        heard = Heard()
        flow: dict[str, Any] = {"flow": "refund", "node": "ask_reason", "waiting_for": waiting, "plan_id": "p-1",
                                "plan_version": 1, "message_id": "m-0", "slots": {}}  # fmt: skip
        heard.state = {**heard.state, "planning": {**heard.state["planning"], "flows": [flow]}}
        readings.append(heard.read("朋友说别的店更好").reason)

    assert ["朋友说别的店更好", None] == readings


def test_a_bare_number_keeps_the_language_spoken() -> None:
    """A number alone is answered in the language of the words before it."""
    heard = Heard()
    heard.read("I want a refund", "m-1")

    assert "en" == heard.read("1001", "m-2", T0 + 300).language
    assert "en" == heard.state["perception"]["language"]


def test_two_fast_answers_are_read_in_their_turn() -> None:
    """A yes, and 300 ms later the number: each is read by itself, and the number fills the order (case B25)."""
    heard = Heard()
    first, second = heard.read("是", "m-1", T0), heard.read("1001", "m-2", T0 + 300)

    assert ("confirm", "inform") == (first.intent, second.intent)
    assert second.target_item is not None
    assert "1001" == second.target_item.order_id


def test_secondary_wishes_travel_with_their_slots() -> None:
    """The second request of a sentence is published with its own order (case F01, R-003-02)."""
    message = Heard().read("我要退1001，再顺便查下1002的物流")

    assert ["logistics"] == [other.intent for other in message.secondary_intents]
    items = [message.target_item, message.secondary_intents[0].target_item]
    assert ["1001", "1002"] == [item.order_id for item in items if item is not None]


def test_a_long_message_is_kept_short_in_the_state() -> None:
    """The state keeps 1,000 characters of a message; the topic has it whole."""
    message, heard = None, Heard()
    message = heard.read("退款" * 5_000)

    assert isinstance(message, NormalizedMessage)
    assert (10_000, 1_000) == (len(message.text), len(heard.message()["text"]))


def test_a_named_time_is_placed_on_the_customers_clock() -> None:
    """A "yesterday" is a day of the customer's calendar, counted from the message's checked time (R-002-03)."""
    ahead = Heard().read(
        "昨天买的1001要退款", occurred_at=T0 + 86_400_000
    )  # a clock that is a day ahead is not believed

    assert ("2026-01-04/2026-01-05", True) == (ahead.time_reference, ahead.ref.time_assumed)
    assert ["昨天"] == [one.value for one in ahead.evidence if one.field == "time_reference"]
