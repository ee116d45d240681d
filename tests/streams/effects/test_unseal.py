"""What a sender opens before it sends: a colleague's words, the customer's own address, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from memory.sealing import MemoryKeyStore, seal
from streams.effects.unseal import Unsealing, unmasked
from streams.runtime.ports import Effect, Fact

WHO = "demo/web/u-1"


class Seen:
    """A handler that keeps what it was given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def run(self, effect: Effect) -> Sequence[Fact]:
        """See EffectHandler."""
        self.texts.append(effect.request["text"])
        return []

    async def resolve(self, effect: Effect) -> Sequence[Fact]:
        """See EffectHandler."""
        return await self.run(effect)


async def _sent(keys: MemoryKeyStore, text: str, clear: dict[str, Any], *, gone: bool = False) -> str:
    sealed = seal(keys, WHO, orjson.dumps(clear)).model_dump()
    if gone:
        keys.destroy(WHO)
    seen = Seen()
    await Unsealing(seen, keys).run(Effect(WHO, "e", "send", "k", 1, 9, 9, {"text": text, "seal": sealed}))
    return seen.texts[0]


async def test_the_customer_sees_the_address_that_they_confirm() -> None:
    """The yes is to all of it: the address is opened for its own customer, the phone stays masked (R-000-12)."""
    text = "请确认：收货地址改为：上海市静安区****, 139****2222。"
    clear = {"address": "上海市静安区B路2号", "phone": "13900002222"}
    assert "请确认：收货地址改为：上海市静安区B路2号, 139****2222。" == await _sent(MemoryKeyStore(), text, clear)
    assert text == await _sent(MemoryKeyStore(), text, clear, gone=True)


async def test_a_colleagues_words_are_sent_as_they_were_written() -> None:
    """Masked on every topic, whole for the customer (promise 9)."""
    assert "打13800000000" == await _sent(MemoryKeyStore(), "打138****0000", {"text": "打13800000000"})


def test_only_the_value_itself_takes_its_masks_place() -> None:
    """A value that does not fit the mask changes nothing."""
    assert "到****" == unmasked("到****", "上海市静安区B路2号")
    assert "到B路3号" == unmasked("到B路3号", "B路2号")
