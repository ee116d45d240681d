"""Faust, imported as a library: it would read `--datadir` and `--loop` from our own command line."""

from __future__ import annotations

import sys

_argv = sys.argv
sys.argv = sys.argv[:1]
try:
    from faust.app.base import App, BootStrategy
    from faust.transport.conductor import Conductor
    from faust.transport.drivers import aiokafka as driver
    from faust.types import TP
finally:
    sys.argv = _argv

__all__ = ["TP", "App", "BootStrategy", "Conductor", "driver"]
