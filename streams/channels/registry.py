"""Finds the adapters: modules in this package, and files of the folders in `channel_dirs`, that have `channel()`."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
from pydantic import ValidationError

from streams import channels
from streams.channels.port import Channel, Sender
from streams.runtime.ports import Clock
from streams.settings import Settings

OWN = "web"  # the gateway itself is the vendor of this one


class ChannelError(ValueError):
    """An adapter or its settings are wrong; the message names the file or the setting."""


def load(settings: Settings) -> Mapping[str, Channel]:
    """Every channel by its name, with its settings from `channels`. Raises ChannelError."""
    found: dict[str, Channel] = {}
    given = dict(settings.channels)
    for module in _modules(settings.channel_dirs):
        where, name = module.__file__ or module.__name__, module.__name__.rpartition(".")[2]
        made = _made(module, where, given.pop(name, {}))
        if made.name in found or made.name == OWN:
            message = f"{where}: there is a channel {made.name!r} already"
            raise ChannelError(message)
        found[made.name] = made
    if given:
        message = f"INTERLOCK_CHANNELS names {', '.join(sorted(given))}; there are {', '.join(sorted(found))}"
        raise ChannelError(message)
    return found


def blind(settings: Settings) -> frozenset[str]:
    """The channels that never say what the customer saw."""
    return frozenset(name for name, channel in load(settings).items() if channel.blind)


def senders_of(settings: Settings, client: httpx.AsyncClient, clock: Clock) -> Mapping[str, Sender]:
    """The channels that send by themselves; messages of the others wait in the gateway's outbox."""
    return {
        name: channel.sender(client, clock) for name, channel in load(settings).items() if channel.sender is not None
    }


def _made(module: ModuleType, where: str, options: Mapping[str, Any]) -> Channel:
    try:
        made = module.channel(options)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]  # never the value: it may be a secret
        field = ".".join(map(str, first["loc"]))
        message = f"INTERLOCK_CHANNELS {module.__name__.rpartition('.')[2]}.{field}: {first['msg']}"
        raise ChannelError(message) from None
    if not isinstance(made, Channel):
        message = f"{where}: channel() must give a streams.channels.port.Channel"
        raise ChannelError(message)
    return made


def _modules(folders: tuple[Path, ...]) -> Iterator[ModuleType]:
    for one in pkgutil.iter_modules(channels.__path__):
        module = importlib.import_module(f"{channels.__name__}.{one.name}")
        if hasattr(module, "channel"):
            yield module
    for folder in folders:
        if not folder.is_dir():
            message = f"INTERLOCK_CHANNEL_DIRS: {folder} is no folder"
            raise ChannelError(message)
        for file in sorted(folder.glob("[!_]*.py")):
            yield _from_file(file)


def _from_file(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"interlock_channel.{file.stem}", file)
    if spec is None or spec.loader is None:
        message = f"{file} can't be imported"
        raise ChannelError(message)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        message = f"{file} can't be imported: {type(error).__name__}: {error}"
        raise ChannelError(message) from error
    if not hasattr(module, "channel"):
        message = f"{file} has no function channel(options)"
        raise ChannelError(message)
    return module
