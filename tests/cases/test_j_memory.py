"""Cases J07 and J09, and a poisoned memory: found by its history, undone by its trace, and the next answer is right."""

from __future__ import annotations

from pathlib import Path

from tests.promises.stand import Stand, whole
from tests.streams.remembered import Remembered

CARRIER, ADDRESS = "preference/carrier", "address/delivery"
A, B = "北京市海淀区中关村大街1号3单元", "上海市浦东新区世纪大道100号8栋"


def test_j07_a_contradiction_supersedes(tmp_path: Path) -> None:
    """Liked, then not wanted: the current fact says no, the old one is superseded and in the trail (case J07)."""

    async def body(stand: Stand) -> None:
        kept, person = Remembered(stand, tmp_path), await stand.person("u-1")
        await person.say("我喜欢发顺丰")
        assert ["快递偏好：顺丰"] == [fact.summary for fact in kept.search(person, "顺丰")]
        await person.say("以后不要顺丰")
        assert [("快递偏好：不要顺丰", ["sf"])] == [
            (fact.summary, fact.fields["avoid"]) for fact in kept.search(person, "顺丰")]  # fmt: skip
        before = [entry["value_before"] for entry in kept.entries(person, CARRIER)]
        assert [None, "快递偏好：顺丰"] == [value and value["summary"] for value in before]

    whole(body)


def test_j09_a_correction_and_its_rollback(tmp_path: Path) -> None:
    """A, corrected to B, is B only; the correction rolled back, A only; four entries in the history (case J09)."""

    async def body(stand: Stand) -> None:
        kept, person = Remembered(stand, tmp_path), await stand.person("u-1")
        await person.say(f"我的收货地址是{A}")
        await person.say(f"说错了，地址应该是{B}")
        assert ["上海市"] == [fact.summary.partition("：")[2][:3] for fact in kept.search(person, "收货地址")]
        correction = kept.last(person, ADDRESS)
        await kept.roll_back(correction.trace_id)
        found = kept.search(person, "收货地址")
        assert ["北京市"] == [fact.summary.partition("：")[2][:3] for fact in found]
        entries = kept.entries(person, ADDRESS)
        assert ["write", "write", "decision", "write"] == [entry["entry"] for entry in entries]
        kept_now = {**found[0].fields, "summary": found[0].summary}
        assert entries[0]["value_after"] == entries[3]["value_after"] == kept_now

    whole(body)


def test_a_wrong_correction_is_found_undone_and_the_next_answer_is_right(tmp_path: Path) -> None:
    """History shows who wrote it and why; the rollback of its trace sets store and state right (R-004-10, R-004-11)."""

    async def body(stand: Stand) -> None:
        kept, person = Remembered(stand, tmp_path), await stand.person("u-1")
        await person.say("以后都发京东快递")
        await person.say("以后不要发京东快递", message_id="somebody-else")
        (_, poison) = kept.entries(person, CARRIER)
        assert poison["trigger_context"].startswith("somebody-else")
        assert "不要京东" in kept.search(person, "京东")[0].summary
        own = await kept.roll_back(poison["trace_id"])
        assert "快递偏好：京东" == kept.search(person, "京东")[0].summary
        assert ["jd"] == person.state["memory"]["known"][CARRIER]["value"]["choice"]
        back = kept.last(person, CARRIER)
        assert ("staff", own, (poison["write_id"],)) == (back.source, back.trace_id, back.undoes)
        assert f"rollback of {poison['trace_id']} by agent-7" in back.trigger_context
        await person.say("以后也不要顺丰")
        assert (["jd"], ["sf"]) == tuple(kept.search(person, "快递")[0].fields[name] for name in ("choice", "avoid"))

    whole(body)


def test_a_rollback_is_itself_reversible_and_leaves_what_came_later(tmp_path: Path) -> None:
    """Rolled back twice it is as it was; a key that was written since stays, and the others go back (R-004-11)."""

    async def body(stand: Stand) -> None:
        kept, person = Remembered(stand, tmp_path), await stand.person("u-1")
        await person.say("以后都发京东快递，请晚上打电话联系我")
        trace = kept.last(person, CARRIER).trace_id
        await person.say("以后不要京东快递了，发顺丰")
        own = await kept.roll_back(trace)
        known = person.state["memory"]["known"]
        assert (["sf"], None) == (known[CARRIER]["value"]["choice"], known["preference/contact_time"]["value"])
        assert [] == kept.search(person, "晚上联系")[1:]
        await kept.roll_back(own)
        assert ["evening"] == person.state["memory"]["known"]["preference/contact_time"]["value"]["choice"]
        assert [] == list(kept.register.breaks())

    whole(body)


def test_a_rollback_of_a_closed_conversation(tmp_path: Path) -> None:
    """Days later, with the conversation closed and its owner restarted, it is set right all the same (R-004-11)."""

    async def body(stand: Stand) -> None:
        kept, person = Remembered(stand, tmp_path), await stand.person("u-1")
        await person.say("我喜欢发顺丰")
        await person.say("以后不要顺丰")
        await stand.pass_ms(3 * 3_600_000)
        assert "residue" == person.state["kind"]
        await stand.lock.restart()
        await kept.roll_back(kept.last(person, CARRIER).trace_id)
        assert "快递偏好：顺丰" == kept.search(person, "顺丰")[0].summary
        await stand.pass_ms(3 * 3_600_000)
        assert "residue" == person.state["kind"], "nothing holds it open"

    whole(body)


def test_a_decision_about_another_customers_memory_is_refused(tmp_path: Path) -> None:
    """A key of somebody else in a decision changes nothing, and the register says so (R-004-09)."""

    async def body(stand: Stand) -> None:
        kept, person = Remembered(stand, tmp_path), await stand.person("u-1")
        other = await stand.person("u-2")
        await person.say("以后不要顺丰")
        await other.say("你好")
        plan = kept.register.rollback(kept.last(person, CARRIER).trace_id)
        fields = {"kind": "memory", "memory": plan.restores, "undone_trace": plan.trace_id}
        await stand.world.decide(other.conversation, fields)
        await stand.lock.settle()
        assert 1 == len(kept.register.history(plan.restores[0].key))
        rules = [one["rule"] for diff in other.values("state.diffs") for one in diff["reasons"]]
        assert "memory.refused" in rules

    whole(body)
