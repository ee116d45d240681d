"""Tools: what may be called, how, and the gates before a call runs."""
