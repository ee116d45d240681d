"""Before a message is sent, the clear words of a colleague take the place of the masked ones (promise 9)."""

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
        text = shown("words", orjson.loads(opened)["text"]) if opened is not None else effect.request["text"]
        return replace(effect, request={**effect.request, "text": text, "seal": None})
