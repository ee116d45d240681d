"""What scripted clients report of a message, and the name under which scripted staff decide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

State = Literal["delivered", "displayed", "read"]

BY = "scripted-staff"
REPORTED: Mapping[str, tuple[State, ...]] = {
    "none": (),
    "delivered": ("delivered",),
    "displayed": ("delivered", "displayed"),
    "read": ("delivered", "displayed", "read"),
}
