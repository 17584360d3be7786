"""User of a container's first process when it was started, from the OCI runtime's config.json.

Upstream has it from its runtime (CRI, ContainerStatus.user). The process may have become another user since.
"""

from __future__ import annotations

from pathlib import Path
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


class _Config(msgspec.Struct, frozen=True):
    process: _Process = _Process()


_DECODER: Final = msgspec.json.Decoder(_Config)


def read_user(config: str) -> LinuxContainerUser | None:
    """Of that file; None before the first start, and for a container of a pod with ids of its own, whose file Podman
    4.3 does not leave open to us. A small file on the disk that Podman itself works on."""
    if not config:
        return None
    try:
        with Path(config).open("rb") as file:
            user = _DECODER.decode(file.read(MAX_CONFIG_BYTES)).process.user
    except (OSError, msgspec.DecodeError):
        return None
    return LinuxContainerUser(uid=user.uid, gid=user.gid, supplemental_groups=user.additional_gids)
