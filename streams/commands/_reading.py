"""What the reading commands share: settings with the running cluster's address, and a source on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from streams.reader import KafkaSource
    from streams.settings import Settings

Json = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]


def cluster() -> Settings:
    """The settings, with the cluster that runs. Raises BrokerError when none does."""
    from streams.broker import bootstrap_of
    from streams.settings import Settings

    settings = Settings()
    return settings.model_copy(update={"bootstrap_servers": bootstrap_of(settings)})


@contextmanager
def source() -> Iterator[KafkaSource]:
    """A reader of the running cluster: no group, no commits."""
    from streams.reader import KafkaSource

    with KafkaSource(cluster()) as opened:
        yield opened


def line(value: object) -> None:
    """One JSON object on a line of its own."""
    import orjson

    typer.echo(orjson.dumps(value).decode())
