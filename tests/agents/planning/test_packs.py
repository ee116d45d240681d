"""A shop's own files over the built-in ones, and the rows that run them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from agents.flows.model import PACK as FLOWS
from agents.flows.model import FlowError
from agents.planning.pack import PackError, load_pack
from streams.processors import planning, tools
from streams.settings import Settings
from tests.agents.support import Chat


def test_a_shop_adds_only_files(tmp_path: Path) -> None:
    """A folder with a flow, a tool and a template is laid over the built-in pack."""
    (tmp_path / "templates").mkdir()
    body = {"common.greeting": {"zh": "欢迎光临", "en": "Welcome"}}
    (tmp_path / "templates" / "own.yaml").write_text(yaml.safe_dump(body), encoding="utf-8")

    chat = Chat(pack=load_pack(tmp_path))

    assert ["common.greeting"] == chat.say("你好")
    assert "欢迎光临" == chat.text()
    assert load_pack().flows.keys() == load_pack(tmp_path).flows.keys()


def test_a_flow_needs_its_templates(tmp_path: Path) -> None:
    """Flows, tools and templates are checked together when they are loaded, not when a customer comes."""
    (tmp_path / "flows").mkdir()
    path = tmp_path / "flows" / "refund.yaml"
    shutil.copy(FLOWS / "refund.yaml", path)
    path.write_text(path.read_text("utf-8").replace("refund.success", "refund.succes"), encoding="utf-8")

    with pytest.raises(FlowError, match=r"refund\.yaml: notify_success: template: 'refund\.succes' is no template"):
        load_pack(tmp_path)


def test_a_flow_begins_with_an_intent_that_is_read(tmp_path: Path) -> None:
    """A flow for an intent that no words mean would never begin: it is refused when it is loaded."""
    (tmp_path / "flows").mkdir()
    text = (FLOWS / "human.yaml").read_text("utf-8")
    own = text.replace("flow: human", "flow: opening").replace("intents: [human]", "intents: [opening_hours]")
    (tmp_path / "flows" / "opening.yaml").write_text(own, encoding="utf-8")

    with pytest.raises(FlowError, match=r"flow opening\.yaml: \(flow\): intents: 'opening_hours' is no intent"):
        load_pack(tmp_path)


def test_a_folder_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    """`replies` instead of `templates` would be left out in silence (promise 10)."""
    (tmp_path / "replies").mkdir()
    with pytest.raises(PackError, match="replies: a pack folder has flows, tools and templates"):
        load_pack(tmp_path)


def test_the_rows_name_their_inputs_and_what_happens_when_they_fail() -> None:
    """R-002-49: topics, failure domain, degrade path and alarm of planning and tools."""
    settings = Settings()
    for row, inputs in ((planning.row(settings), {"messages.normalized", "tools.results", "human.decisions",
                                                  "timers.fired", "channel.events"}),
                        (tools.row(settings), {"tools.calls", "tools.results"})):  # fmt: skip
        assert inputs == set(row.inputs)
        assert row.failure_domain
        assert row.degrade
        assert row.alarm.startswith("Interlock")
