"""The claim gate: a message leaves only with the evidence that its wording needs (R-003-39, E07)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.replies.templates import Template, Templates, fill, shown
from schemas.base import Model
from schemas.delivery import Choice, EvidenceRef


class ClaimError(Exception):
    """The wording claims what the evidence does not show; nothing was rendered."""

    def __init__(self, template_id: str, problem: str) -> None:
        super().__init__(f"{template_id}: {problem}")
        self.template_id, self.problem = template_id, problem


@dataclass(frozen=True, slots=True)
class Rendered:
    """A message ready to be sent."""

    template_id: str
    language: str
    text: str
    params: dict[str, Any]
    choices: tuple[Choice, ...]
    evidence: tuple[EvidenceRef, ...]
    claims_success: bool


@dataclass(frozen=True, slots=True)
class Proofs:
    """What may be cited: the results of calls by result id as (tool, status), the writes of the memory, and what is."""

    results: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    evidence: Sequence[EvidenceRef] = ()
    writes: frozenset[str] = frozenset()


def check(template_id: str, template: Template, proofs: Proofs) -> None:
    """Raises ClaimError unless the evidence carries the template (promise: success only from a success result)."""
    # A cited id that was never seen is an invention, whatever the wording says (J17).
    for ref in proofs.evidence:
        if ref.kind == "tool_result" and ref.id not in proofs.results:
            raise ClaimError(template_id, f"cites {ref.id}, which is no result of this conversation")
        if ref.kind == "memory_write" and ref.id not in proofs.writes:
            raise ClaimError(template_id, f"cites {ref.id}, which is no write of this conversation")
    if template.facts and not any(ref.kind in template.facts for ref in proofs.evidence):
        raise ClaimError(template_id, f"states facts without evidence of kind {' or '.join(template.facts)}")
    if template.success is None:
        return
    # The tool counts, too: that an order could be read proves no refund.
    cited = [proofs.results[ref.id] for ref in proofs.evidence if ref.kind == "tool_result"]
    if (template.success, "success") not in cited:
        raise ClaimError(template_id, f"claims the success of {template.success} without its success result")


def render(
    templates: Templates,
    template_id: str,
    language: str,
    params: Mapping[str, Any],
    proofs: Proofs,
    choices: Sequence[str] | None = None,
) -> Rendered:
    """The message. Mixed language is answered in Chinese. `choices` are labels that replace the template's.

    Raises ClaimError when the evidence does not carry the wording, KeyError and TypeError for bad parameters.
    """
    template = templates[template_id]
    check(template_id, template, proofs)
    spoken = "en" if language == "en" else "zh"
    own = [getattr(offer, spoken) for offer in template.choices]
    labels = own if choices is None else [shown("text", one) for one in choices]
    # Parameters go in once: what a customer typed is never looked at as a template.
    text = fill(template, spoken, params)
    lines = [text, *(f"{number}. {label}" for number, label in enumerate(labels, 1))]
    return Rendered(
        template_id=template_id,
        language=spoken,
        text="\n".join(lines),
        params={name: _plain(params[name]) for name in template.params},
        choices=tuple(Choice(number=number, label=label) for number, label in enumerate(labels, 1)),
        evidence=tuple(proofs.evidence),
        claims_success=template.success is not None,
    )


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, Model) else value
