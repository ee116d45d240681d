"""memory: what persists of a turn, as writes in the memory register."""

from __future__ import annotations

from agents.remembering.step import INPUTS, make_step
from memory.sealing import KeyStore, seal
from schemas.events import Seal
from streams.runtime.table import Row
from streams.settings import Settings


def row(settings: Settings, keys: KeyStore) -> Row:
    """The memory processor: embedded rules choose, addresses are sealed under the conversation's key."""
    del settings  # a model behind the port would be named there

    def sealer(conversation: str, plaintext: bytes, context: bytes) -> Seal:
        return seal(keys, conversation, plaintext, context=context)

    return Row(
        name="memory",
        inputs=INPUTS,
        step=make_step(sealer),
        failure_domain="what is known of one customer: nothing of the turn itself depends on it",
        degrade="the turn goes on and nothing of it is remembered: a failing step is left out of the decision; what "
        "is written waits in memory.writes while a store is down",
        alarm="InterlockMemoryLeftOut: interlock_decisions_by_rule_total with rule runtime.step_left_out rises",
        optional=True,
    )
