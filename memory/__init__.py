"""The state bus, its snapshots, and the seals. Imports only `schemas`."""
