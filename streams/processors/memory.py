"""memory: what persists of a turn, as writes in the memory register."""

from __future__ import annotations

from agents.remembering.asking import Asking, Sealer
from agents.remembering.step import HEARD, INPUTS, by_rules, make_hearing, make_step
from memory.sealing import KeyStore, seal
from schemas.events import Seal
from streams.runtime.table import Row
from streams.settings import Settings


def asking(settings: Settings) -> Asking:
    """Which model is asked what persists: none, without a server and a setting that asks for it."""
    model = settings.model_name if settings.model_memory and settings.model_url else ""
    return Asking(model, settings.model_timeout_ms, settings.model_waiting_max)


def _sealer(keys: KeyStore) -> Sealer:
    """Addresses are sealed under the conversation's key."""

    def sealer(conversation: str, plaintext: bytes, context: bytes) -> Seal:
        return seal(keys, conversation, plaintext, context=context)

    return sealer


def hearing(keys: KeyStore) -> Row:
    """What a message says for good, by the embedded rules; it runs before planning, which may say that it is noted."""
    return Row(
        name="hearing",
        inputs=HEARD,
        step=make_hearing(_sealer(keys)),
        failure_domain="what one customer message says for good: its answer does not depend on it",
        degrade="the message is answered and nothing it said is remembered, nor said to be: a failing step is left out "
        "of the decision",
        alarm="InterlockHearingLeftOut: interlock_decisions_by_rule_total with rule runtime.step_left_out rises",
        optional=True,
    )


def row(settings: Settings, keys: KeyStore) -> Row:
    """What was decided, set by staff or taken back, behind the steps that decide; a model may be asked, too."""
    return Row(
        name="memory",
        inputs=INPUTS,
        step=make_step(_sealer(keys), by_rules, asking(settings)),
        failure_domain="what is known of one customer: nothing of the turn itself depends on it",
        degrade="no model in time: the rules alone have chosen (memory.model_absent); "
        "the turn goes on and nothing of it is remembered: a failing step is left out of the decision; what "
        "is written waits in memory.writes while a store is down",
        alarm="InterlockMemoryLeftOut: interlock_decisions_by_rule_total with rule runtime.step_left_out rises",
        optional=True,
    )
