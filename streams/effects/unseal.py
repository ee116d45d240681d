"""Before a message is sent, a colleague's clear words or the customer's own address take the masked one's place.

Nowhere else is either in clear: every topic and state has the mask (promise 9).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import orjson

from agents.replies.templates import shown
from memory.sealing import KeyStore, open_seal
from schemas.events import Seal
from streams.runtime.ports import Effect, EffectHandler, Fact


class Unsealing:
    """A "send" handler that opens a message's seal, if it has one, for the handler that sends it.

    Where the key was destroyed the masked words are sent: nobody can know the others any more.
    """

    def __init__(self, handler: EffectHandler, keys: KeyStore) -> None:
        self._handler, self._keys = handler, keys

    async def run(self, effect: Effect) -> Sequence[Fact]:
        """See EffectHandler. Raises SealError for a seal that was altered."""
        return await self._handler.run(self._clear(effect))

    async def resolve(self, effect: Effect) -> Sequence[Fact]:
        """See EffectHandler. Raises SealError for a seal that was altered."""
        return await self._handler.resolve(self._clear(effect))

    def _clear(self, effect: Effect) -> Effect:
        sealed = effect.request.get("seal")
        if sealed is None:
            return effect
        opened = open_seal(self._keys, Seal(**sealed), effect.conversation)
        text = effect.request["text"]
        clear = {} if opened is None else orjson.loads(opened)
        if "text" in clear:
            text = shown("words", clear["text"])
        elif "address" in clear:
            text = unmasked(text, shown("text", clear["address"]))
        return replace(effect, request={**effect.request, "text": text, "seal": None})


def unmasked(text: str, value: str) -> str:
    """The text with the value in the first place where its masked form stands; a phone beside it stays masked."""
    for at in range(len(text) - len(value) + 1):
        part = text[at : at + len(value)]
        if "*" in part and all(mask in (char, "*") for char, mask in zip(value, part, strict=True)):
            return text[:at] + value + text[at + len(value) :]
    return text
