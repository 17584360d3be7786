"""Kernel parameters of a pod: how they are written and which namespace they belong to. Pure.

Source: k8s.io/component-helpers/node/util/sysctl (NormalizeName, GetNamespace).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final


class SysctlNamespace(enum.StrEnum):
    """Namespaces that have parameters of their own, as upstream writes them."""

    IPC = "IPC"
    NET = "Net"
    UTS = "UTS"
    USER = "User"


_NAMES: Final[Mapping[str, SysctlNamespace]] = {
    "kernel.domainname": SysctlNamespace.UTS,
    **dict.fromkeys(
        (
            "kernel.sem",
            "kernel.shmall",
            "kernel.shmmax",
            "kernel.shmmni",
            "kernel.shm_rmid_forced",
            "kernel.shm",
            "kernel.msgmax",
            "kernel.msgmnb",
            "kernel.msgmni",
            "kernel.msg",
        ),
        SysctlNamespace.IPC,
    ),
}
_PREFIXES: Final[Mapping[str, SysctlNamespace]] = {
    "net.": SysctlNamespace.NET,
    "fs.mqueue.": SysctlNamespace.IPC,
    "user.": SysctlNamespace.USER,
}


def dotted(name: str) -> str:
    """The name with dots between its parts, whichever way it is written: the first separator tells which.

    ``net/ipv4/conf/eno2.100/rp_filter`` is ``net.ipv4.conf.eno2/100.rp_filter``.
    """
    first = next((char for char in name if char in "./"), ".")
    return name if first == "." else name.translate(str.maketrans("./", "/."))


def namespace_of(name: str) -> SysctlNamespace | None:
    """Namespace of a dotted name, or of a pattern's part before its ``*``; None when it is the whole host's."""
    prefix = next((namespace for prefix, namespace in _PREFIXES.items() if name.startswith(prefix)), None)
    return _NAMES.get(name, prefix)
