"""`interlock state` and `interlock diff`: a conversation at any version, and what changed between two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from streams.commands._reading import Json, line, source

if TYPE_CHECKING:
    from streams.replay.rebuild import Difference, History

Conversation = Annotated[str, typer.Argument(help="shop/channel/sender, or ~N for partition N's own conversation.")]


def state(
    conversation: Conversation,
    at: Annotated[int | None, typer.Option(help="The version; default: the newest.", min=0)] = None,
) -> None:
    """Print a conversation's state as JSON, from state.updates and state.diffs. A version that is gone is said."""
    import orjson

    from streams.replay.rebuild import read_history, state_at

    with source() as opened:
        history = read_history(opened, conversation)
    found = state_at(history, at)
    if "runtime" not in found:
        typer.echo("read backwards from a later version: what the runtime itself kept is not known", err=True)
    typer.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())


def diff(
    conversation: Conversation,
    first: Annotated[int, typer.Argument(help="The version to start from.", min=0)],
    second: Annotated[int, typer.Argument(help="The version to end at.", min=0)],
    as_json: Json = False,
) -> None:
    """Print what changed between two versions, and every decision in between with its reasons."""
    from streams.replay.rebuild import read_history

    with source() as opened:
        history = read_history(opened, conversation)
    found = compare(history, first, second)
    if as_json:
        line(found)
    else:
        typer.echo("\n".join(_text(found)))


def compare(history: History, first: int, second: int) -> dict[str, Any]:
    """The decisions between two versions and the values that differ. Raises VersionGoneError."""
    from streams.replay.rebuild import differences, state_at

    before, after = state_at(history, first), state_at(history, second)
    left, right = ({name: value for name, value in one.items() if name not in ("version", "now", "runtime")}
                   for one in (before, after))  # fmt: skip
    between = range(min(first, second) + 1, max(first, second) + 1)
    return {
        "conversation": history.conversation, "from": first, "to": second,
        "decisions": [_decision(history, version) for version in between if version in history.diffs],
        "changes": [_change(one) for one in differences(left, right)],
    }  # fmt: skip


def _decision(history: History, version: int) -> dict[str, Any]:
    found, record = history.diffs[version], history.places[version]
    cause = found["cause"]
    return {
        "version": version, "partition": record.partition, "offset": record.offset, "time": record.time,
        "cause": f"{cause['topic']} {cause['partition']}:{cause['offset']}", "reasons": found["reasons"],
        "emits": [emit["topic"] for emit in found["emits"]],
    }  # fmt: skip


def _change(one: Difference) -> dict[str, Any]:
    from memory.bus import pointer

    change: dict[str, Any] = {"path": pointer(one.path)}
    if one.had:
        change["before"] = one.before
    if one.has:
        change["after"] = one.after
    return change


def _text(found: dict[str, Any]) -> list[str]:
    from streams.replay.words import changed, clip, when

    lines = [f"{found['conversation']}: version {found['from']} to {found['to']}"]
    for one in found["decisions"]:
        why = "; ".join(f"{reason['rule']} {clip(reason['text'])}".strip() for reason in one["reasons"])
        place = f"state.diffs {one['partition']}:{one['offset']}"
        lines.append(f"version {one['version']}  {when(one['time'])}  {place}  because of {one['cause']}: {why}")
    lines.extend(f"  {changed(change)}" for change in found["changes"])
    return lines if found["changes"] else [*lines, "  no value differs"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(state)
    app.command()(diff)
