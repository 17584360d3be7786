"""Another machine for end-to-end tests: a program in a network namespace beside the host's, which connects when it is
told to (`tests/hosts/neighbour`). Standard library only: it runs as root, outside of the project's environment.

    neighbour.py ADDRESS:PORT     # serves there: "tcp|udp SOURCE HOST PORT" -> what the server at HOST said first
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from typing import Final

VARIABLE: Final = "ROOTLET_TEST_NEIGHBOUR"
"""Environment variable with the place where it is told."""
DEADLINE_S: Final = 5.0
MAX_WORDS: Final = 512
TYPES: Final = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}


def first_words(type: str, source: str, host: str, port: int) -> str:
    """First words of a server at ``host``, to a client whose address is ``source``; empty when there are none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, TYPES[type]) as client:
        client.settimeout(DEADLINE_S)
        client.bind((source, 0))
        client.connect((host, port))
        if type == "udp":
            client.send(b"who am I")
        return client.recv(MAX_WORDS).decode()
    return ""


def ask(type: str, source: str, host: str, port: int) -> str:
    """Let the neighbour do that."""
    address, _, its_port = os.environ[VARIABLE].rpartition(":")
    with socket.create_connection((address, int(its_port)), DEADLINE_S) as neighbour:
        neighbour.sendall(f"{type} {source} {host} {port}".encode())
        neighbour.settimeout(2 * DEADLINE_S)
        return neighbour.recv(MAX_WORDS).decode()


def serve(address: str, port: int) -> None:
    """One request after the other, for ever."""
    with socket.create_server((address, port)) as server:
        while True:
            with server.accept()[0] as asking:
                type, source, host, number = asking.recv(MAX_WORDS).decode().split()
                asking.sendall(first_words(type, source, host, int(number)).encode())


if __name__ == "__main__":
    place, _, number = sys.argv[1].rpartition(":")
    serve(place, int(number))
