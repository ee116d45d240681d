"""The audit: every topic has a model, a manifest, examples, an owner and a retention, and nothing is an orphan."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import BaseModel

import schemas
from schemas import codec
from schemas.base import Model
from schemas.errors import BadRecordError, ContractError
from schemas.published import examples, pretty
from schemas.sections import Bookkeeping
from schemas.topics import INPUT_TOPICS, RAW_TOPIC, TOPICS, Topic, build, model_for, parse_manifest, topic_named

FOLDER = Path(schemas.__file__).parent
DESIGNED = {
    RAW_TOPIC, *INPUT_TOPICS, "state.updates", "state.diffs", "plans", "delivery.states", "human.requests",
    "memory.writes", "feedback.signals", "feedback.health", "feedback.causes",
}  # fmt: skip
BY_MANIFEST = {topic.manifest.name: topic for topic in TOPICS.values()}
EXAMPLES = [
    pytest.param(topic, major, text, id=f"{name}/{file}")
    for name, topic in BY_MANIFEST.items()
    for major in topic.models
    for file, text in examples(topic, major).items()
]
every_topic = pytest.mark.parametrize("topic", BY_MANIFEST.values(), ids=BY_MANIFEST)
every_example = pytest.mark.parametrize(("topic", "major", "text"), EXAMPLES)


def test_the_topics_are_the_designed_ones() -> None:
    """There is every topic of the design and no other, and a dead-letter topic for each that is read."""
    assert DESIGNED | {f"{name}.dlq" for name in (RAW_TOPIC, *INPUT_TOPICS, "memory.writes")} == set(TOPICS)


@every_topic
def test_nothing_is_missing(topic: Topic) -> None:
    """A topic has an owner, a retention, a key, its best example, and examples of every version."""
    manifest = topic.manifest
    assert manifest.owner
    assert topic.retention_ms(180) in (-1, 86_400_000, 180 * 86_400_000)
    assert manifest.example.removeprefix(f"v{topic.version}/") in examples(topic, topic.version)
    assert all(examples(topic, major) for major in topic.models)


def test_no_orphans() -> None:
    """Every file of manifests and examples belongs to a topic and a version."""
    manifests = {file.stem for file in (FOLDER / "manifests").iterdir()}
    assert set(BY_MANIFEST) == manifests
    folder = FOLDER / "examples"
    files = {file.relative_to(folder).parts[:-1] for file in folder.rglob("*") if file.is_file()}
    assert {(name, f"v{major}") for name, topic in BY_MANIFEST.items() for major in topic.models} == files


def test_types_are_one_topics() -> None:
    """A CloudEvents type belongs to one contract, so that a reader knows the topic by it."""
    types = [kind for topic in BY_MANIFEST.values() for kind in topic.type_versions]
    assert sorted(set(types)) == sorted(types)


@every_example
def test_an_example_is_canonical(topic: Topic, major: int, text: bytes) -> None:
    """An example is read, and written again byte for byte."""
    compact = orjson.dumps(orjson.loads(text))
    kind = f"{topic.manifest.type}.v{major}"
    assert codec.decode_as(topic, compact, kind) is not None
    assert text == pretty(topic, text, major)


@every_example
def test_an_example_shows_no_phone(topic: Topic, major: int, text: bytes) -> None:
    """Only channel.raw shows clear values (promise 9)."""
    assert major in topic.models
    assert (b"13800000000" in text) <= (topic.name == RAW_TOPIC)


def _instances(value: Any) -> Iterator[BaseModel]:
    """Every model inside a value."""
    if isinstance(value, BaseModel):
        yield value
        for name in type(value).model_fields:
            yield from _instances(getattr(value, name))
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _instances(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _instances(part)


def _shown() -> dict[type[BaseModel], set[str]]:
    """Model to its fields that some example fills."""
    found: dict[type[BaseModel], set[str]] = {}
    for topic in BY_MANIFEST.values():
        for major in topic.models:
            for text in examples(topic, major).values():
                for model in _instances(topic.models[major].validator.validate_json(text)):
                    filled = {
                        name for name in type(model).model_fields if getattr(model, name) not in (None, "", (), {})
                    }
                    found.setdefault(type(model), set()).update(filled)
    return found


def _models(kind: type[BaseModel] = Model) -> Iterator[type[BaseModel]]:
    for child in kind.__subclasses__():
        if child.__module__.startswith("schemas."):
            yield child
        yield from _models(child)


# The state's inside belongs to its processors and has no readers outside; the parts need not all be filled.
INSIDE = Bookkeeping.__module__
# Held in another record's free fields.
QUOTED = {"OrphanReceipt"}


def test_every_field_is_shown() -> None:
    """Some example fills each field of each model, so that a reader sees what it looks like."""
    shown = _shown()
    hidden = {
        f"{model.__name__}.{name}"
        for model in _models()
        if model.__name__ not in QUOTED and model.__module__ != INSIDE
        for name in set(model.model_fields) - shown.get(model, set())
    }
    assert set() == hidden


def test_every_kind_of_event_in_both_languages() -> None:
    """channel.events shows every kind of event, in Chinese and in English."""
    found = {
        (orjson.loads(text)["body"]["kind"], file.removesuffix(".json").rpartition("-")[2])
        for file, text in examples(TOPICS["channel.events"], 1).items()
    }
    kinds = ("message", "recall", "edit", "heartbeat", "presence", "rating", "identity_link", "unsupported")
    assert {(kind, language) for kind in kinds for language in ("zh", "en")} == found


@pytest.mark.parametrize(
    ("topics", "fields"),
    [
        (("messages.normalized",), {  # R-002-03: seven that are always there, five that may be
            "intent", "confidence", "evidence", "urgency", "language", "sentiment", "text",
            "target_item", "amount", "address", "time_reference", "secondary_intents"}),
        (("tools.calls", "tools.results"), {  # R-004-04; the trace is the record's traceparent
            "call_id", "skill", "tool", "args", "args_sensitive", "summary", "before", "after", "status", "error",
            "token_usage", "duration_ms", "finished_at"}),
        (("memory.writes",), {  # R-004-08
            "write_id", "trace_id", "key", "value_before", "value_after", "source", "trigger_context", "timestamp"}),
        (("state.updates",), {  # R-002-46
            "version", "perception", "memory", "planning", "tools", "actions", "feedback"}),
    ],
)  # fmt: skip
def test_the_source_documents_fields(topics: tuple[str, ...], fields: set[str]) -> None:
    """The records have the fields that the source documents print (R-002-03, R-004-04, R-004-08, R-002-46)."""
    found = {name for topic in topics for text in examples(TOPICS[topic], 1).values() for name in orjson.loads(text)}
    assert fields <= found


def test_a_plan_item_has_its_fields() -> None:
    """A task of a plan has the ten printed fields (R-004-12)."""
    fields = {
        "task_id", "parent_id", "description", "goal", "status", "depends_on", "assigned_skill", "actual_tool_calls",
        "result_summary", "alternative_reason",
    }  # fmt: skip
    tasks = orjson.loads(examples(TOPICS["plans"], 1)["refund.json"])["tasks"]
    assert all(fields == set(task) for task in tasks)


def test_urgency_has_a_default() -> None:
    """Urgency is low, medium or high, and medium unless said (R-002-03)."""
    message = orjson.loads(examples(TOPICS["messages.normalized"], 1)["logistics-en.json"])
    del message["urgency"]
    assert codec.decode("messages.normalized", orjson.dumps(message)).urgency == "medium"
    for field in ("intent", "confidence", "evidence", "language", "sentiment", "text"):
        with pytest.raises(BadRecordError, match=f"{field}: missing"):
            codec.decode("messages.normalized", orjson.dumps({k: v for k, v in message.items() if k != field}))


@pytest.mark.parametrize("state", ["sent", "delivered", "displayed", "read"])
@pytest.mark.parametrize("topic", ["delivery.receipts", "delivery.states"])
def test_four_message_states(topic: str, state: str) -> None:
    """A channel reports, and we hold, the four states of a message (R-002-29)."""
    record = orjson.loads(next(iter(examples(TOPICS[topic], 1).values()))) | {"state": state}
    assert state == codec.decode(topic, orjson.dumps(record)).state


def test_a_dead_letter_topic_is_its_sources_shape() -> None:
    """All dead-letter topics share one contract, each under its own name."""
    assert model_for("channel.raw.dlq") is model_for("tools.calls.dlq")
    assert "plans.dlq" not in TOPICS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: [", "x.yaml: not YAML"),
        ("[]", "x.yaml"),
        ("name: plans\nmood: good", r"x\.yaml: mood|x\.yaml: purpose"),
    ],
)
def test_a_broken_manifest_names_file_and_field(text: str, message: str) -> None:
    """Whoever adds a topic reads which file and field is wrong."""
    with pytest.raises(ContractError, match=message):
        parse_manifest(text, "x.yaml")


def test_a_manifest_without_its_model() -> None:
    """A manifest that names no class can't become a topic."""
    text = resources.files("schemas").joinpath("manifests", "plans.yaml").read_text("utf-8")
    with pytest.raises(ContractError, match=r"schemas\.plans:Nothing: no such name"):
        build(parse_manifest(text.replace("ExecutionPlan", "Nothing"), "plans.yaml"))


def test_unknown_names() -> None:
    """An unknown topic or version is our bug, and the error lists those that there are."""
    with pytest.raises(ContractError, match="no topic 'planz'; there are"):
        topic_named("planz")
    with pytest.raises(ContractError, match="plans has no version 7; there are 1"):
        model_for("plans", 7)
