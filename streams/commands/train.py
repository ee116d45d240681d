"""`interlock train`: fit the intent model again, on the package's sentences or on a user's own labelled ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

OWN = Path("intents.model")


def train(
    data: Annotated[
        Path | None, typer.Argument(help="CSV with columns text, intent and, if you like, language.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Model file to write; default intents.model, or the package's without DATA.")
    ] = None,
) -> None:
    """Fit the intent model on DATA and write it, stamped with the data's hash and its held-out accuracy.

    Without DATA the package's own model is fitted again on the sentences in agents/understanding/examples.
    """
    from agents.understanding.model.examples import read_csv, shipped_examples
    from agents.understanding.model.file import MODEL_FILE, packed
    from agents.understanding.model.fit import fit
    from streams.commands import CommandError

    examples = shipped_examples() if data is None else read_csv(_lines(data), str(data))
    try:
        model = fit(examples)
    except ValueError as error:
        message = f"{data or 'the package'}: {error}"
        raise CommandError(message) from error
    target = out or (MODEL_FILE if data is None else OWN)
    target.write_bytes(packed(model))
    stamp, metrics = model.stamp, model.stamp.metrics
    typer.echo(f"{target}: version {stamp.version}, {len(model.intents)} intents, {stamp.examples} examples, "
               f"{', '.join(stamp.languages)}, {stamp.library}")  # fmt: skip
    typer.echo(f"held out {metrics['held_out']:.0f}: accuracy {metrics['held_out_accuracy']:.2%}, "
               f"calibration error {metrics['held_out_calibration_error']:.3f}")  # fmt: skip
    if data is not None:
        typer.echo(f"to use it: INTERLOCK_UNDERSTANDING_MODEL={target}")


def _lines(path: Path) -> list[str]:
    from streams.commands import CommandError

    try:
        return path.read_text("utf-8-sig").splitlines(keepends=True)
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        message = f"{path}: line {line}: is no UTF-8; save the table as UTF-8"
        raise CommandError(message) from error


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(train)
