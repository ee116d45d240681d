"""`interlock understand`: how a message is read, on what evidence, and what decided; in memory, nothing is kept."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streams.commands._reading import Json, line

if TYPE_CHECKING:
    from agents.understanding.explain import Ground
    from schemas.messages import NormalizedMessage

_START = 1_767_578_400_000  # a fixed time: the same words give the same output on every day
_PAUSE = 10_000


def understand(
    text: Annotated[str, typer.Argument(help="What the customer writes.")],
    after: Annotated[list[str] | None, typer.Option(help="What they wrote before; may be given several times.")] = None,
    explain: Annotated[bool, typer.Option(help="Show window, references, rules and features that decided.")] = False,
    as_json: Json = False,
) -> None:
    """Print the message that is made of TEXT, with the words that each field was read from."""
    message, reasons = heard([*(after or ()), text])
    why = _grounds(text) if explain else []
    if as_json:
        told = {"reasons": [{"rule": rule, "text": words, "evidence": list(ids)} for rule, words, ids in reasons],
                "grounds": [{"intent": one.intent, "source": one.source, "weight": one.weight, "words": one.words}
                            for one in why]}  # fmt: skip
        line({**message.model_dump(mode="json"), **(told if explain else {})})
        return
    from agents.understanding.normalize import masked

    typer.echo("\n".join([*spans(masked(text), message), "", *fields(message)]))
    if explain:
        typer.echo(
            "\n".join(["", *(f"{rule}: {words}{_ids(ids)}" for rule, words, ids in reasons), "", *_because(why)])
        )


def heard(texts: list[str]) -> tuple[NormalizedMessage, list[tuple[str, str, tuple[str, ...]]]]:
    """The last text as perception reads it after the others, and that decision's reasons."""
    from memory.bus import empty
    from memory.sealing import MemoryKeyStore
    from schemas.base import conversation_id
    from schemas.events import ChannelEvent, MessageBody
    from schemas.step import Draft, Input
    from streams.processors.perception import row
    from streams.settings import Settings

    # what this machine reads by itself, at once: no model is asked, and no store for what they speak of
    settings = Settings().model_copy(update={"model_url": "", "recall_ms": 0})
    step = row(settings, MemoryKeyStore()).step
    key = conversation_id("demo", "web", "customer")
    state: Any = empty(key)
    for number, said in enumerate(texts, 1):
        at = _START + number * _PAUSE
        body = MessageBody(kind="message", message_id=f"m-{number}", text=said)
        event = ChannelEvent(id=f"e-{number}", event_id=f"ev-{number}", shop="demo", channel="web", sender="customer",
                             occurred_at=at, body=body)  # fmt: skip
        cause = Input("channel.events", 0, number, at, key, event.event_id, "channel.events", event)
        draft = Draft(state, cause)
        step(draft, cause)
        decision = draft.finish()
        state = {**decision.state, "version": draft.version, "now": draft.now}
    return next(emit.value for emit in decision.emits if emit.topic == "messages.normalized"), list(decision.reasons)  # type: ignore[return-value]


def _grounds(text: str) -> list[Ground]:
    from agents.understanding.explain import grounds
    from agents.understanding.lexicon import lexicon
    from streams.processors.perception import classifier

    return grounds(text, lexicon(), classifier())


def spans(text: str, message: NormalizedMessage) -> Iterator[str]:
    """The text, and under it each piece of evidence where it stands."""
    shown = "".join("⏎" if char in "\r\n" else char if char.isprintable() else "·" for char in text)
    yield shown
    for found in sorted(message.evidence, key=lambda one: (one.start, one.end)):
        here = _width(shown[: found.start])
        mark = "^" * max(1, _width(shown[found.start : found.end]))
        yield f"{' ' * here}{mark} {found.field}={found.value} ({found.start}-{found.end})"


def _width(text: str) -> int:
    """Columns on a terminal: Chinese characters take two."""
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
               for char in text)  # fmt: skip


def fields(message: NormalizedMessage) -> Iterator[str]:
    """Each field that holds something, one a line; the ids, spans and the text stand elsewhere."""
    for name, value in message.model_dump(mode="json", exclude={"ref", "evidence", "text", "seal"}).items():
        if name == "secondary_intents":
            for number, other in enumerate(value, 2):
                yield f"{f'intent {number}':16} {_plain(other)}"
        elif value not in (None, [], False):
            yield f"{name:16} {_plain(value)}"


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(part)}" for name, part in value.items() if part is not None)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _because(why: list[Ground]) -> Iterator[str]:
    for one in why:
        kind = "classifier" if one.source == "model" else f"rule, {one.source}"
        yield f"{one.intent:16} {one.weight:.2f}  {kind}: {one.words}"


def _ids(ids: tuple[str, ...]) -> str:
    return f" [{', '.join(ids)}]" if ids else ""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(understand)
