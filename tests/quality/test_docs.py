"""The generated parts of the documentation are what the code gives."""

from __future__ import annotations

import pytest

from streams.scenario.format import parse
from streams.scenario.local import play_in_memory
from streams.settings import Settings
from tests.quality.docs import generated
from tests.quality.source import ROOT


@pytest.mark.parametrize("name", ["README.md", "docs/delivery.md", "docs/flows.md"])
def test_generated_part_is_up_to_date(name: str) -> None:
    """What `make docs` would write already stands there."""
    assert dict(generated())[name] == (ROOT / name).read_text(encoding="utf-8")


def test_scenario_in_contributing_plays() -> None:
    """The example that a newcomer copies comes out as it says."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    example = parse(text.split("```yaml\n")[1].split("```")[0], "CONTRIBUTING.md")

    assert [] == play_in_memory([example], Settings())[0].faults


def test_readme_names_only_commands_that_exist() -> None:
    """Each `make` target and each `interlock` command in README and CONTRIBUTING is there."""
    from streams.cli import build

    app = build()
    commands = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    commands |= {group.name for group in app.registered_groups if group.name}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    text = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md"))

    lines = [line.strip("`| ") for line in text.splitlines()]
    words = [line.split() for line in lines if line.startswith(("make ", "interlock "))]

    assert {line[1].strip("`") for line in words if line[0] == "interlock"} <= commands
    assert all(f"\n{line[1].strip('`')}:" in makefile for line in words if line[0] == "make")
