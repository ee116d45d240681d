"""turns_per_s, turn_latency_p95, copy_limit: whole turns on a real broker, against LangGraph and bare loops."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator

from bench.bare import copies_per_s, five_hops
from bench.customers import Customers, Topics
from bench.report import Result, less_is_better, more_is_better, percentile
from bench.rig import Rig, free_port, rig, wait_for

CONVERSATIONS = 200
WARM_S = 8.0
MEASURE_S = 20.0
PACED = 50  # turns a second for the latency
LATENCY_S = 12.0
INPUTS = ("channel.events", "messages.normalized", "tools.calls", "tools.results", "actions.outbound",
          "delivery.receipts", "timers.fired")  # fmt: skip
DERIVED = ("state.diffs", "state.updates", "plans", "delivery.states", "feedback.signals")
LANGGRAPH = Topics("bench.lg.events", "bench.lg.replies", "bench.lg.receipts", "bench.lg.states")


def run() -> Iterator[Result]:
    """The three rows."""
    stub = free_port()
    url = f"http://127.0.0.1:{stub}"
    with rig(gateway_url=url, shop_url=url) as made:
        made.start("stub", ["-m", "bench.stub", str(stub)])
        worker = made.worker()
        ours = _closed_loop(made, Topics())
        records = sum(made.ends(topic) for topic in (*INPUTS, *DERIVED))
        size = records / max(ours.turns_ever, 1)
        latency, n = _paced(made)
        made.stop(worker)
        theirs, why = _langgraph(made, stub)
        copied = copies_per_s(made, round(size))
        hops = five_hops(made, PACED, LATENCY_S)
    work = f"{CONVERSATIONS} conversations in a closed loop, one worker, {size:.0f} records a turn"
    baseline = f"LangGraph with an SQLite checkpointer behind confluent-kafka, one process{why}"
    yield more_is_better("turns_per_s", ours.rate, "1/s", theirs, ours.turns, f"{work}; baseline {baseline}")
    yield less_is_better(
        "turn_latency_p95",
        latency,
        "ms",
        hops,
        n,
        f"append to append at {PACED} turns/s; baseline five bare hops of the same bytes",
    )
    yield Result(
        "copy_limit",
        round(copied, 1),
        "1/s",
        round(ours.rate, 1),
        round(copied / ours.rate, 2),
        None,
        f"turns a bare loop could copy ({size:.0f} records of a turn's mean size); the ratio is to turns_per_s",
    )


class Loop:
    """What a closed loop measured."""

    def __init__(self, turns: int, seconds: float, ever: int) -> None:
        self.turns, self.rate, self.turns_ever = turns, turns / seconds, ever


def _closed_loop(made: Rig, topics: Topics) -> Loop:
    customers = Customers(made.settings, CONVERSATIONS, topics)
    for number in range(CONVERSATIONS):
        customers.ask(number)
    customers.drive(0.1, lambda _: True)
    wait_for("the first turn", lambda: customers.drive(0.2, lambda _: True) > 0)
    customers.drive(WARM_S, lambda _: True)
    before, start = customers.turns, time.monotonic()
    customers.drive(MEASURE_S, lambda _: True)
    turns, seconds = customers.turns - before, time.monotonic() - start
    customers.drive(5.0, lambda _: False)
    customers.close()
    if turns == 0:
        message = f"no turn in {MEASURE_S:.0f} s"
        raise RuntimeError(message)
    return Loop(turns, seconds, customers.turns)


def _paced(made: Rig) -> tuple[float, int]:
    """P95 in milliseconds from the event's append time to the reply's, at PACED turns a second."""
    customers = Customers(made.settings, CONVERSATIONS)
    customers.drive(0.5, lambda _: False)
    start, asked = time.monotonic(), 0
    while time.monotonic() - start < LATENCY_S:
        while asked < (time.monotonic() - start) * PACED:
            customers.ask(asked % CONVERSATIONS)
            asked += 1
        customers.drive(0.01, lambda _: False)
    customers.drive(3.0, lambda _: False)
    customers.close()
    skipped = PACED * 2  # the first seconds warm up
    return percentile(customers.latencies[skipped:], 0.95), len(customers.latencies) - skipped


def _langgraph(made: Rig, stub: int) -> tuple[float | None, str]:
    if importlib.util.find_spec("langgraph") is None:
        return None, " (not installed)"
    made.start("langgraph", ["-m", "bench.langgraph_turn", str(stub)])
    return _closed_loop(made, LANGGRAPH).rate, ""
