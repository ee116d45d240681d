"""The contracts: one model, manifest and example a topic. Imports nothing of the other packages."""
