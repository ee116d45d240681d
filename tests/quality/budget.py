"""The size budget and the house rules that ruff has no word for; `python -m tests.quality.budget` prints them."""

from __future__ import annotations

import ast
import statistics
import sys
from collections.abc import Iterator, Sequence

from tests.quality.source import ROOT, Function, Module, package, suites

MODULE_MEDIAN = 150
MODULE_MAX = 400
FUNCTION_MEDIAN = 8
FUNCTION_MAX = 50
TEST_MAX = 25
RATIO_MIN = 1.0
COMMENTS = (5, 15)

BROAD = frozenset({"Exception", "BaseException"})


def _name(module: Module) -> str:
    return str(module.path.relative_to(ROOT)) if module.path.is_relative_to(ROOT) else str(module.path)


def _long(module: Module, functions: Sequence[Function], limit: int) -> Iterator[str]:
    for function in functions:
        yield f"{_name(module)}:{function.line}: {function.name} has {function.length} lines, at most {limit}"


def sizes(modules: Sequence[Module]) -> Iterator[str]:
    """A module or a function that is longer than any may be."""
    for module in modules:
        if module.lines > MODULE_MAX:
            yield f"{_name(module)}: {module.lines} lines, at most {MODULE_MAX}"
        yield from _long(module, [f for f in module.functions if f.length > FUNCTION_MAX], FUNCTION_MAX)


def medians(modules: Sequence[Module]) -> Iterator[str]:
    """The package as a whole has grown too coarse."""
    lines = statistics.median(module.lines for module in modules)
    lengths = statistics.median(function.length for module in modules for function in module.functions)
    if lines > MODULE_MEDIAN:
        yield f"the median module has {lines:g} lines, at most {MODULE_MEDIAN}"
    if lengths > FUNCTION_MEDIAN:
        yield f"the median function has {lengths:g} lines, at most {FUNCTION_MEDIAN}"


def docstrings(modules: Sequence[Module]) -> Iterator[str]:
    """A module without a docstring."""
    for module in modules:
        if not module.documented:
            yield f"{_name(module)}: no module docstring"


def rules(modules: Sequence[Module]) -> Iterator[str]:
    """A test without the rule that it states, or too long to be one rule."""
    for module in modules:
        for function in module.functions:
            if function.is_test and not function.documented:
                yield f"{_name(module)}:{function.line}: {function.name} states no rule (docstring)"
        yield from _long(module, [f for f in module.functions if f.is_test and f.length > TEST_MAX], TEST_MAX)


def _is_broad(node: ast.expr | None) -> bool:
    if node is None:
        return True
    if isinstance(node, ast.Tuple):
        return any(map(_is_broad, node.elts))
    return isinstance(node, ast.Name) and node.id in BROAD


def _says_nothing(handler: ast.ExceptHandler) -> bool:
    """No call, no raise, no assignment: the error leaves no trace."""
    heard = (ast.Call, ast.Raise, ast.Assign, ast.AugAssign)
    return not any(isinstance(node, heard) for statement in handler.body for node in ast.walk(statement))


def errors(modules: Sequence[Module]) -> Iterator[str]:
    """`raise Exception`, and a broad `except` or `suppress` that swallows."""
    for module in modules:
        for node in module.nodes:
            where = f"{_name(module)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Raise):
                raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
                if raised is not None and _is_broad(raised):
                    yield f"{where}: raises a bare Exception; name whose fault it is"
            elif isinstance(node, ast.ExceptHandler) and _is_broad(node.type) and _says_nothing(node):
                yield f"{where}: a silent except"
            elif (
                isinstance(node, ast.Call)
                and ast.unparse(node.func).endswith("suppress")
                and any(map(_is_broad, node.args))
            ):
                yield f"{where}: suppresses every error"


def breaches() -> list[str]:
    """Everything over budget, as `file:line: what, and the limit`."""
    ours, theirs = package(), suites()
    every = [*ours, *theirs]
    return [*sizes(every), *medians(ours), *docstrings(every), *rules(theirs), *errors(ours)]


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def report() -> list[str]:
    """The figures, and a warning for what is asked of the whole but not a reason to stop."""
    ours, theirs = package(), suites()
    functions = [function.length for module in ours for function in module.functions]
    comments = 100 * _share(sum(module.comments for module in ours), sum(module.code for module in ours))
    ratio = _share(sum(module.code for module in theirs), sum(module.code for module in ours))
    lines = [
        f"modules: {len(ours)}, median {statistics.median(module.lines for module in ours):.0f} lines",
        f"functions: {len(functions)}, median {statistics.median(functions):.0f} lines, longest {max(functions)}",
        f"comments: {comments:.1f} per 100 code lines ({COMMENTS[0]} to {COMMENTS[1]})",
        f"tests/code: {ratio:.2f} (at least {RATIO_MIN})",
    ]
    if ratio < RATIO_MIN:
        lines.append("warning: too few tests for the code")
    if not COMMENTS[0] <= comments <= COMMENTS[1]:
        lines.append("warning: comments outside their range")
    return lines


def main() -> int:
    """Print the figures and the breaches; 1 if there are any."""
    found = breaches()
    print(*report(), *found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
