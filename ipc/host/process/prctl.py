"""The two prctl(2) calls that every process of the agent makes."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_NAME_BYTES = 15
"""The kernel cuts a task's name there."""


def _prctl(option: int, argument: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, argument, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def set_parent_death_signal(signum: signal.Signals, parent_pid: int) -> None:
    """Get ``signum`` when the parent dies; at once when it is dead already (the race that prctl leaves open)."""
    _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signum))
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signum)


def set_process_name(name: str) -> None:
    """Set the name that ``ps -o comm`` shows; at most 15 bytes are kept."""
    _prctl(_PR_SET_NAME, ctypes.c_char_p(name.encode()[:_NAME_BYTES]))
