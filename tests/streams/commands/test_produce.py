"""`interlock produce`: every line is checked before anything is sent."""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from schemas.events import MessageBody, RawEvent
from streams.cli import build
from streams.produce import BadLine, read_lines

GOOD = {"id": "p-1", "shop": "demo", "channel": "web", "sender": "li",
        "body": {"kind": "message", "message_id": "m-1", "text": "我要退款"}}  # fmt: skip
HEAD = "id,shop,channel,sender,occurred_at,kind,message_id,text,score\n"


def lines(*events: object) -> bytes:
    """JSON Lines."""
    return b"\n".join(event if isinstance(event, bytes) else orjson.dumps(event) for event in events)


def found(tmp_path: Path, content: bytes, name: str = "events.jsonl") -> list[RawEvent | BadLine]:
    """What a file of that content holds."""
    file = tmp_path / name
    file.write_bytes(content)
    return [one for _, one in read_lines(file)]


def test_good_lines_are_events(tmp_path: Path) -> None:
    """JSON Lines with empty lines, a byte-order mark and Windows ends are read as they are meant (R-002-02)."""
    content = b"\xef\xbb\xbf" + orjson.dumps(GOOD) + b"\r\n\r\n" + orjson.dumps({**GOOD, "id": "p-2"}) + b"\n"
    first, second = found(tmp_path, content)
    assert isinstance(first, RawEvent)
    assert isinstance(second, RawEvent)
    assert ("demo/web/li", "p-1", "p-2") == (first.conversation, first.id, second.id)


@pytest.mark.parametrize(
    ("field", "reason", "line"),
    [
        ("", "JSON", b"{cut"),
        ("", "UTF-8", b'{"id":"\xff"}'),
        ("sender", "missing", {name: value for name, value in GOOD.items() if name != "sender"}),
        ("id", "string", {**GOOD, "id": 7.5}),
        ("body.kind", "'message'", {**GOOD, "body": {"kind": "dance"}}),
        ("body.message_id", "missing (and 1 more: body.text)", {**GOOD, "body": {"kind": "message"}}),
        ("score", "5", {**GOOD, "body": {"kind": "rating", "score": 9}}),
        ("occurred_at", "", {**GOOD, "occurred_at": 1_767_578_400}),
        ("colour", "", {**GOOD, "colour": "red"}),
        ("shop", "", {**GOOD, "shop": "a/b"}),
        ("", "each event on a line of its own", [GOOD]),
    ],
)
def test_a_bad_line_is_named_with_field_and_reason(tmp_path: Path, field: str, reason: str, line: object) -> None:
    """Line number, field and what is wrong with it are said, and the other lines are still checked (promise 10)."""
    first, bad, last = found(tmp_path, lines(GOOD, line, GOOD))
    assert isinstance(first, RawEvent)
    assert isinstance(last, RawEvent)
    assert isinstance(bad, BadLine)
    assert 2 == bad.number
    assert field in bad.field
    assert reason in bad.reason
    assert str(bad).startswith("line 2")


def test_csv_rows_are_events(tmp_path: Path) -> None:
    """A CSV row becomes the event that its columns say; quoted text may hold commas and lines (R-002-02)."""
    content = HEAD + 'p-1,demo,web,li,1767578400000,message,m-1,"退款，\n谢谢",\np-2,demo,web,li,,rating,,,5\n'
    first, second = found(tmp_path, content.encode("utf-8-sig"), "events.csv")
    assert isinstance(first, RawEvent)
    assert isinstance(second, RawEvent)
    assert isinstance(first.body, MessageBody)
    assert ("m-1", "退款，\n谢谢") == (first.body.message_id, first.body.text)
    assert ("rating", None, 1_767_578_400_000) == (second.body.kind, second.occurred_at, first.occurred_at)


@pytest.mark.parametrize(
    ("field", "reason", "content"),
    [
        ("sender, kind", "missing in the header row", "id,shop,channel\np-1,demo,web\n"),
        ("score", "expected a whole number", HEAD + "p-1,demo,web,li,,rating,,,five\n"),
        ("occurred_at", "expected a whole number", HEAD + "p-1,demo,web,li,yesterday,heartbeat,,,\n"),
        ("kind", "expected one of", HEAD + "p-1,demo,web,li,,dance,,,\n"),
        ("message_id", "missing", HEAD + "p-1,demo,web,li,,message,,hello,\n"),
        ("", "more cells", HEAD + "p-1,demo,web,li,,heartbeat,,,,,\n"),
        ("", "not CSV", HEAD + 'p-1,demo,web,li,,message,m-1,"cut\n'),
        ("", "not UTF-8", HEAD.encode() + b"p-1,demo,web,\xff,,heartbeat,,,\n"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, field: str, reason: str, content: str | bytes) -> None:
    """A bad row of a CSV file says line, column and what is wrong (promise 10)."""
    encoded = content if isinstance(content, bytes) else content.encode()
    (bad,) = [one for one in found(tmp_path, encoded, "events.csv") if isinstance(one, BadLine)]
    assert field == bad.field
    assert reason in bad.reason
    assert bad.number >= 1


def run(*arguments: str) -> tuple[int, str]:
    """Exit status and everything printed; without any broker to talk to."""
    result = CliRunner().invoke(build(), ["produce", *arguments], env={"INTERLOCK_BOOTSTRAP_SERVERS": "127.0.0.1:1"})
    return result.exit_code, result.output


def test_nothing_is_sent_when_one_line_is_bad(tmp_path: Path) -> None:
    """Exit status 2 before a broker is even looked for, with the first 20 bad lines (promise 10)."""
    file = tmp_path / "events.jsonl"
    file.write_bytes(lines(GOOD, *[b"{cut"] * 25))
    status, printed = run(str(file))
    assert 2 == status
    assert 20 == printed.count("events.jsonl: line ")
    for words in ("events.jsonl: line 2", "and 5 more", "bad lines: 25, good ones: 1; nothing was sent"):
        assert words in printed


@pytest.mark.parametrize(("status", "arguments"), [(2, []), (3, ["--skip-bad"])])
def test_checking_alone_tells_by_its_status(tmp_path: Path, status: int, arguments: list[str]) -> None:
    """A file can be checked without sending; bad lines show in the exit status (promise 10)."""
    file = tmp_path / "events.jsonl"
    file.write_bytes(lines(GOOD, b"{cut"))
    assert status == run(str(file), "--check", *arguments)[0]
    file.write_bytes(lines(GOOD))
    assert (0, "good lines: 1, bad ones: 0\n") == run(str(file), "--check", *arguments)


def test_ids_that_are_numbers_are_exact_text(tmp_path: Path) -> None:
    """An id beyond 64 bits that came as a JSON integer is the same digits as text, as at the gateway (case B05)."""
    long = 2**80
    (event,) = found(tmp_path, lines(orjson.dumps({**GOOD, "id": 7}).replace(b'"li"', str(long).encode())))
    assert isinstance(event, RawEvent)
    assert ("7", str(long)) == (event.id, event.sender)


def test_a_repeated_id_is_told_and_is_no_error(tmp_path: Path) -> None:
    """One id of one sender is one event, so a second line with it has no effect: the producer hears of it (A15)."""
    file = tmp_path / "events.jsonl"
    file.write_bytes(lines(GOOD, GOOD, {**GOOD, "sender": "wang"}))
    status, printed = run(str(file), "--check")
    assert 0 == status
    assert 1 == printed.count("on an earlier line too")
    assert "events.jsonl: line 2, id: " in printed


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    """What can be read only once could be checked but not sent: it is refused instead of sending nothing."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    status, printed = run(str(pipe))
    assert 2 == status, printed
