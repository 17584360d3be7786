"""Bindings of claims to volumes, on disk: one file, replaced as a whole.

A file that cannot be used costs the memory of what was bound: claims are bound anew, by their documents.
"""

from __future__ import annotations

import enum
import functools
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.atomic_file import write_atomically
from ipc.host.clock import Clock, parse_rfc3339
from ipc.host.private_directories import make_private
from ipc.host.state_file import usable_state
from ipc.k8s.api.quantity import parse_quantity
from ipc.k8s.api.v1.persistent_volume import PersistentVolumeClaim
from supervisor.state.checked_file import decode_checked, encode_checked
from supervisor.state.throttled_saver import ThrottledSaver, Write

FILE: Final = "volume_bindings"
VERSION: Final = 1
"""Version of the format. Another version is not trusted, whatever it says."""
RETRY_S: Final = 5.0
MAX_FILE_BYTES: Final = 64 << 20
"""Largest file that is read."""

log = logging.getLogger(__name__)

ClaimKey = tuple[str, str]
"""Namespace and name."""


class VolumePhase(enum.StrEnum):
    """Phases of a volume that has, or had, a claim (PersistentVolumePhase)."""

    BOUND = "Bound"
    RELEASED = "Released"
    """The claim is gone; the volume is nobody's until its own document goes, or its content was deleted."""
    FAILED = "Failed"
    """The volume's content could not be deleted."""


class Binding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A volume's claim. What is kept on disk."""

    volume: str
    claim: PersistentVolumeClaim
    """The volume as it was bound: a pod may use it for longer than its document is there."""
    phase: VolumePhase = VolumePhase.BOUND
    message: str = ""
    """Reason of FAILED."""
    provisioned: bool = False
    """The volume has no document: it was made for the claim, in Podman."""
    deleted_at: str | None = None
    """When the claim's document was found gone while a pod still used it (RFC 3339)."""

    @property
    def key(self) -> ClaimKey:
        """Key of its claim."""
        return claim_key(self.claim)


def claim_key(claim: PersistentVolumeClaim) -> ClaimKey:
    """Namespace and name of a claim."""
    return claim.metadata.namespace, claim.metadata.name


def save(path: Path, bindings: Iterable[Binding]) -> None:
    """Replace the file. Raises OSError; it is whole then, the old or the new one."""
    make_private(path.parent)
    write_atomically(path, encode_checked(VERSION, msgspec.json.encode(tuple(bindings))))


def load(path: Path) -> tuple[Binding, ...]:
    """Bindings as they were saved; none of a file that is missing or cannot be used: that is logged."""
    return usable_state(path, MAX_FILE_BYTES, _decode, "bindings of volumes", log) or ()


def _decode(data: bytes) -> tuple[Binding, ...]:
    found = msgspec.json.decode(decode_checked(VERSION, data), type=tuple[Binding, ...])
    for binding in found:
        _check(binding)
    return found


def _check(binding: Binding) -> None:
    """Raises ValueError."""
    for quantity in binding.claim.spec.resources.requests.values():
        parse_quantity(quantity)
    if binding.deleted_at:
        parse_rfc3339(binding.deleted_at)


class VolumeBindingsCheckpoint:
    """When the file is written (`supervisor.state.throttled_saver`): after every event that has changed something."""

    def __init__(self, directory: Path, clock: Clock, ended: Callable[[], None]) -> None:
        """``ended`` is called after every write."""
        self._path = directory / FILE
        self._saver = ThrottledSaver[int]("bindings of volumes", 0, clock, log, retry_s=RETRY_S, ended=ended)

    def restore(self) -> tuple[Binding, ...]:
        """Bindings that an earlier run of the agent has saved."""
        return load(self._path)

    def is_kept(self, version: int) -> bool:
        """Whether that version is on disk, or writes fail."""
        return self._saver.is_kept(lambda written: version <= written)

    def keep(self, version: int, bindings: Callable[[], Iterable[Binding]]) -> None:
        """Write what is new. To be called after every event; ``version`` says how new ``bindings`` are."""
        self._saver.keep(lambda: version, self._write(bindings))

    def write_again(self) -> None:
        """The file has gone away: the next `keep` writes it."""
        self._saver.write_again()

    async def close(self, version: int, bindings: Callable[[], Iterable[Binding]]) -> None:
        """Write the last ones, if the disk takes them in time."""
        await self._saver.close(lambda: version, self._write(bindings))

    def _write(self, bindings: Callable[[], Iterable[Binding]]) -> Callable[[int], Write]:
        return lambda _: functools.partial(save, self._path, tuple(bindings()))
