"""The computed fallback: an estimate for the customer's level; the outcome stays unknown (R-002-28)."""

from __future__ import annotations

from typing import Any

from agents.tools.spec import ToolSpec


def estimate(spec: ToolSpec, level: str | None, amount_fen: int) -> dict[str, Any]:
    """Slots for the person and the wording: gold 0.8 of the amount in 3 days, anybody else 0.5 in 5 days.

    Never a success: `refund_status` is "unknown". Empty for a tool whose fallback estimates nothing.
    """
    levels = spec.fallback.levels
    # An invented figure is worse than none: a tool whose file estimates nothing gets none.
    if spec.fallback.kind != "estimate":
        return {}
    chosen = levels.get(level or "default", levels["default"])
    return {"refund_status": "unknown", "estimate_fen": round(amount_fen * chosen.share), "days": chosen.days}
