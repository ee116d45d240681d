"""The reading commands on a real broker that holds a recorded conversation: what a user types, and what is printed."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner, Result

from memory.key_file import open_key_store
from memory.sealing import seal
from schemas.system import DeadLetter, SystemEvent
from streams.cli import build
from streams.commands import CommandError
from streams.runtime.ports import Fact, Outgoing
from streams.runtime.wire import fact_record
from streams.settings import Settings
from streams.writer import WriteError, write_all
from tests.brokers import cluster
from tests.streams.replay.recorded import REFUND, refund

pytestmark = pytest.mark.kafka
Run = Callable[..., Result]
RUBBISH = b'{"cut\xff'


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A cluster of this module's own, so that offsets are those of the recording."""
    with cluster(tmp_path_factory.mktemp("reading")) as chosen:
        # causes first, as it was: the broker gives append times of its own
        records = sorted(refund().records, key=lambda one: (one.time, one.topic != "channel.events"))
        write_all(chosen, (Outgoing(one.topic, one.partition, one.key, one.value, one.headers) for one in records))
        yield chosen


@pytest.fixture
def run(settings: Settings) -> Run:
    """Runs a command line as a user does; Ctrl-C and errors included."""
    env = {"INTERLOCK_BOOTSTRAP_SERVERS": settings.bootstrap_servers, "INTERLOCK_DATA_DIR": str(settings.data_dir)}

    def call(*arguments: str, status: int = 0) -> Result:
        result = CliRunner().invoke(build(), list(arguments), env=env)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert status == result.exit_code, result.output
        return result

    return call


def test_replay_prints_a_session_from_the_topics(run: Run) -> None:
    """By session id, found by the time in it; each line with topic, partition, offset and time (R-002-17, R-003-30)."""
    session = refund().sessions(REFUND)[0]
    printed = run("replay", session).output
    for words in (REFUND, "channel.events 10:0", "intent refund", "create_refund success", "health 100"):
        assert words in printed
    steps = [orjson.loads(line) for line in run("replay", session, "--json").output.splitlines()]
    assert {"channel.events", "plans", "tools.results", "delivery.states"} <= {step["topic"] for step in steps}
    assert "because planning.review_approved" in run("replay", REFUND, "--internals").output


def test_trace_tells_a_producer(run: Run) -> None:
    """By the producer's own id: accepted where, answered by what, read (R-003-30)."""
    sent = refund().values("channel.events", REFUND)[0]
    printed = run("trace", sent["id"], "--conversation", REFUND).output
    assert "accepted: channel.events 10:0" in printed
    assert "read: “请确认：订单1001" in printed
    assert "handled" == orjson.loads(run("trace", sent["event_id"], "--json").output)["outcome"]


def test_state_and_diff_are_read_at_any_version(run: Run) -> None:
    """The newest state, an older one, and what changed in between (R-002-14)."""
    assert 3 == orjson.loads(run("state", REFUND, "--at", "3").output)["version"]
    newest = orjson.loads(run("state", REFUND).output)["version"]
    assert newest > 20
    assert "planning › turns: 0 → 1" in run("diff", REFUND, "0", "2").output
    assert 2 == len(orjson.loads(run("diff", REFUND, "0", "2", "--json").output)["decisions"])


def test_tail_prints_a_topic_to_its_end(run: Run) -> None:
    """A whole topic, one conversation of it, from an offset, from a time; as JSON (R-003-30)."""
    both = run("tail", "messages.normalized", "--until-end").output.splitlines()
    mine = run("tail", "messages.normalized", "--until-end", "--key", REFUND).output.splitlines()
    assert set(mine) < set(both)
    assert (
        mine[1:]
        == run("tail", "messages.normalized", "--until-end", "--key", REFUND, "--from", "1").output.splitlines()
    )
    assert "" == run("tail", "messages.normalized", "--until-end", "--from", "2100-01-01").output
    assert "refund" == orjson.loads(run("tail", "messages.normalized", "--until-end", "--key", REFUND, "--json")
                                    .output.splitlines()[0])["value"]["intent"]  # fmt: skip


def test_produce_sends_a_file_and_counts(run: Run, tmp_path: Path) -> None:
    """All lines are sent through intake: masked on the topic, and where the broker has them (promise 9)."""
    lines = [{"id": f"f-{number}", "shop": "demo", "channel": "web", "sender": f"file-{number % 7}",
              "body": {"kind": "message", "message_id": f"m-{number}", "text": "我的手机13800000000"}}
             for number in range(500)]  # fmt: skip
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"\n".join(map(orjson.dumps, lines)) + b"\n{cut\n")
    assert "nothing was sent" in run("produce", str(file), status=2).output
    assert "events sent: 500, bad lines skipped: 1" in run("produce", str(file), "--skip-bad", status=3).output
    printed = run("tail", "channel.events", "--until-end", "--key", "demo/web/file-3").output
    assert 71 == len(printed.splitlines())
    assert "138****0000" in printed
    assert "13800000000" not in printed


@pytest.fixture(scope="module")
def dead(settings: Settings) -> str:
    """The reference of a dead letter on the broker."""
    keys = open_key_store(settings.data_dir)
    text = base64.b64encode
    letter = DeadLetter(
        topic="channel.events", partition=10, offset=4_711, time=1_767_578_400_000, reason="not JSON", code="not_json",
        key=text(REFUND.encode()).decode(), seal=seal(keys, "topic:channel.events", RUBBISH), size=len(RUBBISH),
        headers=(("ce_id", text(b"x-1").decode()), ("other", None)),
    )  # fmt: skip
    record = Outgoing("channel.events.dlq", 10, REFUND.encode(), orjson.dumps(letter.model_dump(mode="json")), ())
    ((topic, partition, offset),) = write_all(settings, [record])
    return f"{topic}:{partition}:{offset}"


def test_a_dead_letter_is_listed_and_shown(run: Run, dead: str) -> None:
    """The list has reason and reference; show has the exact bytes, out of the seal (promise 10)."""
    listed = run("dlq", "list").output
    assert dead in listed
    assert "not_json: not JSON" in listed
    shown = run("dlq", "show", dead).output
    assert "7b 22 63 75 74 ff" in shown
    assert "header ce_id: 'x-1'" in shown
    assert [dead] == [orjson.loads(line)["reference"] for line in run("dlq", "list", "--json").output.splitlines()]


def test_a_redrive_writes_the_same_record_again(run: Run, dead: str) -> None:
    """Key, bytes and headers are the old ones, at the end of the topic, with the dead letter's name (promise 10)."""
    where = run("dlq", "redrive", dead).output.splitlines()[0]
    topic, _, place = where.partition(" ")
    offset = place.split(":")[1]
    (line,) = run("tail", topic, "--until-end", "--key", REFUND, "--from", offset, "--json").output.splitlines()
    again = orjson.loads(line)
    assert ("x-1", dead, None) == (again["id"], again["redrive_of"], again["value"])
    with pytest.raises(CommandError, match="give references, or --topic"):
        run("dlq", "redrive")


def test_resume_refuses_what_is_not_paused(run: Run, settings: Settings) -> None:
    """Only a paused topic partition is resumed; the word then stands on system.events (promise 10)."""
    with pytest.raises(Exception, match=r"plans is not paused"):
        run("dlq", "resume", "plans")
    stop = SystemEvent(event_id="e-1", kind="partition_paused", subject="channel.events", by="interlock",
                       at=1_767_578_400_000, data={"partition": 3, "offset": 9, "limit": 100})  # fmt: skip
    write_all(settings, [fact_record(Fact("system.events", "~3", "e-1", stop), 3, stop.at)])
    assert "paused: channel.events 3 since offset 9" in run("dlq", "list").output
    assert "channel.events 3 goes on" in run("dlq", "resume", "channel.events", "3").output
    assert "partition_resumed channel.events" in run("tail", "system.events", "--until-end", "--key", "~3").output
    with pytest.raises(Exception, match="nothing is paused"):
        run("dlq", "resume", "--all")


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("no such conversation", ["state", "demo/web/nobody"]),
        ("there is no version 9999", ["state", REFUND, "--at", "9999"]),
        ("no session id", ["replay", "nonsense"]),
        ("no such event", ["trace", "ev-none"]),
        ("there is no topic 'none'", ["tail", "none"]),
        ("expected `end`, `start`", ["tail", "plans", "--from", "soon"]),
        ("there is no such record", ["dlq", "show", "channel.events.dlq:0:99"]),
    ],
)
def test_what_is_not_there_is_one_clear_line(run: Run, words: str, arguments: list[str]) -> None:
    """Each command says what it did not find (promise 10)."""
    with pytest.raises(Exception, match=words):
        run(*arguments)


def test_reading_leaves_no_trace_on_the_cluster(run: Run, settings: Settings) -> None:
    """No group, no offsets, and no topic has grown (promise 8)."""
    sizes = run("tail", "state.diffs", "--until-end").output.count("\n")
    for command in (["replay", REFUND], ["state", REFUND], ["dlq", "list"]):
        run(*command)
    groups = AdminClient({"bootstrap.servers": settings.bootstrap_servers}).list_consumer_groups().result().valid
    assert [] == [group.group_id for group in groups]
    assert sizes == run("tail", "state.diffs", "--until-end").output.count("\n")


def test_a_record_that_the_broker_refuses_is_counted(settings: Settings) -> None:
    """What the broker did not take is an error with both counts (promise 10)."""
    records = [Outgoing("plans", 0, b"a/b/c", b"{}", ()), Outgoing("plans", 99, b"a/b/c", b"{}", ())]
    with pytest.raises(WriteError, match=r"plans 99|took 1 records and refused 1"):
        write_all(settings, records)
