"""A published version can't change; a new one is easy to publish."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas import codec
from schemas.errors import ContractError
from schemas.published import changed, examples, hash_of, key_of, locked, publish, write
from schemas.topics import TOPICS, Topic, build
from tests.schemas.versions import quotes, to_v2

UNIQUE = list({topic.manifest.name: topic for topic in TOPICS.values()}.values())
QUOTES = quotes(upgrade=f"{to_v2.__module__}:to_v2")


def bumped(topic: Topic, model: str, minor: int = 0) -> Topic:
    """The topic with another model as its version 1."""
    version = topic.manifest.versions[1].model_copy(update={"model": model, "minor": minor})
    return build(topic.manifest.model_copy(update={"versions": {1: version}}))


def test_published_versions_are_as_they_were() -> None:
    """Every version is in published.json, with the shape it had when it was published.

    A new version, or a new minor one: say so in the manifest, then `interlock export --publish`. A changed
    published version: give the new shape a new minor (a field with a default) or major version instead.
    """
    new, broken = changed(UNIQUE, locked())
    assert ([], []) == (new, broken), "see this test's docstring for how to publish"


def test_a_changed_version_is_refused() -> None:
    """Another shape under a published version is found, and can't be published."""
    other = bumped(TOPICS["plans"], "schemas.tools:ToolCall")
    assert ([], ["plans:1.0"]) == changed([other], locked())
    with pytest.raises(ContractError, match=r"published versions changed: plans:1\.0.*raise `minor`"):
        publish([other], locked())


def test_a_new_minor_version_is_published_beside_the_old() -> None:
    """A raised minor version is a new entry; the old one stays."""
    minor = bumped(TOPICS["plans"], "schemas.plans:ExecutionPlan", 1)
    lock = publish([minor], locked())
    assert {"plans:1.1"} == set(lock) - set(locked())
    assert lock["plans:1.1"] == lock["plans:1.0"]


def test_words_are_not_the_contract() -> None:
    """Descriptions may be said better: only the shape is hashed, and a field may be called `title`."""
    assert hash_of(QUOTES, 1) != hash_of(QUOTES, 2)
    assert "quotes:2.1" == key_of(QUOTES, 2)


def test_a_newer_version_reads_the_older_ones_examples() -> None:
    """Every example of every version is read as the version that is written; also a made-up pair of versions."""
    for topic in UNIQUE:
        for major in topic.models:
            for text in examples(topic, major).values():
                codec.decode_as(topic, text, f"{topic.manifest.type}.v{major}")
    read = codec.decode_as(QUOTES, b'{"quote_id":"q","amount":"3"}', "interlock.quotes.v1")
    assert 300 == read.prices[0].fen


def test_publishing_changes_nothing_that_is_published(tmp_path: Path) -> None:
    """Publishing what is published already writes the same files."""
    for topic in UNIQUE:
        (tmp_path / "examples" / topic.manifest.name / "v1").mkdir(parents=True)
    assert set(write(UNIQUE, tmp_path)) == set(locked())
    assert [] == write(UNIQUE, tmp_path)
    for topic in UNIQUE:
        for name, text in examples(topic, 1).items():
            assert text == (tmp_path / "examples" / topic.manifest.name / "v1" / name).read_bytes()
