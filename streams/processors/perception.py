"""perception: what customers send, read, checked and masked."""

from __future__ import annotations

from agents.models.waiting import Asking
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


def asking(settings: Settings) -> Asking:
    """When a model is asked: never, without a server that is set."""
    model = settings.model_name if settings.model_url else ""
    return Asking(model, settings.model_when, settings.model_below, settings.model_timeout_ms,
                  settings.model_waiting_max)  # fmt: skip


def row(settings: Settings, keys: KeyStore) -> Row:
    """The perception processor: rules and a model understand, slots are sealed under the conversation's key."""

    def sealer(conversation: str, plaintext: bytes, context: bytes) -> Seal:
        return seal(keys, conversation, plaintext, context=context)

    return Row(
        name="perception",
        inputs=("channel.events", "tools.results", "timers.fired"),
        step=make_step(
            embedded(settings.understanding_model),
            sealer,
            PerceptionConfig(
                settings.session_gap_ms, settings.utc_offset_minutes, asking(settings), settings.recall_ms
            ),
        ),
        failure_domain="one message: its text, its seal, or the reader behind the understanding port",
        degrade="no clear text: the masked one is read; not understood: planning asks once, then a person; "
        "no model in time: the embedded reading goes on alone; "
        "a reading that fails the schema: a person (R-002-04)",
        alarm="InterlockUnreadable: interlock_decisions_by_rule_total with rule perception.unreadable rises",
        opens_seal=True,
    )
