"""What planning works with: flows, tools and templates, loaded and checked together; and its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from agents.flows import model as flow_files
from agents.flows.model import Flow, FlowError, Flows, load_flows
from agents.replies import templates as template_files
from agents.replies.templates import Templates, load_templates
from agents.tools import spec as tool_files
from agents.tools.spec import Tools, load_tools
from agents.understanding.lexicon import lexicon
from schemas.messages import INTENTS


@dataclass(frozen=True)
class Pack:
    """The files of a shop."""

    flows: Flows
    tools: Tools
    templates: Templates

    @cached_property
    def by_intent(self) -> Mapping[str, Flow]:
        """The flow that an intent begins."""
        return {intent: flow for flow in self.flows.values() for intent in flow.intents}


@dataclass(frozen=True, slots=True)
class Config:
    """Planning's numbers, with their reasons in design section 6. Times in milliseconds."""

    review_ms: int = 600_000
    handover_ms: int = 300_000  # staff are asked again when nobody took a conversation for so long
    handover_reminders: int = 3
    call_deadline_ms: int = 15_000  # a call is not begun later than this after it was declared
    confidence_min: float = 0.6  # below: the step is red
    turns_max: int = 12
    turns_conclude: int = 8
    reentries_max: int = 3
    same_question_max: int = 3  # the third time goes to a person
    queue_max: int = 20  # wishes and messages that wait; more than a person can keep in mind, too
    flows_max: int = 8  # begun and not finished, one over the other
    wishes_max: int = 8  # in one message: a list of a hundred orders is no conversation
    context_messages: int = 6


class PackError(ValueError):
    """A pack folder holds what nobody reads: the message names it."""


@cache  # planning, tools and the effect handler share one
def load_pack(folder: Path | None = None) -> Pack:
    """The built-in files, and over them those of `folder`/flows, /tools and /templates.

    Raises SpecError, TemplateError or FlowError naming file and field, PackError for a folder that nobody reads.
    """
    _refuse_others(folder)

    def folders(built_in: Path, name: str) -> list[Path]:
        return [built_in, *([folder / name] if folder is not None and (folder / name).is_dir() else [])]

    tools = load_tools(*folders(tool_files.PACK, "tools"))
    templates = load_templates(*folders(template_files.PACK, "templates"))
    flows = load_flows(tools, frozenset(templates), *folders(flow_files.PACK, "flows"))
    read = {pattern.intent for script in lexicon().patterns for pattern, _ in script} - lexicon().reads_as.keys()
    known = read | set(INTENTS)
    for flow in flows.values():
        for intent in flow.intents:
            if intent not in known:  # nothing a customer says would ever begin it
                problem = f"{intent!r} is no intent of schemas/messages.py or the lexicons' intents.yaml"
                file = f"{flow.flow}.yaml"
                raise FlowError(file, "(flow)", "intents", problem)
    return Pack(flows, tools, templates)


def _refuse_others(folder: Path | None) -> None:
    """A folder with a misspelt name would be left out in silence."""
    inside = sorted(folder.iterdir()) if folder is not None and folder.is_dir() else []
    for one in inside:
        if one.is_dir() and one.name not in {"flows", "tools", "templates"} and not one.name.startswith((".", "_")):
            message = f"{one}: a pack folder has flows, tools and templates, and this is none of them"
            raise PackError(message)
