"""Delivery: from the rendered reply to the read mark, by one table of states (R-002-29)."""
