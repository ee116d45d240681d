"""Whatever comes in whatever order: no money without an approval, no success without a result, no crash."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agents.support import Chat, order, parcel, refunded

WORDS = ("我要退1001，坏了", "我要退款", "1001", "1002", "坏了", "确认", "不对", "停", "转人工", "查1002的物流",
         "退50元",
         "1003的地址改成上海市静安区A路1号", "1", "2", "3", "你好", "谢谢", "##", "yes", "no", "refund order 1001",
         "我要退1001，再顺便查下1002的物流", "垃圾，骗子", "1001的退款到账了吗")  # fmt: skip
STATUSES = ("success", "failure", "timeout", "unknown", "fallback", "cancelled")
CODES = (None, "order_not_found", "not_owner", "already_refunded", "already_shipped")
PEOPLE = ("approve", "approve", "approve", "refuse", "takeover", "release", "reply")
ACT = st.one_of(
    st.tuples(st.just("say"), st.sampled_from(WORDS)),
    st.tuples(st.just("result"), st.tuples(st.sampled_from(STATUSES), st.sampled_from(CODES))),
    st.tuples(st.just("result"), st.just(("success", None))),
    st.tuples(st.just("decide"), st.sampled_from(PEOPLE)),
    st.tuples(st.just("recall"), st.integers(1, 12)),
    st.tuples(st.just("edit"), st.tuples(st.integers(1, 12), st.sampled_from(WORDS))),
    st.tuples(st.just("fire"), st.none()),
)


def answer(tool: str, call: Any) -> dict[str, Any]:
    """What the shop says when all is well."""
    number = call.args.get("order_id", "1001")
    return {
        "get_order": order(number, status="paid"), "get_logistics": parcel(number),
        "list_orders": {"orders": [order("1001"), order("1003")]},
        "get_customer": {"customer_id": "u", "level": "gold"},
        "change_address": {"order_id": number, "status": "changed"},
        "create_refund": refunded(call) if tool == "create_refund" else {},
    }[tool]  # fmt: skip


def act(chat: Chat, kind: str, what: Any) -> None:
    """One thing that happens, if it can happen now."""
    chat.turn = []
    if kind == "say":
        chat.say(what)
    elif kind == "result" and chat.pending:
        call = chat.pending[0]
        status, code = what
        chat.result(answer(call.tool, call) if status == "success" else {}, status=status, code=code)
    elif kind == "decide":
        chat.decide(what, text="您好" if what == "reply" else "")
    elif kind == "recall":
        chat.recall(f"m-{what}")
    elif kind == "edit":
        chat.say(what[1], f"m-{what[0]}", edit=True)
    elif kind == "fire" and any(name.startswith("planning.") for name in chat.state["timers"]):
        chat.fire("planning.")


def check(chat: Chat) -> None:
    """What always holds."""
    reviews = chat.state["planning"]["reviews"]
    money = [call for call in chat.calls() if call.tool == "create_refund"]
    assert all(reviews[call.review_id or ""]["status"] == "approved" for call in money)
    assert len(money) == len({call.idempotency_key for call in money})
    calls = chat.state["tools"]["calls"].values()
    success = {call["result_id"] for call in calls if call["status"] == "success"}
    for said in chat.all_said():
        assert not said.claims_success or success & {ref.id for ref in said.evidence}
    planning = chat.state["planning"]
    assert planning["owner"] == "agent" or not planning["flows"]
    assert all(flow["waiting_for"] != "none" for flow in planning["flows"])
    open_calls = {flow["call_id"] for flow in planning["flows"] if flow["waiting_for"] == "tool"}
    assert None not in open_calls


@settings(max_examples=60, deadline=None)
@given(st.lists(ACT, max_size=25))
def test_whatever_happens_the_promises_hold(acts: list[tuple[str, Any]]) -> None:
    """E07, E17, J15, R-003-08: in any order of messages, results, decisions, recalls and deadlines."""
    chat = Chat()
    for kind, what in acts:
        owner = chat.state["planning"]["owner"]
        act(chat, kind, what)
        check(chat)
        if owner == "human" and kind in {"say", "result", "recall", "edit", "fire"}:
            assert {"handover.waiting", "handover.nobody_yet"} >= set(chat.said())


@settings(max_examples=20, deadline=None)
@given(st.lists(ACT, max_size=15))
def test_the_same_inputs_give_the_same_decisions(acts: list[tuple[str, Any]]) -> None:
    """Promise 5: a second run of the same inputs ends in the same state, with the same emits and reasons."""
    first, second = Chat(), Chat()
    for chat in (first, second):
        for kind, what in acts:
            act(chat, kind, what)

    assert first.state == second.state
    assert first.emitted == second.emitted
    assert first.reasons == second.reasons
