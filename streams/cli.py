"""The command line: `interlock`. Commands are the modules of `streams.commands`; errors are one clear line."""

from __future__ import annotations

import os
import pkgutil
import sys
from importlib import import_module

import typer

from streams import commands

PACKAGES = frozenset({"schemas", "memory", "agents", "feedback", "streams"})
USAGE_ERROR = 2
INTERRUPTED = 130  # 128 + SIGINT, what a shell expects


def build() -> typer.Typer:
    """The app with every command registered."""
    app = typer.Typer(
        name="interlock",
        help="An event-driven customer-service agent: safe to run, possible to investigate.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_root)
    for module in sorted(pkgutil.iter_modules(commands.__path__), key=lambda found: found.name):
        if not module.name.startswith("_"):
            import_module(f"streams.commands.{module.name}").register(app)
    return app


def _root() -> None:
    pass


def explain(error: BaseException) -> tuple[str, int] | None:
    """The line and exit status for an error that a user can act on; None for a bug, which keeps its traceback."""
    if isinstance(error, commands.CommandError):
        return str(error), error.code
    kind = type(error)
    if kind.__module__ == "pydantic_core._pydantic_core" and kind.__name__ == "ValidationError":
        return _fields(error), USAGE_ERROR
    if kind.__module__ == "pydantic_settings.exceptions":
        return _no_json(error), USAGE_ERROR
    if kind.__module__.partition(".")[0] in PACKAGES or isinstance(error, OSError):
        return f"{str(error) or kind.__name__}", 1
    if kind.__module__.partition(".")[0] in {"httpx", "cimpl", "confluent_kafka"}:
        return f"{kind.__name__}: {error}", 1
    return None


def _fields(error: BaseException) -> str:
    found = error.errors(include_url=False)  # type: ignore[attr-defined]  # pydantic stays unimported here
    title: str = error.title  # type: ignore[attr-defined]  # the same
    settings = title == "Settings"  # the user knows them as variables
    lines = []
    for item in found:
        where = "/".join(map(str, item["loc"]))
        said = item["msg"].removeprefix("Value error, ")
        lines.append(
            ": ".join(part for part in (f"INTERLOCK_{where.upper()}" if settings and where else where, said) if part)
        )
    return f"{title}: " + "; ".join(lines)


def _no_json(error: BaseException) -> str:
    """The setting that can't be parsed, and where; its value may be a secret."""
    _, name, *_ = str(error).split('"')
    return f"Settings: INTERLOCK_{name.upper()}: expected JSON ({error.__cause__})"


def main() -> None:
    """The `interlock` command."""
    try:
        build()()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # the reader of our output went away: nothing to say, and no second error at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        known = explain(error)
        if known is None:
            raise
        line, code = known
        sys.stderr.write(f"interlock: {line}\n")
        sys.exit(code)


if __name__ == "__main__":
    main()
