"""Who may open a seal, and who may forget: roles of the settings, or the task that a colleague has in hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from schemas.errors import InterlockError

INVESTIGATOR, PRIVACY = "investigator", "privacy"
OWNER_FIELDS = frozenset({"address", "phone"})  # what a member of staff needs for the conversation that they took


class NotAllowedError(InterlockError):
    """The person has no right to it; the text says which right is asked for."""


def may_open(
    roles: Mapping[str, Sequence[str]], by: str, fields: Collection[str], state: Mapping[str, Any] | None
) -> str:
    """The right by which they may, in words for the register. `fields` empty: all. Raises NotAllowedError."""
    if INVESTIGATOR in roles.get(by, ()):
        return f"role {INVESTIGATOR}"
    planning = (state or {}).get("planning", {})
    taken = (planning.get("handover") or {}).get("taken_by")
    if planning.get("owner") == "human" and taken == by and fields and OWNER_FIELDS.issuperset(fields):
        return "has the conversation in hand"
    message = (
        f"{by} may not open this: it takes the role {INVESTIGATOR} (INTERLOCK_UNSEAL_ROLES), or the conversation"
        f" taken over and --field {' or '.join(sorted(OWNER_FIELDS))}"
    )
    raise NotAllowedError(message)


def may_forget(roles: Mapping[str, Sequence[str]], by: str) -> None:
    """Raises NotAllowedError when they may neither forget a customer nor set or end a hold."""
    if PRIVACY not in roles.get(by, ()):
        message = f"{by} may not do this: it takes the role {PRIVACY} (INTERLOCK_UNSEAL_ROLES)"
        raise NotAllowedError(message)
