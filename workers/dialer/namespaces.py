"""Namespaces of the kernel: which one belongs to which, and entering them. The only caller of setns(2)."""

from __future__ import annotations

import fcntl
import os
import sys
from typing import Final

if sys.version_info >= (3, 12):
    from os import setns as _setns
    from os import unshare as _unshare
else:
    import ctypes

    _LIBC: Final = ctypes.CDLL(None, use_errno=True)

    def _setns(fd: int, kind: int) -> None:
        _check(_LIBC.setns(fd, kind))

    def _unshare(kind: int) -> None:
        _check(_LIBC.unshare(kind))

    def _check(result: int) -> None:
        if result != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


_CLONE_NEWUSER: Final = 0x10000000
_CLONE_NEWNET: Final = 0x40000000
_NS_GET_USERNS: Final = 0xB701
_NS_GET_PARENT: Final = 0xB702
MAX_DEPTH: Final = 32
"""User namespaces within one another, as many as the kernel allows (user_namespaces(7))."""


def open_network(pid: int) -> int:
    """A process's network namespace; the caller closes it. Raises OSError, ProcessLookupError when that has ended."""
    try:
        return os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise ProcessLookupError(error.errno, error.strerror) from error


def enter_network(fd: int) -> None:
    """This thread's sockets are made there from now on; ``fd`` of the namespace, or a pidfd of a process in it.

    Raises OSError: EPERM without privileges over it, ESRCH when the process has ended.
    """
    _setns(fd, _CLONE_NEWNET)


def leave_network() -> None:
    """Into a new network namespace without any device, which has nobody else in it. Raises OSError."""
    _unshare(_CLONE_NEWNET)


def enter_user(fd: int) -> None:
    """Join a user namespace, with all privileges over what belongs to it, if our user has made it. There is no way
    back.

    Raises OSError: EINVAL in a process with more than one thread.
    """
    _setns(fd, _CLONE_NEWUSER)


def user_namespace_above(network: int) -> int | None:
    """The outermost user namespace below our own to which that network namespace belongs; the caller closes it.

    For a pod of rootless Podman that is the user namespace of Podman itself, also when the pod has one of its own
    within it. None when the network namespace belongs to our own. Raises OSError: EPERM when it belongs to neither
    ours nor one below.
    """
    ours = os.stat("/proc/self/ns/user").st_ino
    below, here = -1, fcntl.ioctl(network, _NS_GET_USERNS)
    try:
        for _ in range(MAX_DEPTH):
            if os.fstat(here).st_ino == ours:
                found, below = below, -1
                return None if found < 0 else found
            above = fcntl.ioctl(here, _NS_GET_PARENT)
            _close(below)
            below, here = here, above
    finally:
        _close(below)
        _close(here)
    return None


def _close(fd: int) -> None:
    if fd >= 0:
        os.close(fd)
