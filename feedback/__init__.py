"""Implicit signals and session health. Pure steps; imports only `schemas`."""
