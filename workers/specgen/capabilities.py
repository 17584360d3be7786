"""Linux capabilities of a container, added to and dropped from Podman's default ones. Pure.

As containerd does it (pkg/oci, WithCapabilities): ALL counts before single names, and what is both added and dropped is
dropped; Podman refuses such a pair. The default ones are the runtime's, upstream too. Podman's are CHOWN, DAC_OVERRIDE,
FOWNER, FSETID, KILL, NET_BIND_SERVICE, SETFCAP, SETGID, SETPCAP, SETUID and SYS_CHROOT, as far as its containers.conf
does not say otherwise: nearly CRI-O's, and containerd's without AUDIT_WRITE, MKNOD and NET_RAW.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ipc.api.v1.security import Capabilities

ALL: Final = "ALL"
_KNOWN: Final = """
    AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER
    FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN NET_BIND_SERVICE
    NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYSLOG SYS_ADMIN SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE
    SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG WAKE_ALARM
"""
KNOWN: Final = frozenset(_KNOWN.split())
"""capabilities(7). Podman leaves out those that the kernel does not have."""


def capability_changes(capabilities: Capabilities) -> dict[str, list[str]]:
    """Fields ``cap_add`` and ``cap_drop`` of a SpecGenerator; a name that Podman does not know fails the create."""
    add, drop = _names(capabilities.add), _names(capabilities.drop)
    single, dropped = add - {ALL}, drop - {ALL}
    if ALL in drop:
        return _changes(single - dropped, {ALL})
    if ALL in add and dropped:
        # Spelled out: of ALL, Podman gives a user that is not root also what is dropped.
        return _changes((KNOWN | single) - dropped, dropped)
    return _changes({ALL} if ALL in add else single - dropped, dropped)


def _changes(add: Iterable[str], drop: Iterable[str]) -> dict[str, list[str]]:
    changes = {"cap_add": sorted(add), "cap_drop": sorted(drop)}
    return {name: names for name, names in changes.items() if names}


def _names(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.upper().removeprefix("CAP_") for name in names)
