"""Approved wording: complete in both languages, typed, and never built from what somebody else wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.replies.templates import MAX_PARAM_CHARS, PACK, Template, TemplateError, fill, load_templates, shown

TEMPLATES = load_templates()
SAMPLES: dict[str, Any] = {"text": "样品", "words": "一行\n又一行", "yuan": 5000, "number": 3}


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_every_template_speaks_both_languages(name: str) -> None:
    """Each can be rendered in Chinese and English from its declared parameters alone, and says its facts."""
    template = TEMPLATES[name]
    params = {param: SAMPLES[kind] for param, kind in template.params.items()}

    zh, en = (fill(template, language, params) for language in ("zh", "en"))

    assert any("\u4e00" <= char <= "\u9fff" for char in zh)
    assert name == "common.staff" or not any("\u4e00" <= char <= "\u9fff" for char in en.replace("样品", ""))
    assert "{" not in zh + en


def test_mixed_language_is_answered_in_chinese() -> None:
    """Only a wholly English message is answered in English."""
    template = Template(zh="你好", en="hello")

    assert ["你好", "你好", "hello"] == [fill(template, language, {}) for language in ("zh", "mixed", "en")]


def test_money_is_yuan_text() -> None:
    """5000 fen is said as 50.00, exactly."""
    assert "50.00" == shown("yuan", 5000)


@pytest.mark.parametrize(("kind", "value"), [
    ("yuan", "50"), ("yuan", 50.0), ("yuan", True), ("number", "3"), ("text", 3), ("text", None),
])  # fmt: skip
def test_a_parameter_has_its_kind(kind: Any, value: Any) -> None:
    """A value of another kind is refused and not shown somehow."""
    with pytest.raises(TypeError):
        shown(kind, value)


def test_text_is_never_a_template() -> None:
    """Braces, line breaks and direction marks in an order's text stay text (promise 7)."""
    template = Template(params={"items": "text"}, zh="订单：{items}。", en="Order: {items}.")

    assert "订单：{items} {0.__class__}  x。" == fill(template, "zh", {"items": "{items}\n{0.__class__}\u202e x"})


def test_a_long_parameter_is_cut() -> None:
    """No parameter pushes the wording out of sight."""
    assert MAX_PARAM_CHARS == len(shown("text", "x" * 5_000))


@pytest.mark.parametrize(("field", "part", "body"), [
    ("en", "Field required", {"zh": "好"}),
    ("(template)", "differ", {"zh": "好{name}", "en": "ok"}),
    ("(template)", "differ", {"zh": "好", "en": "ok", "params": {"name": "text"}}),
    ("(template)", "plain name", {"zh": "{a.b}", "en": "{a.b}", "params": {"a.b": "text"}}),
    ("(template)", "plain name", {"zh": "{a!r}", "en": "{a}", "params": {"a": "text"}}),
    ("params.a", "Input should be", {"zh": "{a}", "en": "{a}", "params": {"a": "html"}}),
    ("colour", "Extra inputs", {"zh": "好", "en": "ok", "colour": "red"}),
    ("(template)", "says that something was done", {"zh": "已为您退款", "en": "ok"}),
    ("(template)", "says that something was done", {"zh": "好", "en": "It has been refunded"}),
    ("(template)", r"needs facts: \[tool_result\]", {"zh": "退款成功", "en": "ok", "success": "create_refund"}),
])  # fmt: skip
def test_a_wrong_template_is_refused_by_name(tmp_path: Path, field: str, part: str, body: dict[str, Any]) -> None:
    """File, id and field are named; done-words without a success tool can't even be loaded (R-003-39)."""
    (tmp_path / "shop.yaml").write_text(yaml.safe_dump({"shop.hello": body}), encoding="utf-8")

    with pytest.raises(TemplateError, match=part) as caught:
        load_templates(tmp_path)

    assert ("shop.yaml", "shop.hello", field) == (caught.value.file, caught.value.template, caught.value.field)


@pytest.mark.parametrize("text", ["a: [", "- a\n- b"])
def test_a_file_of_another_shape_is_named(tmp_path: Path, text: str) -> None:
    """A file that is no mapping of templates is refused by its name."""
    (tmp_path / "shop.yaml").write_text(text, encoding="utf-8")

    with pytest.raises(TemplateError, match=r"shop\.yaml"):
        load_templates(tmp_path)


def test_a_later_folder_wins(tmp_path: Path) -> None:
    """A shop's own wording replaces the built-in one."""
    body = {"common.greeting": {"zh": "欢迎光临", "en": "Welcome"}}
    (tmp_path / "shop.yaml").write_text(yaml.safe_dump(body), encoding="utf-8")

    assert "欢迎光临" == load_templates(PACK, tmp_path)["common.greeting"].zh
