"""What others get: JSON Schemas that say the same as the models, a valid AsyncAPI document, a true picture."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest
from typer.testing import CliRunner

from schemas import codec
from schemas.errors import BadRecordError
from schemas.export import ASYNCAPI, asyncapi, export, flow_diagram, json_schema, with_picture
from schemas.published import examples
from schemas.topics import RAW_TOPIC, TOPICS, Topic
from streams.cli import build as build_cli

ROOT = Path(__file__).parents[2]
UNIQUE = {topic.manifest.name: topic for topic in TOPICS.values()}
every_topic = pytest.mark.parametrize("topic", UNIQUE.values(), ids=UNIQUE)
SPECIFICATION = "@asyncapi/specs@6.11.1"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The AsyncAPI document, as a reader parses it."""
    parsed: dict[str, Any] = json.loads(orjson.dumps(asyncapi()))
    return parsed


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for part in value.values():
            yield from _references(part)
    elif isinstance(value, list):
        for part in value:
            yield from _references(part)


def _resolve(document: Any, reference: str) -> Any:
    for part in reference.removeprefix("#/").split("/"):
        document = document[part]
    return document


@every_topic
def test_json_schema_is_valid_and_takes_the_examples(topic: Topic) -> None:
    """The exported schema is valid 2020-12, and another implementation takes every example by it."""
    for major in topic.models:
        schema = json_schema(topic, major)
        validator = jsonschema.Draft202012Validator(schema)
        jsonschema.Draft202012Validator.check_schema(schema)
        for text in examples(topic, major).values():
            validator.validate(json.loads(text))


WRONG: list[dict[str, Any]] = [
    {"id": 5}, {"id": ""}, {"id": None}, {"occurred_at": "1767578400000"}, {"occurred_at": 1767578400},
    {"occurred_at": 1767578400000000}, {"body": {"kind": "gift"}}, {"body": {"kind": "recall"}}, {"extra": 1},
    {"body": {"kind": "rating", "score": 6}}, {"body": {"kind": "presence", "status": "away"}},
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_json_schema_refuses_what_the_model_refuses(wrong: dict[str, Any]) -> None:
    """A producer who checks by the exported schema is not surprised by a dead letter (case C23, D15)."""
    record = json.loads(examples(TOPICS[RAW_TOPIC], 1)["message-zh.json"]) | wrong
    assert not jsonschema.Draft202012Validator(json_schema(TOPICS[RAW_TOPIC], 1)).is_valid(record)
    with pytest.raises(BadRecordError):
        codec.decode(RAW_TOPIC, orjson.dumps(record))


def test_the_document_has_every_topic(document: dict[str, Any]) -> None:
    """Each topic is a channel with its messages, and is sent to and received from."""
    assert ASYNCAPI == document["asyncapi"]
    assert set(TOPICS) == set(document["channels"]) == {channel["address"] for channel in document["channels"].values()}
    actions = {(operation["channel"]["$ref"], operation["action"]) for operation in document["operations"].values()}
    assert {(f"#/channels/{name}", action) for name in TOPICS for action in ("send", "receive")} == actions


def test_references_lead_somewhere(document: dict[str, Any]) -> None:
    """Every reference is inside the document, and an operation's messages are its channel's own."""
    assert all(_resolve(document, reference) for reference in _references(document))
    for operation in document["operations"].values():
        assert all(message["$ref"].startswith(operation["channel"]["$ref"]) for message in operation["messages"])


def test_no_schema_is_left_over(document: dict[str, Any]) -> None:
    """Every definition is used, and each has a name that AsyncAPI allows."""
    used = set(_references(document))
    names = document["components"]["schemas"]
    assert all(f"#/components/schemas/{name}" in used for name in names)
    assert all(re.fullmatch(r"[\w.-]+", name) for name in (*names, *document["components"]["messages"]))


def test_payloads_take_the_examples(document: dict[str, Any]) -> None:
    """The payload of each message, as draft 7 inside the document, takes the message's own examples."""
    for message in document["components"]["messages"].values():
        schema = {"components": document["components"], "allOf": [message["payload"]]}
        validator = jsonschema.Draft7Validator(schema)
        assert message["examples"]
        for example in message["examples"]:
            validator.validate(example["payload"])


def test_headers_are_cloudevents(document: dict[str, Any]) -> None:
    """Each message has the CloudEvents headers, its own type among them, and a key."""
    for name, message in document["components"]["messages"].items():
        assert [{"$ref": "#/components/messageTraits/cloudEvent"}] == message["traits"]
        assert message["headers"]["properties"]["ce_type"]["const"] == message["name"]
        assert message["bindings"]["kafka"]["key"]["description"], name
    required = document["components"]["messageTraits"]["cloudEvent"]["headers"]["required"]
    assert ["ce_specversion", "ce_id", "ce_source", "ce_type"] == required


@pytest.mark.slow
def test_valid_by_the_published_specification(document: dict[str, Any], tmp_path: Path) -> None:
    """The document is valid by AsyncAPI's own JSON Schema (fetched with npm), and a broken one is not."""
    npm = shutil.which("npm")
    fetched = npm and subprocess.run([npm, "pack", SPECIFICATION], cwd=tmp_path, capture_output=True, check=False)
    archive = next(tmp_path.glob("*.tgz"), None)
    if not fetched or archive is None:
        assert not os.environ.get("CI"), "npm is needed to fetch the specification's schema"
        pytest.skip("npm can't fetch the specification's schema")
    with tarfile.open(archive) as package:
        file = package.extractfile(f"package/schemas/{ASYNCAPI}-without-$id.json")
        assert file is not None
        validator = jsonschema.Draft7Validator(json.load(file))
    assert [] == [error.message for error in validator.iter_errors(document)]
    broken = document | {"channels": {"plans": {"address": 5}}}
    assert not validator.is_valid(broken)


def test_the_picture_shows_every_topic() -> None:
    """Each topic is in the picture, with somebody who writes it; dead letters are not."""
    picture = flow_diagram()
    for name in TOPICS:
        assert (f'["{name}"]' in picture) != name.endswith(".dlq")
        assert name.endswith(".dlq") or f" --> t_{name.replace('.', '_')}\n" in picture


def test_readme_has_the_picture() -> None:
    """The README's copy, between its markers, is the one that the manifests give; `make docs` writes it."""
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "<!-- flow -->\n```mermaid\nflowchart" in readme
    assert with_picture(readme) == readme


def test_the_picture_goes_between_its_markers() -> None:
    """Only what is between the markers is written."""
    assert f"a\n<!-- flow -->\n```mermaid\n{flow_diagram()}```\n<!-- /flow -->\nb" == with_picture(
        "a\n<!-- flow -->\nold\n<!-- /flow -->\nb"
    )
    assert "no markers" == with_picture("no markers")


def test_files(tmp_path: Path) -> None:
    """One schema a version, one document, one picture; all are what the functions give."""
    written = {path.relative_to(tmp_path).as_posix() for path in export(tmp_path)}
    assert {"asyncapi.json", "flow.mmd", *(f"{name}/v1.schema.json" for name in UNIQUE)} == written
    assert asyncapi() == orjson.loads((tmp_path / "asyncapi.json").read_bytes())
    assert flow_diagram() == (tmp_path / "flow.mmd").read_text("utf-8")


def test_the_command(tmp_path: Path) -> None:
    """`interlock export DIR` writes the files and says how many; without a folder it says what is missing."""
    result = CliRunner().invoke(build_cli(), ["export", str(tmp_path / "contracts")])
    assert (0, True) == (result.exit_code, f"{len(UNIQUE) + 2} files" in result.output)
    assert "nothing to do: give a folder" in str(CliRunner().invoke(build_cli(), ["export"]).exception)
