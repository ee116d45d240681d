"""Reads the project's own Python files: lines, comments, functions. What the quality gates measure."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("schemas", "memory", "agents", "feedback", "streams")

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Function:
    """A function or method; `length` is its lines without the docstring."""

    name: str
    line: int
    length: int
    documented: bool
    public: bool

    @property
    def is_test(self) -> bool:
        """Collected by pytest."""
        return self.name.startswith("test")


@dataclass(frozen=True)
class Module:
    """One parsed file; `code` and `comments` count lines that hold code, and lines that hold a comment."""

    path: Path
    text: str = field(repr=False)
    tree: ast.Module = field(repr=False)
    lines: int
    nodes: tuple[ast.AST, ...] = field(repr=False)
    functions: tuple[Function, ...]

    @cached_property
    def counts(self) -> tuple[int, int]:
        """Lines of code and lines with a comment; tokenizing is slow, so only on demand."""
        return _count(self.text, self.nodes)

    @property
    def code(self) -> int:
        """Lines of code."""
        return self.counts[0]

    @property
    def comments(self) -> int:
        """Lines with a comment."""
        return self.counts[1]

    @property
    def documented(self) -> bool:
        """It opens with a docstring."""
        return ast.get_docstring(self.tree) is not None


def _spans(nodes: Iterable[ast.AST]) -> Iterator[ast.Expr]:
    """Every docstring."""
    for node in nodes:
        if isinstance(node, FunctionNode | ast.ClassDef | ast.Module) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first


def _height(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _function(node: FunctionNode) -> Function:
    documented = ast.get_docstring(node) is not None
    length = _height(node) - (_height(node.body[0]) if documented else 0)
    return Function(node.name, node.lineno, length, documented, not node.name.startswith("_"))


def _count(text: str, nodes: Iterable[ast.AST]) -> tuple[int, int]:
    """Lines of code and lines with a comment; docstrings are neither."""
    prose = {line for node in _spans(nodes) for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    code: set[int] = set()
    comments: set[int] = set()
    skipped = {tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in skipped:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - prose), len(comments)


def parse(text: str, path: Path) -> Module:
    """A module from its text. Raises SyntaxError."""
    tree = ast.parse(text, str(path))
    nodes = tuple(ast.walk(tree))
    functions = tuple(_function(node) for node in nodes if isinstance(node, FunctionNode))
    return Module(path, text, tree, len(text.splitlines()), nodes, functions)


def read(folder: Path) -> list[Module]:
    """All non-empty Python files below the folder, in path order."""
    found = sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)
    modules = (parse(path.read_text(encoding="utf-8"), path) for path in found)
    return [module for module in modules if module.lines]


@cache
def package() -> list[Module]:
    """The five packages."""
    return [module for name in PACKAGES for module in read(ROOT / name)]


@cache
def suites() -> list[Module]:
    """The tests."""
    return read(ROOT / "tests")
