"""The listening ends of the sockets that children serve: made by the master before any child, so that connections wait
in their backlogs while the API server, or the dialer, is being replaced."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from ipc.host.private_directories import make_private

BACKLOG = 128
EVERY_IPV6_ADDRESS = "::"
MAX_PATH_BYTES = 107
"""sockaddr_un's limit, less the closing zero."""


def listen(path: Path, kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
    """Bind and listen, mode 0600 in a 0700 directory. Only the holder of the instance lock may call this: whatever
    socket lies there is a dead agent's.

    Raises:
        OSError: the directory or the socket cannot be made.
    """
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        raise OSError(f"{path}: longer than the {MAX_PATH_BYTES} bytes that a Unix socket's path may have")
    make_private(path.parent)
    path.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX, kind)
    old_umask = os.umask(0o177)
    try:
        sock.bind(str(path))
    finally:
        os.umask(old_umask)
    sock.listen(BACKLOG)
    return sock


def listen_tcp(address: str, port: int) -> socket.socket:
    """Bind and listen on one address; ``::`` takes IPv4 too.

    Raises:
        OSError: the port is taken or not allowed; its text names it.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        sock = socket.create_server(
            (address, port), family=family, backlog=BACKLOG, dualstack_ipv6=address == EVERY_IPV6_ADDRESS
        )
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror or error}: port {port} of {address}") from error
    sock.setblocking(False)
    return sock
