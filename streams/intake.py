"""Intake: the one stateless step between a channel and channel.events: derived id, mask, seal (promise 9).

Used by the gateway, the producer library and the intake app; pure apart from the key store that it asks.
"""

from __future__ import annotations

import hashlib

import orjson

from memory.masking import mask
from memory.sealing import KeyStore, seal
from schemas import codec
from schemas.base import readable
from schemas.events import Attachment, Body, ChannelEvent, EditBody, MessageBody, RatingBody, RawEvent
from schemas.partition import place
from schemas.people import HumanDecision
from schemas.topics import RAW_TOPIC
from streams.runtime.ports import Fact, Outgoing
from streams.runtime.wire import fact_record

TOPIC = "channel.events"


def read_raw(value: bytes) -> RawEvent:
    """A foreign producer's event; ids that came as JSON integers are exact text (case B05). Raises BadRecordError."""
    plain = codec.exact_ids(codec.parse(value, topic=RAW_TOPIC, long_integers=True))
    return codec.validate(RawEvent, plain, RAW_TOPIC)


def event_id(raw: RawEvent) -> str:
    """The event's id: the same producer id of one sender is one event, of two senders two (cases A15, B01).

    A CloudEvents id counts per source, as that standard has it. Parts are joined by a line feed, which none can hold,
    so no two look alike.
    """
    source = "" if raw.source is None else f"\n{raw.source}"
    digest = hashlib.sha256(f"{raw.conversation}\n{raw.id}{source}".encode()).hexdigest()
    return f"ev-{digest[:24]}"


def intake(raw: RawEvent, keys: KeyStore) -> ChannelEvent:
    """The event as it travels: texts masked (R-000-12), the clear body sealed beside them where any was."""
    masked = _masked(raw.body)
    hidden = None
    if masked != raw.body:
        # all of the body, not only what was masked: whoever may open it needs no merging
        hidden = seal(keys, raw.conversation, orjson.dumps(raw.body.model_dump(mode="json")))
    return ChannelEvent(
        id=raw.id, shop=raw.shop, channel=raw.channel, sender=raw.sender, occurred_at=raw.occurred_at,
        body=masked, source=raw.source, event_id=event_id(raw), seal=hidden,
    )  # fmt: skip


def staff_word(decision: HumanDecision, conversation: str, keys: KeyStore) -> HumanDecision:
    """A person's decision as it travels: its words masked, the clear ones sealed beside them where any were."""
    text, reason = _shown(decision.text), _shown(decision.reason)
    if (text, reason) == (decision.text, decision.reason):
        return decision
    clear = orjson.dumps({"text": decision.text, "reason": decision.reason})
    hidden = seal(keys, conversation, clear, context=decision.decision_id.encode())
    return decision.model_copy(update={"text": text, "reason": reason, "seal": hidden})


def channel_event_record(event: ChannelEvent, partitions: int, now_ms: int, trace: str = "") -> Outgoing:
    """The Kafka record of an event: keyed by its conversation, on that key's partition, CloudEvents headers."""
    fact = Fact(TOPIC, event.conversation, event.event_id, event)
    return fact_record(fact, place(event.conversation, partitions), now_ms, trace)


def _masked(body: Body) -> Body:
    match body:
        case MessageBody():
            files = tuple(map(_masked_file, body.attachments))
            return body.model_copy(update={"text": _shown(body.text), "attachments": files})
        case EditBody() | RatingBody():
            return body.model_copy(update={"text": _shown(body.text)})
        case _:
            return body


def _masked_file(file: Attachment) -> Attachment:
    heard = tuple(one.model_copy(update={"text": _shown(one.text)}) for one in file.alternatives)
    return file.model_copy(update={"text": _shown(file.text), "alternatives": heard})


def _shown(text: str) -> str:
    """What everybody may read: masked, without NUL; the seal keeps the text as it came (case B17)."""
    return mask(readable(text))[0]
