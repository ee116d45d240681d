"""`interlock chat`: the agent in the terminal, in memory, without Kafka."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from typing import Annotated, Literal

import typer


def chat(
    sender: Annotated[str, typer.Option("--as", help="Customer of the example shop.")] = "c-zh-refund",
    explain: Annotated[bool, typer.Option(help="After each turn, show intent, evidence, plan and reasons.")] = False,
    reviews: Annotated[
        Literal["approve", "refuse", "none"], typer.Option(help="What the reviewer of money says.")
    ] = "approve",
) -> None:
    """Talk to the agent. A line is a message; piped lines work too. Nothing is kept."""
    from streams.runtime.virtual import run_virtual
    from streams.scenario.talk import HELP, talk
    from streams.settings import Settings

    _hello(sender, HELP)
    run_virtual(talk(Settings(), sender, reviews, _lines(), typer.echo, why=explain))


def _hello(sender: str, keys: str) -> None:
    from streams.commands import CommandError
    from streams.demo.shop.seed import customers, orders

    if sender not in {one.customer_id for one in customers()}:
        message = f"{sender} is no customer of the example shop; try c-zh-refund, c-en-refund or c-en-many"
        raise CommandError(message)
    mine = [f"{order.order_id} ({order.status})" for order in orders() if order.customer_id == sender]
    typer.echo(f"You are {sender} with {', '.join(mine)}. {keys}")


def _lines() -> Iterator[str]:
    """Lines of the keyboard with a prompt, or of a pipe as they stand."""
    asked = sys.stdin.isatty()
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # what is no text is not the end of the conversation
    while True:
        if asked:
            typer.echo("you> ", nl=False)
        line = sys.stdin.readline()
        if not line:
            return
        if not asked:
            typer.echo(f"you> {line.rstrip()}")
        yield line


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(chat)
