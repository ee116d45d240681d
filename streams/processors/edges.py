"""What is no row of the table and can fail by itself: intake in front of it, and the deadlines behind it (R-002-49)."""

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
DOMAINS = (INTAKE, TIMERS)
