"""However much a customer writes, the state stays below what its topics take, and a person gets what is too much."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from schemas.messages import SecondaryIntent, TargetItem
from tests.agents.planning.test_anything import answer
from tests.agents.support import Chat, message, order

LONG = "我" * 19_990
BOUND = 300_000  # bytes; a diff holds a value twice, and its topic takes 8 MiB
SAID = ("退{n}", "查{n}的物流", "{n}的地址改成上海市静安区A路{n}号", "你好", "是", "不", "坏了，{n}",
        "退{n}和{m}，再查{m}的物流", "1", "停", "投诉", "{n}", "😂", "人工")  # fmt: skip


def size(chat: Chat) -> int:
    """Bytes of the state, without the runtime's own part."""
    return len(orjson.dumps({**chat.state, "runtime": None}))


class Quick(Chat):
    """A conversation without the checks that every other test makes of each diff."""

    def _commit(self, draft: Any, decision: Any) -> None:
        self.state = {**decision.state, "version": draft.version, "now": draft.now}


@pytest.mark.slow
def test_five_thousand_messages_leave_a_small_state() -> None:
    """R-002-12: a session of 5,000 messages, its calls answered, its people coming and going, stays below the bound."""
    chat, largest = Quick(), 0
    for number in range(5_000):
        chat.say(SAID[number % len(SAID)].format(n=1_000 + number, m=7_000 + number))
        for call in chat.pending:
            chat.result(answer(call.tool, call), call=call)
        if number % 50 == 49:
            largest = max(largest, size(chat))
            chat.emitted, chat.reasons = [], []
            chat.decide("takeover")
            chat.decide("release")

    assert largest < BOUND / 3
    assert [] == chat.flows


def test_tasks_begun_and_left_go_to_a_person() -> None:
    """Nine refunds begun over one another, none finished: no stack without end, and nothing of it is lost."""
    chat = Chat()
    for number in range(8):
        assert ["refund.ask_reason"] == chat.say(f"我要退{2_000 + number}")

    assert ["handover.default"] == chat.say("我要退3000")
    assert "planning.too_many_flows" == chat.requests()[0].rule
    assert 8 == len(chat.requests()[0].context["flows"])
    assert ["我要退3000"] == [one["text"] for one in chat.state["planning"]["handover"]["kept"]]


def test_a_list_of_orders_goes_to_a_person() -> None:
    """F01 has its end: one message with four thousand orders is no queue of four thousand wishes."""
    chat = Chat()

    assert ["handover.default"] == chat.say("退" + " ".join(str(number) for number in range(1_000, 4_990)))
    assert "planning.too_many_wishes" == chat.requests()[0].rule
    assert size(chat) < BOUND
    [reading] = [one for topic, one in chat.emitted if topic == "messages.normalized"]
    assert len(orjson.dumps(reading.model_dump(mode="json"))) < BOUND


def test_second_wishes_that_never_get_their_turn_go_to_a_person() -> None:
    """A question stands and each answer brings more wishes: the queue has its end."""
    chat = Chat()
    chat.say("我要退1001")
    others = tuple(SecondaryIntent(intent="logistics", confidence=0.9, target_item=TargetItem(order_id=f"200{one}"))
                   for one in range(7))  # fmt: skip
    for number in range(3):
        item = TargetItem(order_id="1001")
        chat.hear(message("嗯", "inform", message_id=f"m-{number}", target_item=item, secondary_intents=others))

    assert "planning.queue_full" == chat.requests()[0].rule
    assert [] == chat.state["planning"]["queue"]


@pytest.mark.parametrize("before", [["转人工"], ["我要退1001，坏了"]])
def test_long_texts_are_kept_short(before: list[str]) -> None:
    """Behind a tool, then for a person, 60 texts of 20,000 characters: the topic has them, the state does not."""
    chat = Chat()
    for text in before:
        chat.say(text)
    for number in range(60):
        chat.hear(message(LONG, "inform", message_id=f"m-long-{number}"))

    assert size(chat) < BOUND


def test_a_queued_choice_is_still_one() -> None:
    """What waits is kept short, and is read as it was sent: a number answers the question that the result raises."""
    chat = Chat()
    chat.say("我要退1001，坏了")
    chat.say("选1")

    assert ["refund.confirm", "refund.in_review"] == chat.result(order())


def test_a_long_reason_still_fits_the_tool() -> None:
    """A reason of 19,990 characters is cut where it is read, and not refused after a person approved the refund."""
    chat = Chat()
    chat.say("我要退1001")
    chat.say("坏" * 19_990)
    chat.result(order())
    chat.say("确认")
    chat.decide("approve")

    assert "create_refund" == chat.pending[0].tool
    assert "tools.bad_argument" not in chat.rules()
