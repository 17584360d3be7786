"""Where applied Secrets are kept: in memory until the host reboots, or sealed on disk."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from ipc.host.atomic_file import UntrustedFile, read_bounded, remove_durably, sync_directory, write_atomically
from ipc.host.private_directories import make_private
from supervisor.config.settings import Settings
from supervisor.sources.directory import MANIFEST_SUFFIXES
from supervisor.state.memory_directory import NotMemory, make_memory_directory
from supervisor.state.sealed_content import NotOpened, Sealer

MEMORY_DIRECTORY: Final = "applied"
SEALED_DIRECTORY: Final = "applied-secrets"
KEY_FILE: Final = "applied-secrets.key"
MAX_FILE_BYTES: Final = 16 << 20
"""Largest file: a stored object in base64, and more."""
LAST_SUFFIX: Final = ".last"
"""Directory beside that of the objects: what was applied of those that a command has changed since."""

log = logging.getLogger(__name__)


class SecretPlace(Protocol):
    """A directory of Secrets, one file for each, and the form of their content there."""

    @property
    def directory(self) -> Path: ...

    @property
    def loss(self) -> str:
        """When the Secrets are lost, for people; empty for never."""

    def make(self) -> None:
        """Make the directory. Raises NotMemory and OSError."""

    def seal(self, name: str, content: bytes) -> bytes:
        """The bytes of the file of that name. Raises OSError."""

    def open(self, name: str, data: bytes) -> bytes:
        """The content of the file of that name. Raises NotOpened."""


class MemoryPlace:
    """As they are, on a file system that is memory."""

    loss: Final = "is kept in memory only, and is gone when the host reboots"

    def __init__(self, directory: Path) -> None:
        self.directory: Final = directory

    def make(self) -> None:
        """Raises NotMemory and OSError."""
        make_memory_directory(self.directory)

    def seal(self, name: str, content: bytes) -> bytes:
        """The content itself."""
        return content

    def open(self, name: str, data: bytes) -> bytes:
        """The content itself."""
        return data


class SealedPlace:
    """Sealed, on whatever file system."""

    loss: Final = ""

    def __init__(self, directory: Path, key_file: Path) -> None:
        self.directory: Final = directory
        self._sealer = Sealer(key_file)

    def make(self) -> None:
        """Raises OSError."""
        make_private(self.directory)

    def seal(self, name: str, content: bytes) -> bytes:
        """Raises OSError."""
        return self._sealer.seal(name, content)

    def open(self, name: str, data: bytes) -> bytes:
        """Raises NotOpened."""
        return self._sealer.open(name, data)


def secret_places(settings: Settings) -> tuple[SecretPlace, SecretPlace]:
    """The place that the configuration says, and the other one."""
    memory = MemoryPlace(settings.memory_dir / MEMORY_DIRECTORY)
    sealed = SealedPlace(settings.state_dir / SEALED_DIRECTORY, settings.state_dir / KEY_FILE)
    return (sealed, memory) if settings.applied_secrets == "Encrypted" else (memory, sealed)


def last_directory(directory: Path) -> Path:
    """Where the objects as they were applied are, beside ``directory``, the objects as they are now."""
    return directory.with_name(f"{directory.name}{LAST_SUFFIX}")


def carry_over(source: SecretPlace, target: SecretPlace) -> None:
    """Move the Secrets that an earlier configuration has kept elsewhere. What cannot be moved stays, and is told.

    What the target has already is newer. Whoever is killed within it finds every Secret in one of the two places.
    """
    for one, other in (
        (source.directory, target.directory),
        (last_directory(source.directory), last_directory(target.directory)),
    ):
        for path in _files(one):
            try:
                if not (other / path.name).exists():
                    content = source.open(path.name, read_bounded(path, MAX_FILE_BYTES))
                    target.make()
                    make_private(other)
                    write_atomically(other / path.name, target.seal(path.name, content))
                    sync_directory(other)
                remove_durably(path)
            except (OSError, NotMemory, NotOpened, UntrustedFile) as error:
                log.error("the Secret in %s stays where it is and is not read: %s", path, error)
            else:
                log.info("the Secret in %s is kept in %s from now on", path, other)


def _files(directory: Path) -> Iterator[Path]:
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return
    yield from (directory / name for name in names if name.endswith(MANIFEST_SUFFIXES) and not name.startswith("."))
