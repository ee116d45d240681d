"""The contracts for others: JSON Schema of each version, one AsyncAPI 3 document, and a picture of the flow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter

from schemas.published import examples
from schemas.topics import TOPICS, Topic

ASYNCAPI = "3.0.0"
SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "#/components/schemas/{model}"
# Readers for people: in the picture they would hide the flow.
_LOOKERS = frozenset({"replay", "console", "cli"})

_MARKED = re.compile(r"(<!-- flow -->\n).*?(<!-- /flow -->)", re.DOTALL)

HEADERS: dict[str, Any] = {
    "type": "object",
    "description": "CloudEvents 1.0 in Kafka's binary mode: UTF-8 header values.",
    "required": ["ce_specversion", "ce_id", "ce_source", "ce_type"],
    "properties": {
        "ce_specversion": {"type": "string", "const": "1.0"},
        "ce_id": {"type": "string", "minLength": 1, "maxLength": 512, "description": "unique with its source"},
        "ce_source": {"type": "string", "minLength": 1, "description": "who wrote it, such as interlock/planning"},
        "ce_type": {"type": "string", "minLength": 1},
        "ce_time": {"type": "string", "format": "date-time"},
        "ce_subject": {"type": "string", "description": "the conversation"},
        "ce_dataschema": {"type": "string", "description": "interlock:<topic>:<major>.<minor>"},
        "ce_position": {"type": "string", "description": "an emit's source conversation|version|index"},
        "ce_previous": {"type": "string", "description": "version|index of that conversation's emit before it here"},
        "content-type": {"type": "string", "const": "application/json"},
        "traceparent": {"type": "string", "description": "W3C trace context"},
    },
}


def json_schema(topic: Topic, major: int) -> dict[str, Any]:
    """The JSON Schema (2020-12) of one version of a topic."""
    schema = topic.models[major].json_schema()
    head = {
        "$schema": SCHEMA_DIALECT,
        "$id": f"interlock:{topic.manifest.name}:{major}.{topic.manifest.versions[major].minor}",
    }
    return {**head, **schema, "title": f"{topic.manifest.name} v{major}"}


def asyncapi(partitions: int = 12, retention_days: int = 180) -> dict[str, Any]:
    """The AsyncAPI document of all topics, as Interlock sends and receives on them."""
    topics = sorted(TOPICS.values(), key=lambda topic: topic.name)
    payloads, definitions = _payloads(topics)
    return {
        "asyncapi": ASYNCAPI,
        "info": {
            "title": "Interlock",
            "version": "1.0.0",
            "description": "Every movement of a customer-service agent as a record on a Kafka topic.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {topic.name: _channel(topic, partitions, retention_days) for topic in topics},
        "operations": {
            f"{topic.name}.{action}": _operation(topic, action) for topic in topics for action in ("send", "receive")
        },
        "components": {
            "schemas": definitions,
            "messages": {
                _message_name(topic, major): _message(topic, major, payloads[topic.manifest.name, major])
                for topic in topics
                for major in topic.models
            },
            "messageTraits": {"cloudEvent": {"contentType": "application/json", "headers": HEADERS}},
        },
    }


def _payloads(topics: list[Topic]) -> tuple[dict[tuple[str, int], dict[str, Any]], dict[str, Any]]:
    """The payload schema of each version, and the definitions that they share."""
    adapters = {(topic.manifest.name, major): adapter for topic in topics for major, adapter in topic.models.items()}
    inputs = [(key, "validation", adapter) for key, adapter in adapters.items()]
    found, shared = TypeAdapter.json_schemas(inputs, ref_template=_REFERENCE)  # type: ignore[arg-type]
    payloads = {key: _draft_07(schema) for (key, _), schema in found.items()}
    return payloads, {name: _draft_07(schema) for name, schema in shared.get("$defs", {}).items()}


def _draft_07(schema: Any, *, names: bool = False) -> Any:
    """AsyncAPI schemas are of draft 7: tuples are lists of `items`, and a discriminator is a property's name."""
    if isinstance(schema, list):
        return [_draft_07(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: _draft_07(part, names=not names and key == "properties") for key, part in schema.items()}
    if names:
        return result
    if "prefixItems" in result:
        result["items"] = result.pop("prefixItems")
    if isinstance(result.get("discriminator"), dict):
        result["discriminator"] = result["discriminator"]["propertyName"]
    return result


def _message_name(topic: Topic, major: int) -> str:
    return f"{topic.manifest.name}.v{major}"


def _channel(topic: Topic, partitions: int, retention_days: int) -> dict[str, Any]:
    manifest = topic.manifest
    return {
        "address": topic.name,
        "description": manifest.purpose,
        "messages": {
            f"v{major}": {"$ref": f"#/components/messages/{_message_name(topic, major)}"} for major in topic.models
        },
        "bindings": {
            "kafka": {
                "topic": topic.name,
                "partitions": partitions,
                "topicConfiguration": {
                    "cleanup.policy": [manifest.cleanup],
                    "retention.ms": topic.retention_ms(retention_days),
                    "max.message.bytes": manifest.max_bytes,
                },
                "bindingVersion": "0.5.0",
            }
        },
    }


def _operation(topic: Topic, action: str) -> dict[str, Any]:
    manifest = topic.manifest
    majors = [topic.version] if action == "send" else list(topic.models)
    who = manifest.writers if action == "send" else manifest.readers
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{topic.name}"},
        "summary": f"{'Written' if action == 'send' else 'Read'} by {', '.join(who)}; owned by the {manifest.owner}.",
        "messages": [{"$ref": f"#/channels/{topic.name}/messages/v{major}"} for major in majors],
    }


def _message(topic: Topic, major: int, payload: dict[str, Any]) -> dict[str, Any]:
    kind = f"{topic.manifest.type}.v{major}"
    return {
        "name": kind,
        "summary": topic.manifest.purpose,
        "traits": [{"$ref": "#/components/messageTraits/cloudEvent"}],
        "headers": {"type": "object", "properties": {"ce_type": {"type": "string", "const": kind}}},
        "payload": payload,
        "bindings": {
            "kafka": {"key": {"type": "string", "description": topic.manifest.key}, "bindingVersion": "0.5.0"}
        },
        "examples": [
            {"name": name.removesuffix(".json"), "payload": orjson.loads(text)}
            for name, text in examples(topic, major).items()
        ],
    }


def flow_diagram() -> str:
    """A Mermaid picture of who writes and reads which topic, from the manifests; dead letters are left out."""
    lines = ["flowchart LR"]
    topics = [topic for topic in TOPICS.values() if not topic.name.endswith(".dlq")]
    lines += [f'    {_node(topic.name)}[["{topic.name}"]]' for topic in topics]
    people = sorted(
        {name for topic in topics for name in (*topic.manifest.writers, *topic.manifest.readers)} - _LOOKERS
    )
    lines += [f'    {name}(["{name}"])' for name in people]
    for topic in topics:
        lines += [
            f"    {writer} --> {_node(topic.name)}" for writer in topic.manifest.writers if writer not in _LOOKERS
        ]
        lines += [
            f"    {_node(topic.name)} --> {reader}" for reader in topic.manifest.readers if reader not in _LOOKERS
        ]
    return "\n".join(lines) + "\n"


def with_picture(text: str) -> str:
    """A Markdown text whose part between `<!-- flow -->` and `<!-- /flow -->` is the picture; others as they are."""
    return _MARKED.sub(lambda found: f"{found[1]}```mermaid\n{flow_diagram()}```\n{found[2]}", text)


def _node(topic: str) -> str:
    return f"t_{topic.replace('.', '_')}"


def export(folder: Path) -> list[Path]:
    """Write all of it below `folder`; the files written."""
    files: dict[str, bytes] = {"asyncapi.json": _json(asyncapi()), "flow.mmd": flow_diagram().encode()}
    for topic in TOPICS.values():
        for major in topic.models:
            files[f"{topic.manifest.name}/v{major}.schema.json"] = _json(json_schema(topic, major))
    written = []
    for name, content in sorted(files.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        written.append(path)
    return written


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n"
