"""Times as channels give them: seconds, milliseconds or microseconds since 1970, told apart by their size (D15)."""

from __future__ import annotations

from schemas.base import MAX_MILLIS, MIN_MILLIS
from streams.gateway.reading import RefusedError

# The years 2000 to 9999 in each unit: the ranges do not touch, so a number has one reading or none.
_UNITS = ((1_000, 1), (1, 1), (1, 1_000), (1, 1_000_000))


def millis_of(number: int) -> int | None:
    """The time in UTC milliseconds; None when it is none of the years 2000 to 9999 in any unit."""
    for factor, divisor in _UNITS:
        found = number * factor // divisor
        if MIN_MILLIS <= found <= MAX_MILLIS:
            return found
    return None


def stated(number: int | None, field: str, where: str = "") -> int | None:
    """A time that a channel may have left out. Raises RefusedError for one that is no time."""
    found = None if number is None else millis_of(number)
    if number is not None and found is None:
        place = f"{where}.{field}".removeprefix(".")
        raise RefusedError(422, "wrong_time", "expected UTC seconds or milliseconds since 1970", place)
    return found
