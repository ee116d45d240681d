"""The demo's child processes are started, watched, and all ended."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from streams.demo.children import ChildError, Children, free_ports


def test_free_ports_are_different_and_free() -> None:
    """Each port can be listened on, and none is given twice."""
    ports = free_ports(5)

    assert 5 == len(set(ports))
    for port in ports:
        socket.create_server(("127.0.0.1", port)).close()


@pytest.mark.slow
def test_child_that_ends_is_told_with_its_last_lines(tmp_path: Path) -> None:
    """A child that ends by itself is an error with name, status, log and last words."""
    with Children(tmp_path, {}) as children:
        children.start("checker", "scenario", "check", "missing.yaml")
        children._running["checker"].wait(30)

        with pytest.raises(ChildError, match=r"(?s)checker ended with status 1 .*checker\.log.*missing\.yaml"):
            children.check()


@pytest.mark.slow
def test_children_end_with_the_block(tmp_path: Path) -> None:
    """Leaving the block, also by an error, ends every child."""
    port = free_ports(1)[0]
    children = Children(tmp_path, {"INTERLOCK_SHOP_PORT": str(port), "INTERLOCK_DATA_DIR": str(tmp_path)})

    with pytest.raises(RuntimeError, match="in between"), children:  # noqa: PT012 (the child must start inside)
        children.start("shop", "shop")
        child = children._running["shop"]
        children.check()
        message = "in between"
        raise RuntimeError(message)

    assert child.returncode is not None
    assert [] == list(children.names)
