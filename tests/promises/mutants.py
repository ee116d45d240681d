"""Breaks each promise on purpose, one line at a time; its test must fail. `python -m tests.promises.mutants [--write]`.

Each mutant is applied in a copy of the tree; one that survives, or that no longer applies, is an error.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from streams.broker import EmbeddedKafka
from tests.promises.broken import MUTANTS, Mutant
from tests.quality.source import ROOT

COPIED = ("schemas", "memory", "agents", "feedback", "streams", "tests", "docs", "pyproject.toml", "README.md")
DOCS = ROOT / "docs" / "promises.md"
SECONDS = 240
INTRODUCTION = (
    "Each promise has a test that carries its name, and the test fails when the promise is broken: `make mutants`\n"
    "breaks the code one line at a time, in a copy. A rule of one part has its mutant here as well, with the test of\n"
    "that part which fails. `python -m tests.promises.mutants --write` wrote this page; `--only 9` and\n"
    "`--match keeper` run some."
)


def module_of(promise: int, root: Path = ROOT) -> Path:
    """The promise's test module. Raises ValueError when it has none, or two."""
    (found,) = (root / "tests" / "promises").glob(f"test_promise_{promise:02}_*.py")
    return found


def noticed_by(mutant: Mutant, root: Path = ROOT) -> Path:
    """The module that must notice it."""
    return root / "tests" / mutant.test if mutant.test else module_of(mutant.promise, root)


def broken(mutant: Mutant, root: Path = ROOT) -> str:
    """The whole file with its line broken. Raises ValueError, with what is wrong, for one that can't be applied."""
    whole = (root / mutant.file).read_text(encoding="utf-8")
    count = whole.count(mutant.old)
    if count != 1:
        message = f"{mutant.file}: {mutant.old!r} stands {count} times, not once ({mutant.breaks})"
        raise ValueError(message)
    found = whole.replace(mutant.old, mutant.new)
    try:
        same = mutant.file.endswith(".py") and ast.dump(ast.parse(found)) == ast.dump(ast.parse(whole))
    except SyntaxError as error:
        message = f"{mutant.file}: is no Python with {mutant.new!r}, line {error.lineno} ({mutant.breaks})"
        raise ValueError(message) from error
    if same or found == whole:
        message = f"{mutant.file}: {mutant.new!r} breaks nothing ({mutant.breaks})"
        raise ValueError(message)
    return found


def stale(mutants: Sequence[Mutant] = MUTANTS) -> list[str]:
    """Mutants that can't be applied: the line is not there, or there twice, or the broken one says the same."""
    found = []
    for one in mutants:
        try:
            broken(one)
        except (ValueError, OSError) as error:
            found.append(str(error))
    return found


def copy_tree(target: Path) -> None:
    """The working tree as it is, without caches."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        else:
            shutil.copy(source, target / name)


def run(tree: Path, test: Path, where: str, bootstrap: str) -> bool:
    """Whether the test passes in the copy. Raises RuntimeError when no test ran."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", "--timeout",
               "150", "-m", where, str(test.relative_to(tree))]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1",
                   **({"INTERLOCK_BOOTSTRAP_SERVERS": bootstrap} if bootstrap else {})}  # fmt: skip
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=SECONDS,
                              check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    if done.returncode not in (0, 1, 2):  # 2: the mutant can't even be imported
        message = (f"{test.name} -m {where!r} did not run (pytest ended with {done.returncode}; 5: it selects no test):"
                   f" {done.stdout[-500:]}{done.stderr[-500:]}")  # fmt: skip
        raise RuntimeError(message)
    return done.returncode == 0


@contextlib.contextmanager
def applied(tree: Path, mutant: Mutant) -> Iterator[None]:
    """The copy with this one line broken. Raises ValueError for one that can't be applied."""
    file = tree / mutant.file
    whole = file.read_text(encoding="utf-8")
    file.write_text(broken(mutant, tree), encoding="utf-8")
    try:
        yield
    finally:
        file.write_text(whole, encoding="utf-8")


def killed(tree: Path, mutant: Mutant, bootstrap: str) -> bool:
    """Whether its test fails."""
    with applied(tree, mutant):
        return not run(tree, noticed_by(mutant, tree), mutant.where, bootstrap)


@contextlib.contextmanager
def broker(folder: Path) -> Iterator[str]:
    """The given cluster, else one of our own."""
    given = os.environ.get("INTERLOCK_BOOTSTRAP_SERVERS")
    if given:
        yield given
        return
    own = EmbeddedKafka(folder)
    try:
        yield own.start()
    finally:
        own.stop()


def document(results: Sequence[tuple[Mutant, bool]]) -> str:
    """docs/promises.md: each promise, its test, and what breaking it did; then the parts that keep it."""
    lines = ["# The ten promises", "", INTRODUCTION, ""]
    for promise in range(1, 11):
        test = module_of(promise)
        words = test.read_text(encoding="utf-8").split('"""')[1].strip()
        lines += [f"## {words.removesuffix('.')}", "", f"Test: `{test.relative_to(ROOT)}`", "",
                  "| broken on purpose | in | the test |", "|---|---|---|"]  # fmt: skip
        lines += [row(one, dead=dead) for one, dead in results if one.promise == promise]
        lines.append("")
    return "\n".join(lines)


def row(mutant: Mutant, *, dead: bool = True) -> str:
    """A mutant's line on the page."""
    test = f"`tests/{mutant.test}` " if mutant.test else ""
    return f"| {mutant.breaks} | `{mutant.file}` | {test}{'fails' if dead else '**passes**'} |"


def say(line: str) -> None:
    """One line, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def groups(mutants: Sequence[Mutant]) -> dict[tuple[str, str], list[Mutant]]:
    """By test module and selection: each is first run on the code as it is."""
    found: dict[tuple[str, str], list[Mutant]] = {}
    for one in mutants:
        found.setdefault((str(noticed_by(one).relative_to(ROOT)), one.where), []).append(one)
    return found


def play(mutants: Sequence[Mutant], tree: Path, bootstrap: str) -> tuple[list[tuple[Mutant, bool]], list[str]]:
    """What became of each mutant; and the tests that fail without any, whose mutants say nothing."""
    results: list[tuple[Mutant, bool]] = []
    faults: list[str] = []
    for (test, where), part in groups(mutants).items():
        began = time.monotonic()
        if not any(run(tree, tree / test, where, bootstrap) for _ in range(2)):  # twice: a busy machine
            faults.append(f"{test} -m {where!r} fails without any mutant")
            say(faults[-1])
            continue
        say(f"{test} -m {where!r}: {time.monotonic() - began:.0f} s, {len(part)} mutants")
        for one in part:
            began = time.monotonic()
            results.append((one, killed(tree, one, bootstrap)))
            say(f"  {'killed  ' if results[-1][1] else 'SURVIVED'}  {time.monotonic() - began:3.0f} s"
                f"  promise {one.promise:2}  {one.file}: {one.breaks}")  # fmt: skip
    return results, faults


def main(arguments: Sequence[str], known: Sequence[Mutant] = MUTANTS) -> int:
    """Run the mutants; 1 when one survives, 2 when one can't be applied or a test fails unbroken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/promises.md (all of them)")
    parser.add_argument("--only", type=int, nargs="*", default=list(range(1, 11)), help="numbers of promises")
    parser.add_argument("--match", default="", help="only mutants whose file or test holds this text")
    chosen = parser.parse_args(arguments)
    mutants = [one for one in known if one.promise in chosen.only and chosen.match in f"{one.file} {one.test}"]
    if chosen.write and len(mutants) < len(known):
        parser.error("--write needs all mutants: a page of some would hide the others")
    unfit, began = stale(known), time.monotonic()
    if unfit:
        say("\n".join(unfit))
        return 2
    needs = any("kafka" in one.where.replace("not kafka", "") for one in mutants)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        tree.mkdir()
        copy_tree(tree)
        with broker(Path(folder) / "broker") if needs else contextlib.nullcontext("") as bootstrap:
            results, faults = play(mutants, tree, bootstrap)
    alive = sum(not dead for _, dead in results)
    say(f"{len(results)} mutants in {time.monotonic() - began:.0f} s, {alive} survived")
    if faults:
        say("\n".join(faults))
        return 2
    if chosen.write:
        DOCS.write_text(document([(one, dict(results)[one]) for one in mutants]), encoding="utf-8")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
