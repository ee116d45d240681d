"""`interlock demo`: the whole system at work, compared with what is expected of it."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer


def demo(
    folder: Annotated[Path | None, typer.Argument(help="Folder of scenarios; default: the built-in ones.")] = None,
    keep: Annotated[bool, typer.Option(help="Keep everything running until Ctrl-C, to look at the metrics.")] = False,
) -> None:
    """Start everything on free ports, play scripted customers, compare outcomes; exits 1 if any differs."""
    from streams.demo.report import console
    from streams.demo.run import SCENARIOS, run_demo
    from streams.settings import Settings

    signal.signal(signal.SIGTERM, _interrupt)
    raise typer.Exit(run_demo(Settings(), console(), folder or SCENARIOS, keep=keep))


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)
