"""The size budget holds, and each of its gates turns red on a deliberately bad file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.quality import budget
from tests.quality.source import Module, package, parse, suites


def _module(text: str) -> Module:
    return parse(text, Path("bad.py"))


@pytest.mark.slow
def test_project_keeps_its_budget() -> None:
    """No module, function or test of the project is over its size, undocumented or silent about errors."""
    assert [] == budget.breaches()


@pytest.mark.slow
def test_tests_are_as_many_lines_as_code() -> None:
    """The report counts both sides, and says so when the tests are fewer than the code."""
    assert any(line.startswith("tests/code: ") for line in budget.report())


def test_long_module_is_named() -> None:
    """A module above 400 lines is a breach that names file and length."""
    found = list(budget.sizes([_module('"""Doc."""\n' + "x = 1\n" * 400)]))

    assert ["bad.py: 401 lines, at most 400"] == found


def test_long_function_is_named() -> None:
    """A function above 50 lines is a breach; its docstring does not count."""
    body = "    x = 1\n" * 49
    fits = _module(f'def f() -> None:\n    """One.\n\n    Two.\n    """\n{body}')
    over = _module(f"def f() -> None:\n{body}    x = 2\n")

    assert [] == list(budget.sizes([fits]))
    assert ["bad.py:1: f has 51 lines, at most 50"] == list(budget.sizes([over]))


def test_coarse_medians_are_named() -> None:
    """The median module and the median function have limits of their own."""
    functions = "".join(f"def f{number}() -> None:\n" + "    x = 1\n" * 9 for number in range(20))

    found = list(budget.medians([_module(functions)]))

    assert ["the median module has 200 lines, at most 150", "the median function has 10 lines, at most 8"] == found


def test_module_without_docstring_is_named() -> None:
    """Every module opens with its job."""
    assert ["bad.py: no module docstring"] == list(budget.docstrings([_module("x = 1\n")]))


def test_test_without_rule_is_named() -> None:
    """Every test states its rule, in at most 25 lines."""
    short = _module("def test_x() -> None:\n    assert True\n")
    long = _module('def test_x() -> None:\n    """Rule."""\n' + "    x = 1\n" * 25)

    assert ["bad.py:1: test_x states no rule (docstring)"] == list(budget.rules([short]))
    assert ["bad.py:1: test_x has 26 lines, at most 25"] == list(budget.rules([long]))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("raise Exception('no')\n", "raises a bare Exception; name whose fault it is"),
        ("raise Exception\n", "raises a bare Exception; name whose fault it is"),
        ("try:\n    f()\nexcept Exception:\n    pass\n", "a silent except"),
        ("try:\n    f()\nexcept:\n    x = 1 if y else 2\n    pass\n", None),
        (
            "for x in y:\n    try:\n        f()\n    except (OSError, BaseException):\n        continue\n",
            "a silent except",
        ),
        ("with contextlib.suppress(Exception):\n    f()\n", "suppresses every error"),
        ("try:\n    f()\nexcept KeyError:\n    pass\n", None),
        ("try:\n    f()\nexcept Exception:\n    log.exception('f')\n", None),
    ],
)
def test_silent_errors_are_named(text: str, fault: str | None) -> None:
    """A broad error is never raised and never swallowed without a trace; a named one may be expected."""
    found = [line.split(": ", 1)[1] for line in budget.errors([_module(text)])]

    assert ([fault] if fault else []) == found


@pytest.mark.slow
def test_measures_read_real_files() -> None:
    """The gate sees the packages and the tests, comments and code counted apart from docstrings."""
    module = _module('"""Doc."""\n\nx = 1  # why\n# and why\ny = """text"""\n')

    assert (5, 2, 2) == (module.lines, module.code, module.comments)
    assert {"schemas", "memory", "streams"} <= {
        item.path.parts[-2] for item in package() if item.path.name == "__init__.py"
    }
    assert any(item.path.name == "test_budget.py" for item in suites())
