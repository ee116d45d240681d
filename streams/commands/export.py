"""`interlock export DIR`: the contracts as JSON Schema, AsyncAPI and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    folder: Annotated[Path | None, typer.Argument(metavar="DIR", help="Where the files go; it is created.")] = None,
    publish: Annotated[bool, typer.Option("--publish", help="In a source tree: publish new versions.")] = False,
) -> None:
    """Write JSON Schema of every version, one AsyncAPI 3 document and the flow's picture below DIR.

    With --publish: bring the examples into their canonical form, and add new versions to the list of
    published ones; a published version that changed is refused.
    """
    import schemas
    from schemas import export as contracts
    from schemas import published
    from schemas.topics import TOPICS
    from streams.commands import CommandError

    if folder is None and not publish:
        message = "nothing to do: give a folder, or --publish"
        raise CommandError(message, code=2)
    if publish:
        new = published.write(TOPICS.values(), Path(schemas.__file__).parent)
        typer.echo(f"published: {', '.join(new) or 'nothing new'}")
    if folder is not None:
        typer.echo(f"{len(contracts.export(folder))} files below {folder}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(export)
