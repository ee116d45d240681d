"""One past step on demand (R-000-26): context keeps conclusions, the details stay in the register."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memory.windows import RECALLED_TOKENS, cut_to
from schemas.state import Diff


class NoStepError(LookupError):
    """The register that was given has no such step: the message names the version or id that was looked for."""


@dataclass(frozen=True, slots=True)
class PastStep:
    """A decision as the register has it; `text` is what a model would be shown, within the budget of one recall."""

    version: int
    at: int
    cause: str
    reasons: tuple[tuple[str, str], ...]
    changed: tuple[str, ...]
    emitted: tuple[str, ...]
    text: str


def past_step(diffs: Iterable[Diff], wanted: int | str) -> PastStep:
    """The step of a version, or the first one that rests on the id of a message or record. Raises NoStepError."""
    for diff in diffs:
        if diff.version == wanted if isinstance(wanted, int) else _about(diff, wanted):
            return _shown(diff)
    message = f"no step {wanted!r} in the register; name a version, or an id that a reason cites"
    raise NoStepError(message)


def _about(diff: Diff, wanted: str) -> bool:
    return diff.cause.id == wanted or any(wanted in reason.evidence for reason in diff.reasons)


def _shown(diff: Diff) -> PastStep:
    reasons = tuple((reason.rule, reason.text) for reason in diff.reasons)
    changed = tuple(change.path for change in diff.changes)
    emitted = tuple(emit.topic for emit in diff.emits)
    lines = [f"step {diff.version}, because of {diff.cause.type} {diff.cause.id}",
             *(f"{rule}: {text}" for rule, text in reasons), f"emitted: {', '.join(emitted) or 'nothing'}",
             f"changed: {', '.join(changed)}"]  # fmt: skip
    return PastStep(diff.version, diff.now, diff.cause.id, reasons, changed, emitted,
                    cut_to("\n".join(lines), RECALLED_TOKENS))  # fmt: skip
