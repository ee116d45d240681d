"""What is no row of the table and can fail by itself: intake, deadlines and the keeper (R-002-49)."""

from __future__ import annotations

from streams.runtime.table import Domain

INTAKE = Domain(
    name="intake",
    failure_domain="one record of a foreign producer, or the broker behind intake",
    degrade="what can't be read is a dead letter with its exact bytes; while the broker is away nothing is "
    "acknowledged, and what is read again gets the same event id",
    alarm='InterlockRawDead: interlock_dead_letters_total{topic="channel.raw"} rises',
)
TIMERS = Domain(
    name="timers",
    failure_domain="the clock of one worker, or a partition that is behind with its inputs",
    degrade="no deadline fires before all that was appended earlier is handled, none while the clocks disagree "
    "by more than a second; late is better than wrong, and none is lost",
    alarm="InterlockTimersStopped: interlock_timers_stopped is 1",
)
KEEPER = Domain(
    name="keeper",
    failure_domain="a store of facts or relations, or one memory write that it refuses",
    degrade="conversations go on and recall less; writes wait in memory.writes and are applied once the store is "
    "back, and a write that is refused for good is a dead letter",
    alarm="InterlockKeeperWaiting: interlock_keeper_waiting_seconds is above 60",
)
DOMAINS = (INTAKE, TIMERS, KEEPER)
