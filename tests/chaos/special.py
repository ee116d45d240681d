"""More than a death: frozen and thawed workers, handovers, a killed or frozen broker, receipts that queue up."""

from __future__ import annotations

import asyncio
import os
import signal
from functools import partial

import httpx

from streams.runtime.commit import KafkaCommitter
from tests.chaos import evidence
from tests.chaos.customers import HEAR_MS, WAVE
from tests.chaos.phases import LONG_MS, Load, Phase, Run
from tests.chaos.report import Report
from tests.chaos.stand import PARTITIONS, Process, Stand, StandError, now_ms

UNDER_WAY_S = 0.7  # so long after a wave began its customers are in the middle of it
THINK_MS = 8_000  # customers who think are still there when a worker has started
QUIET_S = 3.0  # a thawed worker does its worst within this
AWAY_S = 8.0
SHORT_MS = 30_000
FENCE_MS = 12_000  # a worker that joins freezes after some 4 s, and is replaced 6 s later: then they go on
SHORT = {"INTERLOCK_DELIVERED_MS": "3000", "INTERLOCK_DISPLAYED_MS": "5000"}
SLOW_MS = 2_500  # of a tool's 3,000


async def alone(run: Run, label: str, **values: str) -> Process:
    """A new worker that has every partition; the one that stood before has handed over."""
    worker = run.stand.worker(label, **values)
    if run.standing is not None and run.standing.alive:
        await run.stand.opened(worker, 1)
        await run.stand.stop(run.standing)
    await run.stand.opened(worker)
    run.standing = worker
    return worker


async def keeps(report: Report, worker: Process, seconds: float = QUIET_S) -> None:
    """Watch that the rightful owner loses nothing."""
    worker.look()
    before = len(worker.lost)
    await asyncio.sleep(seconds)
    worker.look()
    report.faults += [f"{worker.name}, the rightful owner: {lost}" for lost in worker.lost[before:]]


async def frozen(run: Run, report: Report, *, freeze_at: str = "") -> None:
    """SIGSTOP beyond the session timeout, a successor, SIGCONT: the thawed one writes nothing, the successor stays."""
    successor = await run.survivor()
    values = {"INTERLOCK_FREEZE_AT": freeze_at} if freeze_at else {}
    victim = run.stand.worker(report.name, **values)
    await run.stand.opened(victim, PARTITIONS // 2)
    load = await run.load(report.name, THINK_MS)
    if freeze_at:
        await _frozen_by_itself(run.stand, victim)
    else:
        await asyncio.sleep(UNDER_WAY_S)
        victim.signal(signal.SIGSTOP)
    froze = now_ms()
    victim.look()
    report.note = f"{_under_way(load)} running"
    await run.stand.opened(successor)
    await run.goes_on(report, load, sorted(victim.owned), froze)
    victim.signal(signal.SIGCONT)
    await keeps(report, successor)
    await run.stand.opened(victim, 1)  # it comes back as a member like any other
    await keeps(report, successor, 1)
    await run.stand.stop(victim)
    run.settle(report, load)


async def _frozen_by_itself(stand: Stand, victim: Process) -> None:
    def stopped() -> bool:
        victim.look()
        return bool(victim.point)

    await stand.until(f"{victim.name}: frozen at its point", stopped, 60)


async def frozen_in_fence(run: Run, report: Report, *, point: str, steals: bool) -> None:
    """A worker freezes while it takes over and thaws when another has the partition: that one keeps it.

    Only where it freezes behind its last question (`steals`) may it take the partition for a moment: the rightful
    owner then takes it back, and nothing is written twice.
    """
    survivor = await alone(run, "rightful")
    joiner = run.stand.worker(report.name, INTERLOCK_FREEZE_AT=point)
    load = await run.load(report.name, FENCE_MS)
    await _frozen_by_itself(run.stand, joiner)
    froze = now_ms()
    await run.takes_over(report, survivor, froze)
    joiner.signal(signal.SIGCONT)
    if steals:
        survivor.look()
        before = len(survivor.lost)
        await asyncio.sleep(QUIET_S)
        survivor.look()
        report.note = f"{len(survivor.lost) - before} partitions lost for a moment"
    else:
        await keeps(report, survivor)
    await run.stand.opened(joiner, 1)
    await run.stand.stop(joiner)
    await run.stand.opened(survivor)
    run.settle(report, load)


async def joins_in_mid_call(run: Run, report: Report) -> None:
    """A second worker joins while calls take 2.5 s, and is killed: every call is done once all the same."""
    survivor = await run.survivor()
    await run.stand.opened(survivor)
    await asyncio.to_thread(_slow_shop, run.stand)
    joiner = run.stand.worker(report.name)
    await asyncio.sleep(2)  # of the time that it takes to start
    load = await run.load(report.name, THINK_MS)
    await run.stand.opened(joiner, 1)
    await asyncio.sleep(UNDER_WAY_S)
    joiner.look()
    owned = sorted(joiner.owned)
    died = joiner.kill()
    report.note = f"{_under_way(load)} running"
    await run.goes_on(report, load, owned, died)
    await asyncio.to_thread(httpx.delete, f"{run.stand.settings.shop_url}/faults")
    run.settle(report, load)


def _slow_shop(stand: Stand) -> None:
    """Every call takes nearly as long as a call may."""
    for prefix in ("/refunds", "/orders"):
        fault = {"path_prefix": prefix, "method": "*", "kind": "delay", "delay_ms": SLOW_MS, "times": 2 * WAVE}
        httpx.post(f"{stand.settings.shop_url}/faults", json=fault).raise_for_status()


async def lost_and_regained(run: Run, report: Report) -> None:
    """Every partition is fenced by a stranger: its owner loses it, asks the group, and goes on."""
    owner = await run.survivor()
    await run.stand.opened(owner)
    before = len(owner.lost)
    load = await run.load(report.name, THINK_MS)
    await asyncio.sleep(UNDER_WAY_S)
    for number in range(PARTITIONS):
        thief = KafkaCommitter(run.stand.settings, number)
        await thief.connect()
        if not await thief.fence(lambda: True):
            report.faults.append(f"partition {number} was not taken")
        thief.close()
    stolen = now_ms()
    await run.goes_on(report, load, range(PARTITIONS), stolen)
    await run.stand.opened(owner)
    report.note = f"{len(owner.lost) - before} losses"
    if len(owner.lost) == before:
        report.faults.append("nothing was lost")
    run.settle(report, load)


async def broker_killed(run: Run, report: Report) -> None:
    """`kill -9` of the broker and a start on the same data: the worker and the gateway ride it out."""
    worker = await run.survivor()
    await run.stand.opened(worker)
    load = await run.load(report.name, THINK_MS)
    await asyncio.sleep(UNDER_WAY_S)
    report.note = f"{_under_way(load)} running"
    await asyncio.to_thread(run.stand.broker.kill)
    await asyncio.to_thread(run.stand.broker.start)
    await run.goes_on(report, load, range(PARTITIONS), now_ms())
    if not worker.alive:
        report.faults.append(f"{worker.name} ended with {worker.popen.returncode}:\n{worker.tail()}")
    run.settle(report, load)


async def broker_frozen(run: Run, report: Report, *, seconds: float, killed: bool) -> None:
    """The broker answers nothing while transactions end: commits of unknown outcome, the worker killed or alive."""
    worker = await run.survivor()
    await run.stand.opened(worker)
    report.outlasts_calls = not killed
    load = await run.load(report.name, THINK_MS, HEAR_MS if killed else SHORT_MS)
    await asyncio.sleep(UNDER_WAY_S)
    state = run.stand.broker.state
    pid = state.pid if state else 0
    os.kill(pid, signal.SIGSTOP)
    try:
        report.note = f"{_under_way(load)} running"
        await asyncio.sleep(seconds)
        if killed:
            worker.kill()
    finally:
        os.kill(pid, signal.SIGCONT)
    since = now_ms()
    if killed:
        run.standing = run.stand.worker("successor")
    await run.goes_on(report, load, range(PARTITIONS), since)
    if not killed and not worker.alive:
        report.faults.append(f"{worker.name} ended with {worker.popen.returncode}:\n{worker.tail()}")
    run.settle(report, load)


async def receipts_queue_up(run: Run, report: Report) -> None:
    """The worker is away beyond the deadlines of what it sent; the receipts are in the log: nothing is sent again."""
    victim = await alone(run, report.name, **SHORT)
    load = await run.load(report.name, THINK_MS)
    mine = evidence.conversations_of(report.name)

    def sent() -> bool:
        return sum(mine(row[0]) for row in evidence.outbox(run.stand.folder)) >= WAVE // 2

    await run.stand.until("messages in the outbox", sent, 60)
    victim.kill()
    report.note = f"{_under_way(load)} running, away {AWAY_S:.0f} s"
    await asyncio.sleep(AWAY_S)
    since = now_ms()
    run.standing = run.stand.worker("successor", **SHORT)
    seconds = await run.decides_again(report, load, range(PARTITIONS), since)
    report.note += f", decides again {seconds or 0:.1f} s after its start"
    run.settle(report, load)
    await run.settled()
    await alone(run, "standing")


async def handed_over(run: Run, report: Report) -> None:
    """SIGTERM under load: the next worker goes on at once, and the one that leaves ends cleanly."""
    leaver = await run.survivor()
    await run.stand.opened(leaver)
    successor = run.stand.worker("successor")
    await run.stand.opened(successor, 1)
    load = await run.load(report.name, THINK_MS)
    await asyncio.sleep(UNDER_WAY_S)
    leaver.look()
    owned = sorted(leaver.owned)
    leaver.signal(signal.SIGTERM)
    asked = now_ms()
    run.standing = successor
    await run.goes_on(report, load, owned, asked)
    await run.stand.until(f"{leaver.name}: end after SIGTERM", lambda: not leaver.alive)
    if leaver.popen.returncode != 0:
        report.faults.append(f"{leaver.name} ended with {leaver.popen.returncode}:\n{leaver.tail()}")
    run.settle(report, load)


async def die_revoked(run: Run, report: Report, *, point: str, hits: int = 2) -> None:
    """The owner dies while it gives its partitions up, because another worker joins under load."""
    if run.standing is not None and run.standing.alive:
        await run.stand.stop(run.standing)
    victim = run.stand.worker(report.name, INTERLOCK_CRASH_AT=f"{point}:{hits}")  # the first hit is its own joining
    await run.stand.opened(victim)
    load = await run.load(report.name, LONG_MS)
    run.standing = run.stand.worker("successor")
    died = await run.died(victim, load)
    report.note = f"{_under_way(load)} running"
    await run.goes_on(report, load, range(PARTITIONS), died)
    run.settle(report, load)


def _under_way(load: Load) -> int:
    """Customers in the middle. Raises StandError when there is none: the phase would prove nothing."""
    if not load.running:
        message = f"{load.name}: all conversations were over"
        raise StandError(message)
    return load.running


PHASES: dict[str, Phase] = {
    "revoke.before": partial(die_revoked, point="revoke.before"),
    "revoke.after": partial(die_revoked, point="revoke.after"),
    "frozen": frozen,
    "frozen-in-commit": partial(frozen, freeze_at="transaction.produced:6"),
    "frozen-before-fence": partial(frozen_in_fence, point="fence.asked", steals=False),
    "frozen-in-fence": partial(frozen_in_fence, point="fence.before", steals=True),
    "joins-and-dies": joins_in_mid_call,
    "lost-and-regained": lost_and_regained,
    "commit-unknown": partial(broker_frozen, seconds=1.0, killed=True),
    "broker-killed": broker_killed,
    "receipts-queue-up": receipts_queue_up,
    "handed-over": handed_over,
    "broker-frozen": partial(broker_frozen, seconds=12.0, killed=False),
}
