"""`interlock reviews`: what waits for a person, and the person's word, over the gateway's HTTP API."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streams.commands import CommandError

if TYPE_CHECKING:
    import httpx

By = Annotated[str, typer.Option(help="Who decides; default: the user's name.")]
Reason = Annotated[str, typer.Option(help="Why, for the register.")]
Request = Annotated[str, typer.Argument(help="The request's id, as `interlock reviews list` shows it.")]
Conversation = Annotated[str, typer.Argument(help="shop/channel/sender, or the id of a request.")]

reviews = typer.Typer(help="What waits for a person, and the person's word.", no_args_is_help=True)


@reviews.command("list")
def list_() -> None:
    """Show the open requests, oldest first."""
    with _client() as client:
        waiting = _open(client)
    if not waiting:
        typer.echo("Nothing waits for a person.")
    for one in waiting:
        typer.echo("\n".join(_lines(one)))


@reviews.command()
def approve(request_id: Request, by: By = "", reason: Reason = "") -> None:
    """Allow the call that the request is about: this call with these arguments, and no other."""
    _answer("approve", request_id, by, reason)


@reviews.command()
def refuse(request_id: Request, by: By = "", reason: Reason = "") -> None:
    """Refuse the call that the request is about."""
    _answer("refuse", request_id, by, reason)


@reviews.command()
def takeover(conversation: Conversation, by: By = "", reason: Reason = "") -> None:
    """Take a conversation over: the agent is silent until it is released."""
    _say("takeover", conversation, by, reason=reason)


@reviews.command()
def release(conversation: Conversation, by: By = "", reason: Reason = "") -> None:
    """Give a conversation back to the agent."""
    _say("release", conversation, by, reason=reason)


@reviews.command()
def reply(conversation: Conversation, text: Annotated[str, typer.Argument()], by: By = "") -> None:
    """Say something to the customer."""
    _say("reply", conversation, by, text=text)


def _answer(kind: str, request_id: str, by: str, reason: str) -> None:
    with _client() as client:
        request = _find(client, request_id)
        if request is None or request["kind"] != "review":
            message = f"no open review has the id {request_id}: it was answered, has expired, or never was"
            raise CommandError(message)
        _post(client, {"kind": kind, "conversation": request["conversation"], "request_id": request_id, "by": _who(by),
                       "call_hash": request["call_hash"], "reason": reason})  # fmt: skip


def _say(kind: str, conversation: str, by: str, **more: str) -> None:
    with _client() as client:
        request = None if conversation.count("/") == 2 else _find(client, conversation)
        if request is not None:
            conversation, more = request["conversation"], {**more, "request_id": request["request_id"]}
        _post(client, {"kind": kind, "conversation": conversation, "by": _who(by), **more})


def _lines(one: dict[str, Any]) -> list[str]:
    """A request, its ids whole so that they can be copied."""
    what = " ".join([one["tool"] or "", *(f"{name}={value}" for name, value in one["args"].items())]).strip()
    until = f", until {_when(one['expires_at'])}" if one["expires_at"] else ""
    found = [
        f"{one['request_id']}  {one['kind']}  {one['conversation']}  since {_when(one['requested_at'])}{until}",
        f"  why: {one['reason']}",
    ]
    if what:
        found.append(f"  what: {what}")
    found.extend(_context(one["context"]))
    if one["taken_by"]:
        found.append(f"  taken over by {one['taken_by']}")
    return found


def _context(context: dict[str, Any]) -> list[str]:
    """What the person needs to go on without asking the customer again (R-003-14)."""
    found = [f"  customer: “{one['text']}”" for one in context.get("messages", [])]
    for flow in context.get("flows", []):
        slots = ", ".join(f"{name}={value}" for name, value in flow["slots"].items())
        found.append(f"  was at: {flow['flow']}, {flow['node']}" + (f" ({slots})" if slots else ""))
    found.extend(f"  called: {one['tool']}, {one['status']}" for one in context.get("calls", []))
    found.extend(f"  also asked: “{one['text']}”" for one in context.get("waiting", []))
    return found


def _when(millis: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(millis / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _find(client: httpx.Client, request_id: str) -> dict[str, Any] | None:
    return next((one for one in _open(client) if one["request_id"] == request_id), None)


def _open(client: httpx.Client) -> list[dict[str, Any]]:
    answer = client.get("/v1/requests")
    if answer.status_code in {401, 403}:
        raise CommandError(_refusal(answer))
    found: list[dict[str, Any]] = answer.raise_for_status().json()["requests"]
    return found


def _post(client: httpx.Client, decision: dict[str, Any]) -> None:
    answer = client.post("/v1/decisions", json=decision)
    if answer.status_code != 202:
        raise CommandError(_refusal(answer))
    typer.echo(f"{decision['kind']}: {answer.json()['decision_id']}")
    typer.echo(f"What comes of it: interlock replay {decision['conversation']}")


def _refusal(answer: httpx.Response) -> str:
    error = answer.json()["error"]
    return f"{error.get('field', 'the decision')}: {error['message']}"


def _who(by: str) -> str:
    return by or os.environ.get("USER") or "staff"


@contextmanager
def _client() -> Iterator[httpx.Client]:
    import httpx

    from streams.gateway.access import bearer
    from streams.settings import Settings

    settings = Settings()
    url = settings.gateway_url
    try:
        with httpx.Client(base_url=url, timeout=15, headers=bearer(settings.gateway_key)) as client:
            yield client
    except httpx.TransportError as error:
        message = f"no gateway answers at {url} ({error}): start `interlock gateway`, or set INTERLOCK_GATEWAY_URL"
        raise CommandError(message) from error


def register(app: typer.Typer) -> None:
    """Add the command group."""
    app.add_typer(reviews, name="reviews")
