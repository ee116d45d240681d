"""Breaks each promise on purpose, one line at a time; its test must fail. `python -m tests.promises.mutants [--write]`.

Each mutant is applied in a copy of the tree; one that survives, or that no longer applies, is an error.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from streams.broker import EmbeddedKafka
from tests.quality.source import ROOT

COPIED = ("schemas", "memory", "agents", "feedback", "streams", "tests", "docs", "pyproject.toml", "README.md")
DOCS = ROOT / "docs" / "promises.md"
SECONDS = 240
INTRODUCTION = (
    "Each promise has a test that carries its name, and the test fails when the promise is broken: `make mutants`\n"
    "breaks the code one line at a time, in a copy. `python -m tests.promises.mutants --write` wrote this page."
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One broken line: `old` stands exactly once in the file. `where` selects the tests: a pytest marker expression."""

    promise: int
    breaks: str
    file: str
    old: str
    new: str
    where: str = "not kafka"


MUTANTS: tuple[Mutant, ...] = (
    Mutant(1, "emits go to another key's partition", "streams/runtime/wire.py",
           'return Outgoing(emit["topic"], partition_for(key), key',
           'return Outgoing(emit["topic"], partition_for(key + "x"), key'),
    Mutant(1, "a later input is decided before an earlier one", "streams/runtime/lanes.py",
           "            queue.append(record)", "            queue.insert(1, record)"),
    Mutant(2, "every owner has a fence of its own", "streams/runtime/commit.py",
           'self.name = f"{settings.group}-{partition}"',
           'self.name = f"{settings.group}-{partition}-{id(self)}"', "kafka"),
    Mutant(2, "the bus takes any writer's version", "memory/bus.py",
           'if found != expected or state["version"] != expected + 1:', "if expected < 0:"),
    Mutant(3, "a diff is applied to whatever is there", "memory/bus.py",
           'if diff["base"] != state["version"] or diff["version"] != state["version"] + 1:', "if not diff:"),
    Mutant(3, "a record that was handled is decided again", "streams/runtime/decide.py",
           'if cause.offset <= runtime["at"].get(cause.topic, -1):', "if cause.offset < 0:"),
    Mutant(4, "a decision is visible before its commit", "streams/runtime/partition.py",
           '        crash("commit.before")\n',
           "        for one in batch:\n            self._emitter.publish(self._diff_offset + 1, one.decided.diff)\n"),
    Mutant(4, "an emit says something else than its diff", "streams/runtime/wire.py",
           'orjson.dumps(emit["data"]), headers)', 'orjson.dumps({**emit["data"], "at": 1}), headers)'),
    Mutant(4, "records go out without their transaction", "streams/runtime/commit.py",
           'crash("transaction.produced")',
           'serve(producer.commit_transaction, CALL_S)\n        crash("transaction.produced")', "kafka"),
    Mutant(5, "ids are random", "schemas/step.py",
           'f"{self.conversation}|{cause.topic}|{cause.id}|{self.version}|{self._ids}"',
           'f"{self.conversation}|{__import__(\'os\').urandom(8)!r}|{self._ids}"'),
    Mutant(5, "a step reads the clock", "schemas/step.py",
           'self.now = max(cause.time, state["now"])', 'self.now = __import__("time").time_ns() // 1_000_000'),
    Mutant(5, "a seal has a random nonce", "memory/sealing.py",
           'nonce = derived_nonce(key, context + b"\\0" + plaintext)', "nonce = os.urandom(NONCE_BYTES)"),
    Mutant(5, "a set decides the order of changes", "schemas/step.py",
           "for path in self._touched:", "for path in set(self._touched):"),
    Mutant(6, "a call runs under another key than declared", "agents/tools/step.py",
           "key=call.idempotency_key, timeout_ms=timeout", "key=call.call_id, timeout_ms=timeout"),
    Mutant(6, "a successor calls instead of asking", "streams/runtime/effects.py",
           "(handler.resolve(effect) if taken_over else handler.run(effect))", "handler.run(effect)"),
    Mutant(6, "a successor does not wait for the one before", "streams/runtime/effects.py",
           "await asyncio.sleep(max(0, effect.deadline + effect.timeout_ms - self._clock.now_ms()) / 1000)",
           "await asyncio.sleep(0)"),
    Mutant(6, "an unknown outcome is called a failure", "streams/effects/tools.py",
           'if run.spec.risk != "query" and run.reached and run.happened is None:', "if run.attempts < 0:"),
    Mutant(7, "a call runs that no plan wants", "agents/tools/gates.py",
           'if flow["plan_id"] == call.plan_id and any(call.call_id in ids for ids in wanted):', "if True:"),
    Mutant(7, "an approval of another call counts", "agents/planning/decisions.py",
           'elif decision.call_hash != review["call_hash"]:', "elif not review:"),
    Mutant(7, "money moves without the customer's word", "agents/flows/pack/refund.yaml",
           "    ok: confirm_detail\n", "    ok: execute_refund\n"),
    Mutant(7, "what a reader gives is taken as it is", "agents/perception.py",
           "        return first_fault(error)", "        raise"),
    Mutant(8, "reading commits offsets to a group", "streams/runtime/client.py",
           '"enable.auto.commit": False,\n        "enable.auto.offset.store": False,',
           '"enable.auto.commit": True,', "kafka"),
    Mutant(8, "the read side can write", "streams/reader.py",
           "from confluent_kafka import Consumer,",
           "from confluent_kafka import Producer as _\nfrom confluent_kafka import Consumer,"),
    Mutant(9, "masking hides nothing", "memory/masking.py",
           '                chars[index] = "*"', "                chars[index] = chars[index]"),
    Mutant(9, "intake keeps no seal", "streams/intake.py",
           '        hidden = seal(keys, raw.conversation, orjson.dumps(raw.body.model_dump(mode="json")))',
           "        hidden = None"),
    Mutant(9, "a key survives its destruction", "memory/sealing.py",
           "            del self._by_id[entry[0]]", "            self._by_owner[owner] = entry"),
    Mutant(10, "what can't be read is dropped", "streams/runtime/judge.py",
           "            return self._dead(state, record, error), True", "            return None, True"),
    Mutant(10, "a partition stops in silence", "streams/runtime/partition.py",
           "            self.failed.set_result(error)", "            self._closing = True"),
    Mutant(10, "an assumption looks like a report", "streams/delivery/messages.py",
           "assumed=after is Held.ASSUMED, reason=reason)", "assumed=False, reason=reason)"),
    Mutant(10, "dead letters never pause a topic", "streams/runtime/deadletters.py",
           "return topic != CONTROL_TOPIC and self._row[topic] > self._limit", "return False"),
)  # fmt: skip


def module_of(promise: int, root: Path = ROOT) -> Path:
    """The promise's test module. Raises ValueError when it has none, or two."""
    (found,) = (root / "tests" / "promises").glob(f"test_promise_{promise:02}_*.py")
    return found


def stale(mutants: Sequence[Mutant] = MUTANTS) -> list[str]:
    """Mutants whose line is no longer there, or there more than once."""
    found = []
    for one in mutants:
        count = (ROOT / one.file).read_text(encoding="utf-8").count(one.old)
        if count != 1:
            found.append(f"{one.file}: {one.old!r} stands {count} times, not once ({one.breaks})")
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
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "INTERLOCK_BOOTSTRAP_SERVERS": bootstrap}
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=SECONDS,
                              check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    if done.returncode not in (0, 1, 2):  # 2: the mutant can't even be imported
        message = f"{test.name} -m {where!r} did not run ({done.returncode}): {done.stdout[-500:]}{done.stderr[-500:]}"
        raise RuntimeError(message)
    return done.returncode == 0


@contextlib.contextmanager
def applied(tree: Path, mutant: Mutant) -> Iterator[None]:
    """The copy with this one line broken."""
    file = tree / mutant.file
    whole = file.read_text(encoding="utf-8")
    file.write_text(whole.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        yield
    finally:
        file.write_text(whole, encoding="utf-8")


def killed(tree: Path, mutant: Mutant, bootstrap: str) -> bool:
    """Whether the promise's test fails."""
    with applied(tree, mutant):
        return not run(tree, module_of(mutant.promise, tree), mutant.where, bootstrap)


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
    """docs/promises.md: each promise, its test, and what breaking it did."""
    lines = ["# The ten promises", "", INTRODUCTION, ""]
    for promise in range(1, 11):
        test = module_of(promise)
        words = test.read_text(encoding="utf-8").split('"""')[1].strip()
        lines += [f"## {words.removesuffix('.')}", "", f"Test: `{test.relative_to(ROOT)}`", "",
                  "| broken on purpose | in | the test |", "|---|---|---|"]  # fmt: skip
        lines += [f"| {one.breaks} | `{one.file}` | {'fails' if dead else '**passes**'} |"
                  for one, dead in results if one.promise == promise]  # fmt: skip
        lines.append("")
    return "\n".join(lines)


def say(line: str) -> None:
    """One line, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    """Run the mutants; 1 when one survives, 2 when one can't be applied or a test fails unbroken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/promises.md")
    parser.add_argument("--only", type=int, nargs="*", default=list(range(1, 11)), help="numbers of promises")
    chosen = parser.parse_args(arguments)
    mutants = [one for one in MUTANTS if one.promise in chosen.only]
    faults = stale(mutants)
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder) / "broker") as bootstrap:
        tree = Path(folder) / "tree"
        tree.mkdir()
        copy_tree(tree)
        for promise, where in sorted({(one.promise, one.where) for one in mutants}):
            if not any(run(tree, module_of(promise, tree), where, bootstrap) for _ in range(2)):  # a busy machine
                faults.append(f"{module_of(promise).name} -m {where!r} fails without any mutant")
        if faults:
            say("\n".join(faults))
            return 2
        results = []
        for one in mutants:
            results.append((one, killed(tree, one, bootstrap)))
            say(f"promise {one.promise:2}  {'killed  ' if results[-1][1] else 'SURVIVED'}  {one.file}: {one.breaks}")
    alive = sum(not dead for _, dead in results)
    say(f"{len(results)} mutants, {alive} survived")
    if chosen.write:
        DOCS.write_text(document(results), encoding="utf-8")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
