"""The scenario file: who the customer is, what they do step by step, and what must come of it.

Strict: a file that can't be read names itself, the step and the field.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError

from schemas.base import Fen, Id, KeyPart, Model, Name, Text, conversation_id
from schemas.errors import InterlockError

Ms = Annotated[int, Field(ge=0, le=3_600_000, description="milliseconds")]
Outcome = Literal[
    "refunded", "address_changed", "answered", "explained", "handed_over", "abandoned", "cancelled", "open"
]  # fmt: skip
MemoryKey = Annotated[str, Field(pattern=r"^[a-z_]+/[^/]+$", description="kind/subject, as `preference/carrier`")]
Deadline = Literal["delivered", "displayed", "follow_up", "review", "window", "tool", "session"]


def setting_of(deadline: str) -> str:
    """The setting that holds a deadline's length."""
    return {"tool": "tool_timeout_ms", "session": "session_gap_ms"}.get(deadline, f"{deadline}_ms")


class ScenarioError(InterlockError):
    """A scenario file is wrong: `file: field: what`; the steps are counted from 1."""


class Say(Model):
    """The customer writes; `id` names the message for a later recall, edit or repeat."""

    kind: Literal["say"]
    text: Text
    id: Id | None = None


class Hear(Model):
    """The customer waits for an answer: the named template, or "any"."""

    kind: Literal["hear"]
    template: Name
    within_ms: Ms = 20_000


class Wait(Model):
    """Nothing happens for `ms`, counted from the end of the named deadline if there is one."""

    kind: Literal["wait"]
    ms: Ms = 0
    past: Deadline | None = None


class Leave(Model):
    """The customer closes the window: messages reach nobody, no receipts are sent."""

    kind: Literal["leave"]


class ComeBack(Model):
    """The customer opens the window again and reads what was kept."""

    kind: Literal["come_back"]


class Recall(Model):
    """The customer takes a message back."""

    kind: Literal["recall"]
    of: Id


class Edit(Model):
    """The customer changes a message."""

    kind: Literal["edit"]
    of: Id
    text: Text


class SendAgain(Model):
    """The client sends the very same event once more (cases A15, B03)."""

    kind: Literal["send_again"]
    of: Id


class Rate(Model):
    """The customer rates the service, 1 to 5."""

    kind: Literal["rate"]
    score: int = Field(ge=1, le=5)


class Staff(Model):
    """Support staff step in: take the conversation over, reply, or give it back."""

    kind: Literal["staff"]
    does: Literal["takeover", "release", "reply"]
    text: Text = ""


Step = Annotated[
    Say | Hear | Wait | Leave | ComeBack | Recall | Edit | SendAgain | Rate | Staff, Field(discriminator="kind")
]

# the field that the value beside a step's name stands for: `say: hello` is text
SHORT = {
    "say": "text", "hear": "template", "wait": "ms", "leave": None, "come_back": None, "recall": "of",
    "edit": "of", "send_again": "of", "rate": "score", "staff": "does",
}  # fmt: skip


class Fault(Model):
    """What the shop is told to do wrong; with `contains`, only to calls that hold that text."""

    path_prefix: str
    method: Literal["GET", "POST"] = "POST"
    kind: Literal["delay", "error", "lost_response"]
    delay_ms: Ms = 0
    status: int = Field(default=503, ge=400, le=599)
    times: int = Field(default=1, ge=1)
    contains: Text = ""


class Refund(Model):
    """A refund that the shop's ledger must hold exactly once."""

    order_id: Id
    amount_fen: Fen


class AddressChange(Model):
    """A change of address that the shop's ledger must hold exactly once."""

    order_id: Id


class Expect(Model):
    """What must come of it. Refunds and address changes are complete lists: what is not named must not happen."""

    outcome: Outcome
    says: tuple[Name, ...] = Field(default=(), description="templates, in this order, others between them allowed")
    never_says: tuple[Name, ...] = ()
    intents: tuple[Name, ...] = Field(default=(), description="as understood, in this order")
    refunds: tuple[Refund, ...] = ()
    address_changes: tuple[AddressChange, ...] = ()
    remembers: tuple[MemoryKey, ...] = Field(default=(), description="kept of the customer in the register")
    recalls: tuple[MemoryKey, ...] = Field(default=(), description="of it, what the stores gave to a later session")
    delivery: Literal["sent", "delivered", "displayed", "read"] | None = Field(
        default=None, description="the state that every message reaches at least"
    )
    max_messages: int = Field(default=20, ge=0)
    health: tuple[int, int] | None = Field(default=None, description="lowest and highest score, both allowed")


class Scenario(Model):
    """One scripted customer."""

    name: Name
    title: Text
    language: Literal["zh", "en"]
    shop: KeyPart = "demo"
    channel: KeyPart = "web"
    sender: KeyPart
    receipts: Literal["none", "delivered", "displayed", "read"] = Field(
        default="read", description="how far the client reports each message while the window is open"
    )
    approver: Literal["approve", "refuse", "none"] = Field(default="approve", description="what reviews of it get")
    shop_faults: tuple[Fault, ...] = ()
    steps: tuple[Step, ...] = Field(min_length=1)
    expect: Expect

    @property
    def conversation(self) -> str:
        """`shop/channel/sender`."""
        return conversation_id(self.shop, self.channel, self.sender)


def _step(item: Any, where: str) -> dict[str, Any]:
    """`say: hello` and `leave` as the models' fields. Raises ScenarioError."""
    if isinstance(item, str):
        item = {item: ""}
    found = [name for name in SHORT if isinstance(item, Mapping) and name in item]
    if len(found) != 1:
        message = f"{where}: one of {', '.join(SHORT)} is needed, not {item!r}"
        raise ScenarioError(message)
    name = found[0]
    fields = {key: value for key, value in item.items() if key != name}
    short = SHORT[name]
    if isinstance(item[name], Mapping):
        fields |= item[name]
    elif item[name] and short:
        fields[short] = item[name]
    return {"kind": name, **fields}


def _place(location: tuple[int | str, ...]) -> str:
    """`steps/0/say/text` of the models as `step 1, text` of the file."""
    if location[:1] == ("steps",) and len(location) > 1:
        rest = [str(part) for part in location[2:] if part not in SHORT]
        return ", ".join([f"step {int(location[1]) + 1}", *rest])
    return "/".join(map(str, location)) or "file"


def parse(text: str, file: str) -> Scenario:
    """A scenario from YAML text. Raises ScenarioError that names file, step and field."""
    try:
        # every scalar stays text, so that `say: yes` and `say: 0123` are what the customer writes
        data = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 (it makes nothing but text, lists and mappings)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        message = f"{file}: line {mark.line + 1 if mark else '?'}: not YAML: {getattr(error, 'problem', error)}"
        raise ScenarioError(message) from error
    if not isinstance(data, dict) or not isinstance(data.get("steps", []), list):
        message = f"{file}: a mapping with name, steps and expect is needed, steps being a list"
        raise ScenarioError(message)
    steps = [_step(item, f"{file}: step {number}") for number, item in enumerate(data.get("steps", []), 1)]
    try:
        scenario = Scenario.model_validate({**data, "steps": steps}, strict=False)
    except ValidationError as error:
        faults = "; ".join(f"{_place(item['loc'])}: {item['msg']}" for item in error.errors(include_url=False))
        message = f"{file}: {faults}"
        raise ScenarioError(message) from error
    _check_references(scenario, file)
    return scenario


def _check_references(scenario: Scenario, file: str) -> None:
    """A recall, edit or repeat names a message said before it. Raises ScenarioError."""
    known: set[str] = set()
    for number, step in enumerate(scenario.steps, 1):
        if isinstance(step, Say):
            known.add(step.id or f"m{number}")
        elif isinstance(step, Recall | Edit | SendAgain) and step.of not in known:
            message = f"{file}: step {number}, of: no message {step.of!r} was said before; said: {sorted(known)}"
            raise ScenarioError(message)


def load(path: Path) -> Scenario:
    """The scenario in a file. Raises ScenarioError."""
    try:
        return parse(path.read_text(encoding="utf-8"), path.name)
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path}: can't be read: {error}"
        raise ScenarioError(message) from error


def load_folder(folder: Path) -> list[Scenario]:
    """All `*.yaml` of a folder by name. Raises ScenarioError, also for none, or when two share a conversation."""
    scenarios = [load(path) for path in sorted(folder.glob("*.yaml"))]
    if not scenarios:
        message = f"{folder}: there is no *.yaml in it"
        raise ScenarioError(message)
    refuse_shared(scenarios)
    return scenarios


def refuse_unknown(scenarios: Sequence[Scenario], templates: Collection[str]) -> None:
    """Templates that a scenario waits for or expects are there: else it would wait in vain. Raises ScenarioError."""
    for scenario in scenarios:
        steps = [(f"step {number}", step.template) for number, step in enumerate(scenario.steps, 1)
                 if isinstance(step, Hear) and step.template != "any"]  # fmt: skip
        said = [("expect/says", name) for name in scenario.expect.says]
        for where, name in (*steps, *said, *(("expect/never_says", one) for one in scenario.expect.never_says)):
            if name not in templates:
                near = difflib.get_close_matches(name, templates, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                message = f"{scenario.name}: {where}: there is no template {name!r}{hint}"
                raise ScenarioError(message)


def refuse_shared(scenarios: Sequence[Scenario]) -> None:
    """Scenarios play side by side, so each has a conversation of its own. Raises ScenarioError."""
    seen: dict[str, str] = {}
    for scenario in scenarios:
        if scenario.conversation in seen:
            message = f"{scenario.name}: sender {scenario.sender} is also the customer of {seen[scenario.conversation]}"
            raise ScenarioError(message)
        seen[scenario.conversation] = scenario.name
