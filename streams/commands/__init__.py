"""One module a command of `interlock`; each has `register(app)` and imports what is heavy only when it runs."""

from __future__ import annotations

from schemas.errors import InterlockError


class CommandError(InterlockError):
    """A command can't do what was asked: the message says what is wrong and what to do; `code` is the exit status."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code
