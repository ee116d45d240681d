"""perception: what customers send, read, checked and masked."""

from __future__ import annotations

from agents.perception import PerceptionConfig, make_step
from agents.understanding.embedded import embedded, model_of
from agents.understanding.model.classify import IntentModel
from memory.sealing import KeyStore, seal
from schemas.events import Seal
from streams.runtime.table import Row
from streams.settings import Settings


def classifier() -> IntentModel:
    """The intent model that understanding uses beside its rules: the package's own, or the one that is set."""
    return model_of(Settings().understanding_model)


def row(settings: Settings, keys: KeyStore) -> Row:
    """The perception processor: rules and a model understand, slots are sealed under the conversation's key."""

    def sealer(conversation: str, plaintext: bytes, context: bytes) -> Seal:
        return seal(keys, conversation, plaintext, context=context)

    return Row(
        name="perception",
        inputs=("channel.events",),
        step=make_step(
            embedded(settings.understanding_model),
            sealer,
            PerceptionConfig(settings.session_gap_ms, settings.utc_offset_minutes),
        ),
        failure_domain="one message: its text, its seal, or the reader behind the understanding port",
        degrade="no clear text: the masked one is read; not understood: planning asks once, then a person; "
        "a reading that fails the schema: a person (R-002-04)",
        alarm="InterlockUnreadable: interlock_decisions_by_rule_total with rule perception.unreadable rises",
        opens_seal=True,
    )
