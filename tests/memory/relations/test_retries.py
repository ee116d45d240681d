"""What the Neo4j store tries again, and how often, without a server: the work fails as a server would make it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from neo4j.exceptions import ClientError, Neo4jError, ServiceUnavailable, TransientError

from memory.relations.neo4j import Neo4jRelations


def error(kind: type[Neo4jError], code: str) -> Neo4jError:
    """The server's word."""
    found = kind(code)
    found._neo4j_code = code
    return found


def failing(times: int, fault: Exception) -> tuple[list[int], Callable[[], Awaitable[str]]]:
    """Work that fails so often; and its tries."""
    tries: list[int] = []

    async def work() -> str:
        tries.append(len(tries))
        if len(tries) <= times:
            raise fault
        return "done"

    return tries, work


@pytest.mark.parametrize("code", ["DeadlockDetected", "LockClientStopped", "Outdated"])
async def test_a_deadlock_is_tried_again_as_often_as_it_takes(code: str) -> None:
    """Of rivals one is let through at a time: the last of five loses four times, and gets through (case I11)."""
    tries, work = failing(4, error(TransientError, f"Neo.TransientError.Transaction.{code}"))
    assert ("done", 5) == (await Neo4jRelations._repeated(work), len(tries))


async def test_a_cut_connection_is_tried_once_more() -> None:
    """A second cut is an outage: it is told, and the keeper waits (case I09)."""
    tries, work = failing(1, ServiceUnavailable("cut"))
    assert ("done", 2) == (await Neo4jRelations._repeated(work), len(tries))
    tries, work = failing(2, ServiceUnavailable("cut"))
    with pytest.raises(ServiceUnavailable):
        await Neo4jRelations._repeated(work)
    assert 2 == len(tries)


async def test_what_is_wrong_is_not_tried_again() -> None:
    """A query that the server does not understand is no better the second time."""
    tries, work = failing(1, error(ClientError, "Neo.ClientError.Statement.SyntaxError"))
    with pytest.raises(ClientError):
        await Neo4jRelations._repeated(work)
    assert 1 == len(tries)
