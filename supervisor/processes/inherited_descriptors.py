"""Files that whoever started the agent has left open for it by mistake: a shell's lock, a pipe that somebody reads to
its end. The agent's children would hold them for days, Podman's service and its containers' monitors among them."""

from __future__ import annotations

import contextlib
import os
from typing import Final

DESCRIPTORS: Final = "/proc/self/fd"
STANDARD: Final = range(3)
"""Input, output, errors. No other one is meant for the agent: it is started by no socket (sd_listen_fds(3))."""


def close_inherited() -> tuple[int, ...]:
    """Close the descriptors that were inherited; their numbers.

    Python opens everything close-on-exec (PEP 446), so what is not has come from the program that was here before.
    """
    inherited = tuple(fd for fd in map(int, os.listdir(DESCRIPTORS)) if fd not in STANDARD and _is_inheritable(fd))
    for fd in inherited:
        os.close(fd)
    return inherited


def _is_inheritable(fd: int) -> bool:
    with contextlib.suppress(OSError):  # that of the list itself
        return os.get_inheritable(fd)
    return False
