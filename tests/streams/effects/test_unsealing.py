"""A colleague's words: masked on every topic, in clear where the customer reads them."""

from __future__ import annotations

from schemas.people import HumanDecision
from streams.intake import staff_word
from tests.promises.stand import Stand, whole

WORDS = "请打快递员电话 13800000000，\n我们会再联系您"


def test_the_customer_reads_what_the_topics_hide() -> None:
    """Promise 9: no topic holds the number in clear; the message that is sent holds it."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        await person.say("人工")
        await stand.world.decide(person.conversation, {"kind": "takeover"})
        await stand.world.decide(person.conversation, {"kind": "reply", "text": WORDS, "reason": "13800000000"})
        await stand.pass_ms(4_000)

        assert WORDS in [one.text for one in stand.world.inbox._kept[person.conversation].values()]
        assert all(b"13800000000" not in (record.value or b"") for record in stand.everything())

    whole(body)


def test_after_forgetting_the_masked_words_are_sent() -> None:
    """Promise 9: with its key destroyed the seal is closed for good, and the message still goes out."""

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        decision = HumanDecision(decision_id="d-1", kind="reply", by="staff-1", decided_at=stand.now, text=WORDS)
        sealed = staff_word(decision, person.conversation, stand.world.keys)
        assert sealed.seal is not None
        stand.world.keys.destroy(person.conversation)
        await stand.world.publish("human.decisions", person.conversation, sealed, "d-1")
        await stand.pass_ms(4_000)

        assert "138****0000" in next(iter(stand.world.inbox._kept[person.conversation].values())).text

    whole(body)
