"""To whom a new volume of Podman's belongs: its first container's image and user decide. Pure.

Mirrors fixVolumePermissions (libpod/container_internal_common.go), which gives the volume the owner and mode of the
directory that the image has at its place, else the container's user; and for names GetExecUser (moby/sys/user), by
which Podman reads an image's /etc/passwd and /etc/group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from workers.kubecontainer.config_error import ConfigError

PODMANS_MODE: Final = 0o755
"""Mode of the root of a volume that Podman makes."""
_NUMBER: Final = re.compile(r"[0-9]{1,10}")


class VolumeOwner(msgspec.Struct, frozen=True):
    """Ids as Podman's user namespace has them."""

    uid: int
    gid: int
    mode: int = PODMANS_MODE

    @property
    def option(self) -> str:
        """For option ``o`` of Podman's local driver."""
        return f"uid={self.uid},gid={self.gid}"


class ImageAccounts(msgspec.Struct, frozen=True):
    """Accounts of an image, and its directory at the volume's place."""

    passwd: str
    group: str
    target: VolumeOwner | None = None
    """Owner and mode of the directory that the volume covers."""


def first_owner(user: str, image: ImageAccounts) -> VolumeOwner:
    """``user`` as Podman takes it: empty for root, or ``user`` or ``user:group``, each a number or a name. Raises
    ConfigError for a name that the image does not have."""
    if image.target is not None:
        return image.target
    name, _, group = user.partition(":")
    uid, gid = _user(name or "0", image.passwd)
    return VolumeOwner(uid, _group(group, image.group) if group else gid)


def _user(name: str, passwd: str) -> tuple[int, int]:
    """A number is never taken for a name."""
    number = int(name) if _NUMBER.fullmatch(name) else None
    for entry in _entries(passwd, 4):
        if entry[0] == name if number is None else int(entry[2]) == number:
            return int(entry[2]), int(entry[3])
    if number is None:
        raise ConfigError(f"unable to find user {name}: no matching entries in passwd file")
    return number, 0


def _group(name: str, groups: str) -> int:
    if _NUMBER.fullmatch(name):
        return int(name)
    found = next((int(entry[2]) for entry in _entries(groups, 3) if entry[0] == name), None)
    if found is None:
        raise ConfigError(f"unable to find group {name}: no matching entries in group file")
    return found


def _entries(text: str, fields: int) -> Iterator[list[str]]:
    """Lines of so many fields or more, of which those from the third on are ids; no others."""
    for line in text.split("\n"):
        entry = line.strip().split(":", fields)
        if len(entry) >= fields and all(_NUMBER.fullmatch(id) for id in entry[2:fields]):
            yield entry
