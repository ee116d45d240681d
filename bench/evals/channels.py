"""How long WeChat waits for its answer while the broker says nothing, and while it works; goal P99 below 1 s."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from bench.report import Result, less_is_better
from tests.streams.channels import wechat_side as side
from tests.streams.channels.gateway import channels

ROWS = {"wechat_ack_silent_p50": "ms", "wechat_ack_silent_p99": "ms", "wechat_ack_p99": "ms"}
PUSHES = 1_000
LANES = 20  # pushes under way at the same time
GOAL = "documents ask for an answer within 5 s; goal 1,000 ms"


def rows() -> list[Result]:
    """The gateway in this process, its spool on disk."""
    silent, working = (sorted(asyncio.run(_pushed(silent=one))) for one in (True, False))
    return [
        less_is_better(
            "wechat_ack_silent_p50", silent[PUSHES // 2], "ms", None, PUSHES, "broker silent, spool on disk"
        ),
        less_is_better("wechat_ack_silent_p99", silent[PUSHES * 99 // 100], "ms", None, PUSHES, GOAL),
        less_is_better("wechat_ack_p99", working[PUSHES * 99 // 100], "ms", None, PUSHES, "broker in memory"),
    ]


async def _pushed(*, silent: bool) -> list[float]:
    """Milliseconds of each answer."""
    taken: list[float] = []
    numbers = iter(range(PUSHES))
    with tempfile.TemporaryDirectory() as folder:
        async with channels(Path(folder) / "spool.sqlite") as web:
            web.broker.hold = silent

            async def lane() -> None:
                for number in numbers:
                    text = side.fields("text", Content=f"第{number}条", MsgId=f"{number}")
                    push = side.push({**text, "FromUserName": f"u-{number % 200}"}, nonce=f"{number}")
                    began = time.perf_counter()
                    answer = await web.push(push)
                    taken.append((time.perf_counter() - began) * 1000)
                    assert answer.content == b"success"

            await asyncio.gather(*(lane() for _ in range(LANES)))
            assert len(web.gateway.spool) == PUSHES or not silent
    return taken
