"""The one loop that all processors share: owner, lanes, commit, effects, timers, dead letters."""
