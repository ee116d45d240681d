"""Adapters are found by being there; a new channel is one file, and nothing else is changed (R-002-07)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import httpx
import orjson
import pytest

from streams.channels.port import Push
from streams.channels.registry import ChannelError, blind, load, senders_of
from streams.gateway.access import bearer
from tests.promises.stand import Stand, isolated, whole
from tests.streams.channels import wechat_side as side
from tests.streams.channels.gateway import channels
from tests.streams.gateway.keys import DESK, ORDERS, key_file
from tests.streams.gateway.local import FixedClock

# the example of the documentation, as it stands there
VIDEO = Path("docs/channels.md").read_text("utf-8").partition("```python\n")[2].partition("```")[0]
SCENE = {
    "shop": "demo",
    "viewer": "c-zh-refund",
    "scene": "s-1",
    "clip": "clip-1",
    "words": "我要退款，订单1001，太大了",
}


def folder(path: Path, text: str = VIDEO, name: str = "video.py") -> Path:
    """A folder with one adapter file."""
    (path / name).write_text(text)
    return path


def test_the_channels_of_the_product() -> None:
    """Each adapter file of the package is there by its name; those that show nothing say so."""
    assert {"wechat", "voice", "ocr"} <= set(load(isolated()))
    assert frozenset({"wechat"}) == blind(isolated())


def test_only_channels_with_a_sender_send_by_themselves() -> None:
    """The others' messages wait in the gateway's outbox."""
    settings = isolated(channels={"wechat": side.options()})

    assert {"wechat"} == set(senders_of(settings, httpx.AsyncClient(), FixedClock()))


def test_a_new_channel_is_one_file(tmp_path: Path) -> None:
    """Video transcripts, added as a file, are read, planned and answered as any other channel's (R-002-07)."""
    (door,) = load(isolated(channel_dirs=(folder(tmp_path),)))["video"].doors

    async def body(stand: Stand) -> None:
        person = await stand.person("c-zh-refund")
        person.scenario = person.scenario.model_copy(update={"channel": "video"})
        person.conversation = "demo/video/c-zh-refund"
        for event in door.read(Push(stand.now, orjson.dumps(SCENE))).events:
            await person.send(event)
        await stand.pass_ms(4_000)
        assert ["refund.confirm"] == person.heard
        (call,) = person.values("tools.calls")
        assert "1001" == call["args"]["order_id"]

    whole(body)


async def test_a_new_channel_has_its_door_in_the_gateway(tmp_path: Path) -> None:
    """Its path is served, and what it reads is masked and published."""
    async with channels(dirs=(folder(tmp_path),)) as web:
        answer = await web.client.post("/v1/channels/video/scenes", json=SCENE)
        (event,) = web.values("channel.events")

    assert (202, {"accepted": ["s-1"]}) == (answer.status_code, answer.json())
    assert "demo/video/c-zh-refund" == event.conversation


PART = {"shop": "demo", "sender": "u-1", "recording_id": "r-1", "part": 1, "text": "退款"}
PICTURE = {"shop": "demo", "sender": "u-1", "message_id": "p-1", "text": "", "images": [{"ref": "i", "blocks": []}]}


@pytest.mark.parametrize(("path", "body"), [("video/scenes", SCENE), ("voice", PART), ("ocr", PICTURE)])
async def test_a_door_without_a_proof_of_its_own_needs_a_key(
    path: str, body: dict[str, object], tmp_path: Path
) -> None:
    """A service that speaks for all customers shows a key that may publish, also to an adapter of one's own."""
    async with channels(dirs=(folder(tmp_path),), keys=key_file(tmp_path)) as web:
        answers = [await web.post(f"/v1/channels/{path}", body, **bearer(key)) for key in ("", DESK, ORDERS)]

        assert [401, 403, 202] == [one.status_code for one in answers]
        assert (2, 1) == (web.refusals("key"), len(web.values("channel.events")))


async def test_a_signed_push_needs_no_key(tmp_path: Path) -> None:
    """WeChat proves itself by its signature, and can show no key; a push without one is refused as before."""
    async with channels(keys=key_file(tmp_path)) as web:
        push = side.push(side.fields("text", Content="hello", MsgId="1"))
        good = await web.push(push)
        bad = await web.push(replace(push, query={**push.query, "signature": "0" * 40}))

        assert (200, 403) == (good.status_code, bad.status_code)
        assert (1, 0) == (web.refusals("signature"), web.refusals("key"))


@pytest.mark.parametrize(("text", "name", "words"), [
    ("x = 1", "a.py", "no function channel"), ("1 / 0", "a.py", "ZeroDivisionError"), ("def f(", "a.py", "SyntaxError"),
    (VIDEO.replace('Channel("video"', 'Channel("voice"'), "a.py", "voice' already"),
    (VIDEO.replace('Channel("video"', 'Channel("web"'), "a.py", "web' already"),
    ("def channel(options): return 1", "a.py", "must give"),
])  # fmt: skip
def test_a_file_that_is_no_adapter_is_named(text: str, name: str, words: str, tmp_path: Path) -> None:
    """A broken adapter stops the start with its file and what is wrong."""
    with pytest.raises(ChannelError, match=words) as caught:
        load(isolated(channel_dirs=(folder(tmp_path, text, name),)))

    assert name in str(caught.value)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The setting is named with the folder."""
    with pytest.raises(ChannelError, match="INTERLOCK_CHANNEL_DIRS"):
        load(isolated(channel_dirs=(tmp_path / "none",)))


@pytest.mark.parametrize(("given", "words"), [
    ({"wechat": {"accounts": {"demo": {"app_id": "wx1"}}}}, r"wechat\.accounts\.demo\.token: Field required"),
    ({"wechat": side.options(aes=True) | {"replay_seconds": 0}}, "wechat.replay_seconds"),
    ({"voice": {"key": "topsecret"}}, "voice.key"), ({"telegraph": {}}, "INTERLOCK_CHANNELS names telegraph"),
])  # fmt: skip
def test_wrong_settings_are_named_and_not_shown(given: dict[str, dict[str, object]], words: str) -> None:
    """A setting of a channel that is missing, wrong or unknown is named by its path; values are never shown."""
    with pytest.raises(ChannelError, match=words) as caught:
        load(isolated(channels=given))

    assert "topsecret" not in str(caught.value)
    assert side.TOKEN not in str(caught.value)
