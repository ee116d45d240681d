"""The generators and the account of a fuzz run, in memory: what they call bad is bad, and a wrong account is seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from memory.bus import empty
from memory.sealing import MemoryKeyStore
from schemas.errors import CODES, BadRecordError
from schemas.system import DeadLetter
from schemas.topics import INPUT_TOPICS
from streams.runtime import wire
from streams.runtime.deadletters import dead_letter
from streams.runtime.ports import Record
from streams.settings import Settings
from tests.fuzz import envelopes, forged, oracle, values
from tests.fuzz.account import Account, Decision, differs
from tests.fuzz.cases import NO_DIFF, Case, Expect, Maker
from tests.fuzz.plan import BETWEEN, topic_plan

KINDS = {**values.KINDS, **envelopes.KINDS, "two_mib": values.two_mib}
PLACE = ("plans", 1, 7)


def _maker(topic: str = "tools.calls", seed: str = "t") -> Maker:
    return Maker(topic, seed, 4)


def _record(case: Case) -> Record:
    return Record(case.topic, case.partition, 7, 0, case.key, case.value, case.headers)


def _read(case: Case) -> str:
    """The code of the refusal, or ""."""
    record = _record(case)
    try:
        wire.read(record, wire.lane_of(record, 4))
    except BadRecordError as error:
        return error.code
    return ""


@pytest.mark.parametrize("topic", INPUT_TOPICS)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_kind_is_read_as_it_says(kind: str, topic: str) -> None:
    """Each kind on each topic: what must be dead is refused with a known code, what is valid is read (promise 10)."""
    maker = _maker(topic)
    for number in range(4):
        case = KINDS[kind](maker, number)
        code = _read(case)
        if case.expect is Expect.DEAD:
            assert code in (case.codes or CODES)
        elif case.expect is not Expect.EITHER:
            assert "" == code


def test_same_seed_gives_the_same_records() -> None:
    """A fault that a run names by its seed comes back with it."""
    plans = [list(topic_plan(_maker(seed=seed), 300, MemoryKeyStore())) for seed in ("1", "1", "2")]
    assert plans[0] == plans[1]
    assert plans[0] != plans[2]


@pytest.mark.parametrize("topic", ["tools.calls", "system.events"])
def test_rubbish_in_a_row_stays_below_half_of_the_limit(topic: str) -> None:
    """After at most 50 bad records of a partition comes a valid one; all that was asked for is there."""
    row = dict.fromkeys(range(4), 0)
    cases = list(topic_plan(_maker(topic), 2_000, MemoryKeyStore()))
    for case in cases:
        row[case.partition] = 0 if case.expect is Expect.HANDLED else row[case.partition] + 1
        assert row[case.partition] <= BETWEEN
    assert 2_000 <= sum(case.expect is not Expect.HANDLED for case in cases)
    assert {*Expect} == {case.expect for case in cases}


@pytest.mark.parametrize(("value", "why"), [
    (b"\xff", "not UTF-8"), (b"{", "not JSON"), (b'{"a":NaN}', "not JSON"), (b'{"a":1,"a":1}', "a key is there twice"),
    (b'"\\ud800"', "a lone surrogate"), (b"1e999", "beyond a double"), (b"18446744073709551616", "beyond 64 bits"),
    (b"[" * 65 + b"]" * 65, "too deep"), (b"{}", "required at "),
])  # fmt: skip
def test_oracle_refuses(value: bytes, why: str) -> None:
    """Python's parser and jsonschema say why a value is bad, without any code of ours."""
    assert why == oracle.refused("delivery.receipts", value)


def test_oracle_takes_valid_values() -> None:
    """Nothing is held against the published examples."""
    for topic in INPUT_TOPICS:
        assert "" == oracle.refused(topic, _maker(topic).valid(0).value or b"")


def _letter(case: Case, keys: MemoryKeyStore) -> DeadLetter:
    error = BadRecordError("why", code="not_json", topic=case.topic)
    decided = dead_letter(keys, empty((case.key or b"~1").decode()), _record(case), error)
    return DeadLetter.model_validate_json(orjson.dumps(decided.diff["emits"][0]["data"]))


def test_dead_letter_is_compared_byte_for_byte() -> None:
    """One other byte in value, key or headers, or a header in another place, is seen."""
    case, keys = values.cut_json(_maker(), 1), MemoryKeyStore()
    letter = _letter(case, keys)
    assert "" == differs(case, letter, keys)
    others = {
        "value, size": replace(case, value=(case.value or b"") + b" "), "key": replace(case, key=b"a/b/c"),
        "headers": replace(case, headers=case.headers[::-1]),
    }  # fmt: skip
    for words, other in others.items():
        assert words == differs(other, letter, keys)


def _account(tmp_path: Path, case: Case, *rules: str) -> Account:
    account = Account(Settings(data_dir=tmp_path), MemoryKeyStore(), sent={PLACE: case})
    if rules:
        account.decided[PLACE] = Decision((case.key or b"").decode(), dict(case.headers)["ce_id"].decode(), rules)  # type: ignore[union-attr]
    return account


def test_lost_record_is_a_fault(tmp_path: Path) -> None:
    """Neither a diff nor a dead letter: the account says which record, of which kind."""
    faults = _account(tmp_path, _maker().valid(1)).verdicts()
    assert ["plans [1] offset 7 (valid): neither handled nor a dead letter"] == list(map(str, faults))


@pytest.mark.parametrize(("kind", "rules"), [
    (values.cut_json, ("tools.x",)), (envelopes.kafka_null, ("tools.x",)), (envelopes.newer_minor, ("runtime.null",)),
    (envelopes.newer_minor, ("runtime.dead_letter",)), (values.json_null, ("runtime.dead_letter",)),
])  # fmt: skip
def test_wrong_end_is_a_fault(tmp_path: Path, kind: values.Kind, rules: tuple[str, ...]) -> None:
    """A bad record handled, a valid one not, a null decided by a step, a dead letter that is only in the diff."""
    assert 1 == len(_account(tmp_path, kind(_maker(), 1), *rules).verdicts())


def test_record_that_ends_as_it_must_is_no_fault(tmp_path: Path) -> None:
    """Handled by a rule, a null by its own, a repeat without a diff: the account is clean."""
    assert [] == _account(tmp_path, _maker().valid(1), "tools.x").verdicts()
    assert [] == _account(tmp_path, envelopes.kafka_null(_maker(), 1), "runtime.null").verdicts()
    dropped = next(case for case in forged.positions(_maker(), 1) if case.expect in NO_DIFF)
    assert [] == _account(tmp_path, dropped).verdicts()
    assert 1 == len(_account(tmp_path, dropped, "tools.x").verdicts())
