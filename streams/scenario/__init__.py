"""Scripted customers: one YAML format, played over HTTP against a running system or in memory on virtual time."""
