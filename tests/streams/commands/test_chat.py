"""`interlock chat` with piped lines."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner, Result

from streams.cli import build
from streams.commands import CommandError


def _chat(lines: str | bytes, *options: str) -> Result:
    return CliRunner().invoke(build(), ["chat", *options], input=lines)


def test_piped_lines_are_answered() -> None:
    """Each piped line is a message of the customer; the refund is confirmed, reviewed and done."""
    done = _chat("我要退款，订单1001，太大了\n是的\n")

    assert 0 == done.exit_code, done.output
    assert "you> 是的" in done.stdout
    assert "agent> 请确认：订单1001" in done.stdout
    assert "agent> 退款已受理：订单1001，金额50.00元" in done.stdout


def test_explain_shows_the_chain_of_a_turn() -> None:
    """With --explain each turn shows intent, evidence, plan and reasons, from the register (R-002-48)."""
    done = _chat("Where is my order OD100008?\n", "--as", "c-en-logistics", "--explain")

    assert "intent logistics" in done.stdout
    assert "order_id='OD100008'" in done.stdout
    assert "plan logistics at " in done.stdout
    assert "call get_logistics" in done.stdout
    assert "says logistics.status" in done.stdout


def test_recall_and_quit_are_commands() -> None:
    """/recall takes the last message back, /quit ends before the rest."""
    done = _chat("我要退款，订单1012，不喜欢\n/recall\n/what\n/quit\n你好\n", "--as", "c-zh-recall")

    assert "撤回" in done.stdout
    assert "/wait SECONDS" in done.stdout.splitlines()[-2]
    assert "you> 你好" not in done.stdout


def test_unknown_customer_is_told_in_one_line() -> None:
    """A customer that the shop does not know is an error with a hint."""
    done = _chat("", "--as", "nobody")

    with pytest.raises(CommandError, match="nobody is no customer of the example shop; try "):
        raise done.exception or AssertionError(done.output)


@pytest.mark.parametrize("line", [b"\xff\xfe\n", b"x" * 20_001 + b"\n"])
def test_an_odd_line_does_not_end_the_conversation(line: bytes) -> None:
    """Bytes that are no UTF-8 and a text that is too long are told or read as they are; the next line is answered."""
    done = _chat(line + "你好\n".encode())

    assert 0 == done.exit_code, done.output
    assert "agent> " in done.stdout.rpartition("you> 你好")[2]


def test_a_wrong_reviewer_is_told_by_its_option() -> None:
    """The option is named with the words that it takes."""
    done = _chat("", "--reviews", "maybe")

    assert 2 == done.exit_code
    assert all(word in done.output for word in ("--reviews", "approve", "refuse", "none"))
