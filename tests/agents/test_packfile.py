"""YAML of pack files: strict about keys, and errors with a line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from agents import packfile
from agents.flows.model import FlowError, load_flow
from agents.replies.templates import TemplateError, load_templates
from agents.tools.spec import SpecError, load_tool


def written(folder: Path, text: str) -> Path:
    """A pack file."""
    file = folder / "own.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_key_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    """YAML would keep the last one, and a row of a table would be gone; the error names key and line."""
    file = written(tmp_path, "table:\n  start: {ok: a}\n  start: {ok: b}\n")
    with pytest.raises(yaml.YAMLError) as caught:
        packfile.read(file)
    assert "is no YAML: 'start' is there twice, line 3" == packfile.problem(caught.value)


def test_the_same_key_at_two_places_is_fine(tmp_path: Path) -> None:
    """Only one mapping is looked at; lists, texts and numbers are read as YAML has them."""
    file = written(tmp_path, "a: {x: 1}\nb: {x: [2, three]}\n")
    assert {"a": {"x": 1}, "b": {"x": [2, "three"]}} == packfile.read(file)


@pytest.mark.parametrize("text", ["a: [", "a: 1\na: 2\n"])
def test_every_loader_tells_kind_file_and_line_on_one_line(tmp_path: Path, text: str) -> None:
    """A flow, a tool and a template can have the same file name: the error says which of them it is."""
    file = written(tmp_path, text)
    with pytest.raises(FlowError, match=r"^flow own\.yaml: .* is no YAML: [^\n]*, line \d$"):
        load_flow(file, {})
    with pytest.raises(SpecError, match=r"^tool own\.yaml: .* is no YAML: [^\n]*, line \d$"):
        load_tool(file)
    with pytest.raises(TemplateError, match=r"^template own\.yaml: .* is no YAML: [^\n]*, line \d$"):
        load_templates(tmp_path)
