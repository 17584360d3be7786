"""Addresses of names, and connections with them, without threads of libuv's: it ends the process with SIGABRT where the
kernel gives it none (src/threadpool.c, init_threads), and the loop's own getaddrinfo and create_connection ask it."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from ipc.link.eventloop.shortages import is_shortage

MAX_LOOKUPS: Final = 4
"""Names that are looked up at a time, as in libuv. More wait: a name server that is away takes its time."""

Found = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]
"""One answer of `socket.getaddrinfo`."""

_THREADS: Final = ThreadPoolExecutor(MAX_LOOKUPS, thread_name_prefix="lookup")
"""Each is begun when it is needed: a process that is forked inherits none."""


async def look_up(host: str, port: int) -> Sequence[Found]:
    """For streams. Raises OSError: `socket.gaierror` for a name that has no address, EAGAIN without a thread."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return await _asked(host, port)
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)


async def _asked(host: str, port: int) -> Sequence[Found]:
    ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    try:
        asked = asyncio.get_running_loop().run_in_executor(_THREADS, ask)
    except RuntimeError as error:
        if not is_shortage(error):
            raise
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
    return await asked


async def connected(host: str, port: int) -> socket.socket:
    """A connection with the first of the host's addresses that takes one. Raises OSError: the first address's."""
    refusal: OSError | None = None
    for family, kind, protocol, _, address in await look_up(host, port):
        made = socket.socket(family, kind, protocol)
        try:
            made.setblocking(False)
            await asyncio.get_running_loop().sock_connect(made, address)
        except OSError as error:
            made.close()
            refusal = refusal or error
        except BaseException:
            made.close()
            raise
        else:
            return made
    raise refusal or socket.gaierror(socket.EAI_NONAME, f"no address of {host}")
