"""Flows: state machines in YAML, one table a flow, checked as a graph when loaded."""
