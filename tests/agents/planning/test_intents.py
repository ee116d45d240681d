"""What planning does with each intent: a flow, the task under way, or an honest word and a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.flows.model import PACK as FLOWS
from agents.planning.pack import load_pack
from schemas.messages import INTENTS, SecondaryIntent, TargetItem
from tests.agents.planning.test_refunds import in_review
from tests.agents.support import PACK, Chat, message, order, parcel, refunded

UNSERVED = ("points", "change_phone", "cancel", "change_order", "invoice", "payment", "coupon_price",
            "product_question", "account")  # fmt: skip
ASKING = ("refund", "return", "exchange", "refund_status", "return_status", "refund_amount", "logistics",
          "change_address")  # fmt: skip


def hear(chat: Chat, intent: str, order_id: str | None = None, text: str = "…", **fields: Any) -> list[str]:
    """A message as it was read, about an order or none; the templates that answer it."""
    item = TargetItem(order_id=order_id) if order_id else None
    return chat.hear(message(text, intent, **{"target_item": item, "message_id": f"m-{len(chat.emitted)}", **fields}))


@pytest.mark.parametrize("intent", INTENTS)
@pytest.mark.parametrize("confidence", [0.95, 0.4])
def test_every_intent_is_answered(intent: str, confidence: float) -> None:
    """No intent ends in silence, and none but the known ways in begins a call (promise 10, R-003-20)."""
    chat = Chat()

    assert hear(chat, intent, confidence=confidence)
    assert [] == chat.calls()


@pytest.mark.parametrize("intent", UNSERVED)
@pytest.mark.parametrize(("language", "word"), [("zh", "人工"), ("en", "person")])
def test_what_no_flow_does_is_said_and_a_person_offered(intent: str, language: str, word: str) -> None:
    """No guess: approved words in the customer's language, the reason recorded, and a yes brings a person."""
    chat = Chat()

    assert [f"noflow.{intent}"] == hear(chat, intent, language=language)
    assert word in chat.text()
    assert "planning.no_flow" in chat.rules()
    assert ["handover.default"] == hear(chat, "confirm", text="好的")


def test_no_person_is_brought_by_a_no() -> None:
    """Who declines the person is left in peace."""
    chat = Chat()
    hear(chat, "invoice")

    assert ["common.closing"] == hear(chat, "deny", text="不用")
    assert [] == chat.requests()


def test_an_intent_that_a_shops_own_reader_found_is_answered() -> None:
    """A reader may know more intents than the files: the customer still gets an honest word."""
    assert ["noflow.default"] == hear(Chat(), "gift_wrapping")


def test_a_flow_file_takes_over_an_intent(tmp_path: Path) -> None:
    """A file with `intents: [invoice]` is all that is needed: no code knows which intents have a flow (R-002-07)."""
    (tmp_path / "flows").mkdir()
    text = (FLOWS / "logistics.yaml").read_text("utf-8")
    own = text.replace("flow: logistics", "flow: invoice").replace("[logistics, hurry_up]", "[invoice]")
    (tmp_path / "flows" / "invoice.yaml").write_text(own, encoding="utf-8")
    chat = Chat(pack=load_pack(tmp_path))

    assert [] == hear(chat, "invoice", "1001")
    assert [("invoice", "check_logistics", "tool")] == chat.flows


@pytest.mark.parametrize("intent", ["refund", "return", "exchange"])
@pytest.mark.parametrize(("language", "words"), [("zh", "订单号或商品链接"), ("en", "order number or a product link")])
def test_a_wish_without_an_item_asks_for_number_or_link(intent: str, language: str, words: str) -> None:
    """A return or exchange without an item is asked for the order number or a product link (R-002-04)."""
    chat = Chat()
    hear(chat, intent, language=language)

    assert words in chat.text()


def test_a_product_link_finds_the_order() -> None:
    """The link that R-002-04 asks for is worth something: the orders that hold the item are offered."""
    chat = Chat()
    hear(chat, "return")
    hear(chat, "inform", target_item=TargetItem(sku_id="S1"))
    assert ["list_orders"] == [call.tool for call in chat.calls()]
    other = {**order("1002"), "items": [{"sku_id": "s2", "name": "灯", "quantity": 1}]}

    assert ["common.choose_order"] == chat.result({"orders": [order("1001"), other]})
    assert ["1001"] == [one["value"] for one in chat.state["planning"]["flows"][0]["choices"]]


def test_what_an_item_is_like_does_not_reopen_a_known_order() -> None:
    """With the order known, a category is no new fact: the confirmation is not gone through again."""
    chat = Chat()
    hear(chat, "refund", "1001", reason="坏了")
    chat.result(order())
    hear(chat, "inform", target_item=TargetItem(category="cup"))

    assert ["get_order"] == [call.tool for call in chat.calls()]


def test_an_exchange_goes_to_a_person_with_its_order() -> None:
    """Nothing here exchanges: the order is asked for and checked, and a person gets it (R-003-14)."""
    chat = Chat()
    hear(chat, "exchange", "1001")

    assert ["handover.exchange"] == chat.result(order())
    assert "1001" == chat.requests()[0].context["flows"][0]["slots"]["order_id"]


@pytest.mark.parametrize(("intent", "tool"), [
    ("refund_status", "get_order"), ("return_status", "get_order"), ("refund_amount", "get_order"),
    ("logistics", "get_logistics"),
])  # fmt: skip
def test_a_query_takes_the_light_path(intent: str, tool: str) -> None:
    """One query and its answer, recorded as such: no confirmation, no review (R-003-20)."""
    chat = Chat()
    hear(chat, intent, "1001")
    assert [tool] == [call.tool for call in chat.calls()]
    chat.result(parcel() if tool == "get_logistics" else order())

    assert "planning.light_path" in chat.rules()
    assert [] == chat.flows
    assert {True} == {plan.light for plan in chat.plans()}
    assert [] == chat.requests()


@pytest.mark.parametrize(("spent", "said"), [(0, "amount.left"), (19900, "amount.none_left")])
def test_the_amount_is_that_of_the_order(spent: int, said: str) -> None:
    """What can be refunded is computed from the order itself, and told with its evidence (E07)."""
    chat = Chat()
    hear(chat, "refund_amount", "1001")

    assert [said] == chat.result(order(refunded_fen=spent))
    assert chat.all_said()[-1].evidence[0].kind == "tool_result"


@pytest.mark.parametrize("intent", ["refund_status", "return_status", "refund_amount"])
def test_a_question_after_a_refund_means_its_order(intent: str) -> None:
    """Right after a refund nobody is asked for its number again; the reason says whose order it is."""
    chat = in_review()
    chat.decide("approve")
    chat.result(refunded(chat.pending[0]))
    assert [] == hear(chat, intent)

    assert "1001" == chat.calls()[-1].args["order_id"]
    assert "planning.same_order" in chat.rules()


def test_another_thing_is_not_the_refunds_order() -> None:
    """No carry-over when the customer names something else (case F03)."""
    chat = in_review()

    assert ["status.ask_order_id"] == hear(chat, "refund_status", target_item=TargetItem(category="cup"))


@pytest.mark.parametrize(
    ("flow", "asked"), [("refund", "refund.ask_order_id"), ("logistics", "logistics.ask_order_id")]
)
def test_a_plea_to_hurry_is_about_the_open_task(flow: str, asked: str) -> None:
    """While something waits for the customer, hurrying brings its question, and begins nothing."""
    chat = Chat()
    hear(chat, flow)

    assert ["common.understood", asked] == hear(chat, "hurry_up")
    assert 1 == len(chat.flows)


def test_hurrying_what_is_under_review_or_runs_is_answered_at_once() -> None:
    """Nothing is carried out twice, and nobody waits for the tool to be told so (J15)."""
    chat = in_review()
    assert ["common.in_progress"] == hear(chat, "hurry_up")
    other = Chat()
    hear(other, "logistics", "1001")

    assert ["common.in_progress"] == hear(other, "hurry_up")
    assert [] == other.state["planning"]["queue"]


def test_hurrying_a_refund_that_is_done_looks_where_it_is() -> None:
    """With nothing open the plea is about what was done last: the refund, by its own order."""
    chat = in_review()
    chat.decide("approve")
    chat.result(refunded(chat.pending[0]))
    hear(chat, "hurry_up")

    assert [("refund_status", "check_order", "tool")] == chat.flows
    assert "1001" == chat.calls()[-1].args["order_id"]


def test_hurrying_nothing_is_about_the_parcel() -> None:
    """Without a task the plea is about the logistics."""
    assert ["logistics.ask_order_id"] == hear(Chat(), "hurry_up")


def test_hurry_beside_a_wish_is_part_of_it() -> None:
    """To refund it, and quickly, is one wish."""
    chat = Chat()
    hear(chat, "refund", "1001", secondary_intents=(SecondaryIntent(intent="hurry_up", confidence=0.8),))

    assert ["refund"] == [flow for flow, _, _ in chat.flows]


def test_a_second_wish_without_a_flow_is_not_dropped() -> None:
    """Case F01: "refund 1001, and an invoice": the refund goes on, and the invoice is answered without numbers."""
    chat = Chat()
    said = hear(chat, "refund", "1001", secondary_intents=(SecondaryIntent(intent="invoice", confidence=0.9),))

    assert ["noflow.invoice", "refund.ask_reason"] == said
    assert () == chat.all_said()[0].choices


def test_an_unserved_question_in_a_flow_is_answered_and_the_flow_goes_on() -> None:
    """Case F15: the other topic first, then the question that was open, once."""
    chat = Chat()
    hear(chat, "refund", "1001")

    assert ["noflow.invoice", "refund.ask_reason"] == hear(chat, "invoice")
    assert ["common.complaint_open", "refund.ask_reason"] == hear(chat, "complaint")


def test_an_unsure_reading_is_no_topic_when_words_were_asked_for() -> None:
    """R-003-11: the reason is in the customer's own words, whatever they faintly look like."""
    chat = Chat()
    hear(chat, "refund", "1001")
    hear(chat, "product_question", text="面料和图片不一样", confidence=0.5)

    assert "面料和图片不一样" == chat.state["planning"]["flows"][0]["slots"]["reason"]


@pytest.mark.parametrize("intent", ASKING)
def test_flows_are_begun_by_their_intents(intent: str) -> None:
    """Each of these intents has its flow, which asks for the order."""
    flow = PACK.by_intent[intent]

    hear(chat := Chat(), intent)
    assert flow.flow == chat.flows[0][0]
    assert "order_id" == flow.nodes[chat.flows[0][1]].slot
