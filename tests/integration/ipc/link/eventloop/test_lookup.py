"""Names are looked up where no thread can be made, too: libuv would end the process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

import pytest
import uvloop

from ipc.link.eventloop.lookup import connected, look_up

DEADLINE_S: Final = 30.0
SCRIPT: Final = """
import asyncio, errno, resource, sys, uvloop
from ipc.link.eventloop.lookup import look_up

async def main():
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    resource.setrlimit(resource.RLIMIT_NPROC, (1, hard))
    print(await look_up("127.0.0.1", 80))
    try:
        await look_up("localhost", 80)
    except OSError as error:
        print(errno.errorcode[error.errno])
    resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))
    print(len(await look_up("localhost", 80)) > 0)

uvloop.run(main())
"""


@pytest.mark.skipif(os.getuid() == 0, reason="root has no limit of processes")
def test_without_a_thread_it_is_an_error_and_goes_well_later() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    literal, *rest = done.stdout.splitlines()
    assert "127.0.0.1" in literal
    assert (rest, done.returncode) == (["EAGAIN", "True"], 0), done.stderr


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def test_the_first_address_that_takes_a_connection_is_taken(
    server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = server.getsockname()[1]
    found = [
        (socket.AF_INET6, socket.SOCK_STREAM, 0, "", ("::1", port)),
        (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with uvloop.run(connected("both.example", port)) as made:
        assert made.getpeername() == ("127.0.0.1", port)


def test_the_first_refusal_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        uvloop.run(connected("127.0.0.1", port))


def test_a_name_without_an_address_is_an_error() -> None:
    with pytest.raises(socket.gaierror):
        uvloop.run(look_up("no-such-name.invalid", 80))
