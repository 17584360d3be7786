"""Podman's default store beside a transient one (`podman.store`): its containers, and what the host's end has left.

The transient store's records of containers and their layers lie in the runtime directory, the layers themselves beside
all others. So after a boot nobody knows them, and they would stay for ever. And Podman's service on that store shows no
container of the default one, whose image would count as unused.

Tried on Podman 4.3.1, 5.4.2, 5.8.6 and 6.1.1, by tests/contract/test_podman_files_podman.py. Records that are absent
name nothing; of records that cannot be read no layer and no image is removed (`UnknownStorage`).
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from ipc.host.regular_files import read_regular_file
from ipc.host.text.json_types import UNDECODABLE
from workers.kubecontainer.image_service import ImageUser
from workers.userns.unshare import Unshare

DEADLINE_S: Final = 20.0
MAX_RECORDS_BYTES: Final = 64 << 20
"""Longest file of records that is read, in bytes."""
ID_CHARS: Final = 64
REMOVED_AT_ONCE: Final = 100
T = TypeVar("T")
_HEX: Final = frozenset("0123456789abcdef")

log = logging.getLogger(__name__)


class UnknownStorage(OSError):
    """Why nobody can say what is in the storage."""


class _Record(msgspec.Struct, frozen=True):
    """A layer or a container (containers/storage, layers.go and containers.go)."""

    id: str
    image: str = ""
    names: tuple[str, ...] | None = None


class Place(msgspec.Struct, frozen=True, rename="camel"):
    """Where a storage lies."""

    graph_root: str
    run_root: str
    graph_driver_name: str

    def records(self, kind: str) -> tuple[Path, Path, Path]:
        """Files of records of layers or containers: two of the default store, and the transient one's."""
        name = f"{self.graph_driver_name}-{kind}"
        lasting, volatile = f"{kind}.json", f"volatile-{kind}.json"
        graph, run = Path(self.graph_root, name), Path(self.run_root, name)
        return graph / lasting, graph / volatile, run / volatile


_PLACE: Final = msgspec.json.Decoder(Place)
_RECORDS: Final = msgspec.json.Decoder(tuple[_Record, ...] | None)


class DefaultStore:
    """Looked at past Podman. Methods block, but for `clear`: for a thread."""

    def __init__(self, podman: Sequence[str]) -> None:
        """``podman``: its program and global options."""
        self._podman = podman

    def users(self) -> tuple[ImageUser, ...]:
        """Containers of the default store and their images. Raises OSError."""
        lasting, volatile, _ = self.place.records("containers")
        return tuple(
            ImageUser(id=record.id, name=next(iter(record.names or ()), record.id), images=(record.image,))
            for record in (*_read(lasting), *_read(volatile))
            if record.image
        )

    async def clear(self, unshare: Unshare) -> None:
        """Remove layers and directories of containers that no store knows. Raises OSError, UnshareError."""
        left = await asyncio.to_thread(lambda: left_over(self.place))
        for start in range(0, len(left), REMOVED_AT_ONCE):
            steps = [("remove", {"path": str(path)}) for path in left[start : start + REMOVED_AT_ONCE]]
            await asyncio.to_thread(unshare.run, steps)
        if left:
            log.info("removed %d layers and directories of containers that an earlier boot has left", len(left))

    @functools.cached_property
    def place(self) -> Place:
        command = (*self._podman, "info", "--format", "{{json .Store}}")
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
        except subprocess.SubprocessError as error:
            raise UnknownStorage(f"podman info does not say where the storage lies: {error}") from error
        return _decoded(done.stdout.encode(), _PLACE, "podman info")


def left_over(place: Place) -> list[Path]:
    """Directories that no record names. Podman records a layer and a container before it makes its directory: so the
    directories are listed first. Raises OSError for records that cannot be read."""
    directories = {
        "layers": Path(place.graph_root, place.graph_driver_name),
        "containers": Path(place.graph_root, f"{place.graph_driver_name}-containers"),
    }
    found = {kind: list(_ids(directory)) for kind, directory in directories.items()}
    left: list[Path] = []
    for kind, ids in found.items():
        known = {record.id for file in place.records(kind) for record in _read(file)}
        left += [directories[kind] / id for id in ids if id not in known]
    return left


def _ids(directory: Path) -> Iterator[str]:
    """Names that are ids. None where the driver keeps its layers elsewhere."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return
    yield from (name for name in names if len(name) == ID_CHARS and _HEX.issuperset(name))


def _read(file: Path) -> list[_Record]:
    try:
        data = read_regular_file(file, MAX_RECORDS_BYTES + 1)
    except FileNotFoundError:
        return []
    if len(data) > MAX_RECORDS_BYTES:
        raise UnknownStorage(f"{file} is larger than {MAX_RECORDS_BYTES} bytes")
    records = _decoded(data, _RECORDS, str(file))
    return list(records or ())


def _decoded(data: bytes, decoder: msgspec.json.Decoder[T], what: str) -> T:
    try:
        return decoder.decode(data)
    except UNDECODABLE as error:
        raise UnknownStorage(f"{what}: {error}") from error
