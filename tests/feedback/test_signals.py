"""The signals, each by its rule and by the cases that broke others."""

from __future__ import annotations

import pytest

from feedback.signals import REPEAT_MS, TOPICS_MAX, remembered, repeated
from schemas.step import Draft, Input
from tests.feedback.listening import Kind, Talk
from tests.streams.conversation import T0, row

DAY = 86_400_000
HOUR = 3_600_000


def _drift(draft: Draft, _: Input) -> None:
    """Planning suspends what it does for another flow."""
    flows = draft.get("planning", "flows")
    draft.set([*flows, {**flows[-1], "flow": "logistics", "node": "look_up"}], "planning", "flows")


class TestReplyLatency:
    def test_first_reply_counts(self) -> None:
        """From the customer's message to the first message out; a second one answers nothing (R-002-35)."""
        talk = Talk()
        talk.says(0)
        talk.answers(3_000)
        talk.answers(9_000)

        assert [3_000.0] == [signal.value for signal in talk.signals("reply_latency")]

    def test_sessions_are_apart(self) -> None:
        """14 days of silence are no latency: 3 s, and 40 s in the new session (case J11)."""
        talk = Talk()
        talk.says(0)
        talk.answers(3_000)
        talk.later(14 * DAY)
        talk.begin("s-2")
        talk.section("planning", owner="human")
        talk.says(14 * DAY)
        talk.answers(14 * DAY + 40_000, "staff")

        found = [(signal.session_id, signal.value) for signal in talk.signals("reply_latency")]
        assert [("s-1", 3_000.0), ("s-2", 40_000.0)] == found

    def test_the_clock_runs_from_the_last_message(self) -> None:
        """Each message of the customer sets the clock anew (case J11)."""
        talk = Talk()
        for at in (0, 60_000, 100_000):
            talk.says(at)
        talk.answers(104_000)
        assert [4_000.0] == [signal.value for signal in talk.signals("reply_latency")]

    @pytest.mark.parametrize("kind", ["follow_up", "resend"])
    def test_only_answers_stop_the_clock(self, kind: Kind) -> None:
        """A follow-up or a resend is no answer (R-002-35)."""
        talk = Talk()
        talk.says(0)
        talk.answers(1_000, kind)
        talk.answers(8_000)
        assert [8_000.0] == [signal.value for signal in talk.signals("reply_latency")]

    def test_the_clock_is_paused_while_a_person_owes(self) -> None:
        """Three hours of human review are not our latency (case J19)."""
        talk = Talk()
        talk.says(0)
        talk.section("planning", reviews={"rv-1": {"status": "open"}})
        talk.beats(2_000)
        talk.later(3 * HOUR)
        talk.section("planning", reviews={"rv-1": {"status": "approved"}})
        talk.beats(3 * HOUR)
        talk.answers(3 * HOUR + 1_000)

        assert [3_000.0] == [signal.value for signal in talk.signals("reply_latency")]

    def test_a_review_of_the_past_pauses_nothing(self) -> None:
        """Reviews that were decided are remembered (E17), and owe nothing: the clocks run as before (J19)."""
        talk = Talk()
        talk.section("planning", reviews={"rv-1": {"status": "approved"}, "rv-2": {"status": "expired"}})
        talk.says(0)
        talk.answers(7_000)

        assert [7_000.0] == [signal.value for signal in talk.signals("reply_latency")]


class TestCorrection:
    def test_same_keyword_in_two_messages_running(self) -> None:
        """The same key word twice running is a correction (R-002-36)."""
        talk = Talk()
        talk.says(0, "refund", ("退款",))
        talk.says(9_000, "refund", ("退款", "没收到"))
        (signal,) = talk.signals("correction")
        assert ("c-9000", "again: 退款") == (signal.message_id, signal.evidence)

    def test_other_words_and_gaps_are_none(self) -> None:
        """Other words, or a message between, are no correction (R-002-36)."""
        talk = Talk()
        talk.says(0, "refund", ("退款",))
        talk.says(1_000, "logistics", ("物流",))
        talk.says(2_000, "refund", ("退款",))
        assert [] == talk.signals("correction")

    def test_a_bare_answer_is_none(self) -> None:
        """An order number given when asked repeats nothing (R-002-36)."""
        talk = Talk()
        talk.says(0, "inform", ("OD123456",))
        talk.says(1_000, "inform", ("OD123456",))
        assert [] == talk.signals("correction")

    def test_a_recall_is_one_correction(self) -> None:
        """Recall and replacement are one correction together, and the notice repeated is none (case B11)."""
        talk = Talk()
        talk.says(0, "change_address", ("地址",), message_id="m-211")
        talk.recalls("m-211", 20_000)
        talk.recalls("m-211", 21_000)
        talk.says(40_000, "change_address", ("地址",), message_id="m-212")
        assert ["m-211"] == [signal.message_id for signal in talk.signals("correction")]

    def test_an_unknown_recall_is_none(self) -> None:
        """A recall of a message that was never heard corrects nothing (case B11)."""
        talk = Talk()
        talk.recalls("m-999", 0)
        assert [] == talk.signals("correction")


class TestInterruption:
    def test_gone_while_waiting(self) -> None:
        """Heartbeats stop and we owe an answer for 30 s: one interruption, at that time (R-002-37)."""
        talk = Talk()
        talk.says(0)
        talk.beats(5_000)
        talk.later(300_000)
        (signal,) = talk.signals("interruption")
        assert T0 + 60_000 == signal.at

    def test_still_there_is_none(self) -> None:
        """A customer whose client goes on beating waits; they left when it stops (R-002-37)."""
        talk = Talk()
        talk.says(0)
        for at in range(10_000, 90_000, 10_000):
            talk.later(at)
            talk.beats(at)
        talk.later(90_000)
        assert [] == talk.signals("interruption")
        talk.later(200_000)
        assert 1 == len(talk.signals("interruption"))

    def test_leaving_early_counts_after_thirty_seconds(self) -> None:
        """Gone after 5 s and still no answer at 30 s: interrupted; answered at 10 s: not (R-002-37)."""
        talk = Talk()
        talk.says(0)
        talk.leaves(5_000)
        talk.later(30_000)
        assert 1 == len(talk.signals("interruption"))

        answered = Talk()
        answered.says(0)
        answered.leaves(5_000)
        answered.answers(10_000)
        answered.later(100_000)
        assert [] == answered.signals("interruption")

    def test_leaving_late_counts_at_once(self) -> None:
        """Who leaves after waiting 30 s is counted when they leave, once (R-002-37)."""
        talk = Talk()
        talk.says(0)
        talk.beats(25_000)
        talk.later(40_000)
        talk.leaves(45_000)
        talk.leaves(46_000)
        talk.later(200_000)
        assert [T0 + 45_000] == [signal.at for signal in talk.signals("interruption")]

    def test_a_channel_that_can_not_tell(self) -> None:
        """Where no client says whether it is there, nobody is said to have left (R-002-37)."""
        talk = Talk()
        talk.says(0)
        talk.later(300_000)
        assert [] == talk.signals("interruption")

    def test_the_clock_runs_from_the_last_message(self) -> None:
        """Messages every 4 min for 32 min, each answered: nobody left, however old the session (case J13)."""
        talk = Talk()
        for at in range(0, 33 * 60_000, 240_000):
            talk.later(at)
            talk.beats(at)
            talk.says(at)
            talk.answers(at + 5_000)
        talk.later(33 * 60_000)
        assert [] == talk.signals("interruption")

    @pytest.mark.parametrize("owed", [{"reviews": {"rv-1": {"status": "open"}}}, {"handover": {"request_id": "hr-1"}}])
    def test_who_waits_for_a_person_did_not_leave(self, owed: dict[str, object]) -> None:
        """Three hours of review with a silent customer: no interruption (case J19)."""
        talk = Talk()
        talk.says(0)
        talk.beats(1_000)
        talk.section("planning", **owed)
        talk.leaves(10_000)
        talk.later(3 * HOUR)
        assert [] == talk.signals("interruption")
        assert "feedback.paused" in talk.rules()


class TestDeviation:
    def test_leaving_a_flow(self) -> None:
        """`stop` or `deny` in a flow leaves the guided path (R-002-38)."""
        talk = Talk()
        talk.flow("refund")
        talk.says(0, "stop")
        assert ["stop in refund at ask_order"] == [signal.evidence for signal in talk.signals("deviation")]

    def test_drift_over_a_flow(self) -> None:
        """A message that suspends the flow for another one drifts from the path (R-002-38)."""
        talk = Talk()
        talk.flow("refund")
        talk.rows = (row("planning", _drift, "messages.normalized"), *talk.rows)
        talk.says(0, "logistics")
        assert ["logistics over refund at ask_order"] == [signal.evidence for signal in talk.signals("deviation")]

    def test_no_flow_no_path(self) -> None:
        """Without a flow there is no path to leave (R-002-38)."""
        talk = Talk()
        talk.says(0, "stop")
        talk.says(1_000, "deny")
        assert [] == talk.signals("deviation")

    def test_an_answer_follows_the_path(self) -> None:
        """An answer to the flow's question is on the path (R-002-38)."""
        talk = Talk()
        talk.flow("refund")
        talk.says(0, "inform", order="OD123456")
        assert [] == talk.signals("deviation")


class TestRepeat:
    def test_same_issue_in_a_later_session(self) -> None:
        """The same issue in another session within three days is a repeat, once a session (R-002-39)."""
        talk = Talk()
        talk.says(0, "refund", order="OD123456")
        talk.later(DAY)
        talk.begin("s-2")
        talk.says(DAY + 1, "refund_status", order="OD123456")
        talk.says(DAY + 9_000, "refund_status", order="OD123456")
        assert ["s-2"] == [signal.session_id for signal in talk.signals("repeat")]

    @pytest.mark.parametrize(("intent", "order", "after"), [
        ("logistics", "OD123456", DAY), ("refund", "OD999999", DAY), ("refund", "OD123456", 4 * DAY),
        ("greeting", None, DAY),
    ])  # fmt: skip
    def test_only_the_same_issue_within_three_days(self, intent: str, order: str | None, after: int) -> None:
        """Another intent, another order, or more than three days: no repeat (R-002-39, case J11)."""
        talk = Talk()
        talk.says(0, "refund", order="OD123456")
        talk.later(after)
        talk.begin("s-2")
        talk.says(after + 1, intent, order=order)
        assert [] == talk.signals("repeat")

    def test_an_order_number_belongs_to_the_flow_that_asked(self) -> None:
        """The number given as an answer makes it the same issue (R-002-39)."""
        talk = Talk()
        talk.flow("refund")
        talk.says(0, "inform", order="OD123456")
        talk.later(DAY)
        talk.begin("s-2")
        talk.says(DAY + 1, "inform", order="OD123456")
        assert 1 == len(talk.signals("repeat"))

    def test_memory_of_issues_is_bounded(self) -> None:
        """Three days and 32 issues are remembered, the newest (R-002-39)."""
        topics: dict[str, int] = {}
        for number in range(100):
            topics = remembered(topics, f"refund:{number}", T0 + number)
        assert TOPICS_MAX == len(topics)
        assert "refund:99" in topics
        assert {"refund:x": T0 + 2 * REPEAT_MS} == remembered(topics, "refund:x", T0 + 2 * REPEAT_MS)

    def test_three_days_are_exact(self) -> None:
        """Three days to the millisecond still count, one more does not (R-002-39)."""
        assert repeated({"a": T0}, "a", T0 + REPEAT_MS, T0 + 1)
        assert not repeated({"a": T0}, "a", T0 + REPEAT_MS + 1, T0 + 1)


def test_a_rating_is_a_signal() -> None:
    """An explicit rating is a signal with its score (R-002-42), at the customer's time when it can be believed."""
    talk = Talk()
    talk.rates(2, 10_000, occurred=4_000)
    talk.rates(5, 20_000, occurred=99_000_000)

    found = [(signal.value, signal.at, signal.time_assumed) for signal in talk.signals("rating")]
    assert [(2.0, T0 + 4_000, False), (5.0, T0 + 20_000, True)] == found
