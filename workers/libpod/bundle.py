"""The OCI runtime's config.json of a container, as Podman has written it: among other things the user of its first
process.

Upstream has the user from its runtime (CRI, ContainerStatus.user). The process may have become another user since.
"""

from __future__ import annotations

import os
from typing import Final

import msgspec

from ipc.api.v1.status import LinuxContainerUser

MAX_CONFIG_BYTES: Final = 1 << 20
"""Podman's have ten to twenty thousand."""


class _User(msgspec.Struct, frozen=True, rename="camel"):
    uid: int = 0
    gid: int = 0
    additional_gids: tuple[int, ...] = ()


class _Process(msgspec.Struct, frozen=True):
    user: _User = _User()


class _Mount(msgspec.Struct, frozen=True):
    destination: str = ""
    source: str = ""


class RuntimeConfig(msgspec.Struct, frozen=True):
    """The fields of a config.json that are used."""

    process: _Process = _Process()
    mounts: tuple[_Mount, ...] = ()


_DECODER: Final = msgspec.json.Decoder(RuntimeConfig)


def read_user(config: str) -> LinuxContainerUser | None:
    """The user of that file; None before the first start, and for a container of a pod with ids of its own, whose file
    Podman 4.3 does not leave open to us. A small file on the disk that Podman itself works on."""
    if not config:
        return None
    try:
        user = read_config(config).process.user
    except (OSError, msgspec.DecodeError):
        return None
    return LinuxContainerUser(uid=user.uid, gid=user.gid, supplemental_groups=user.additional_gids)


def read_config(config: str) -> RuntimeConfig:
    """Raises OSError, msgspec.DecodeError."""
    with open(config, "rb", buffering=0) as file:
        # No larger buffer than the file needs: each of a megabyte costs five pages that the kernel makes anew.
        size = min(os.fstat(file.fileno()).st_size, MAX_CONFIG_BYTES)
        return _DECODER.decode(file.read(size))
