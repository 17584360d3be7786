"""Podman's own list of images, a file: as long as it is the same file, what an inspect of an image has said is true.

containers/storage writes ``<root>/<driver>-images/images.json`` anew, by renaming, when an image comes, goes or gets
another name, and itself looks at the file's date to know whether it has to read it again. Where it lies stands on the
command line of each monitor, which calls Podman at the end of its container. So the service is one whose containers are
processes of this host. A container's own layer lies in the same store.

What images occupy stands beside it, in ``<root>/<driver>-layers/layers.json``: the size of each layer, and on which one
it lies. Images share layers, so their sizes do not add up; the layers' do.

Tried on Podman 4.3.1, 5.4.2, 5.8.6 and 6.1.1, by tests/contract/test_image_stamp_podman.py and
test_image_garbage_podman.py. Where a file is absent or of another shape, images are inspected for each start, and
Podman is asked for what they occupy.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from ipc.host.regular_files import opened_regular_file, read_at_most, read_regular_file
from ipc.host.text.json_types import UNDECODABLE
from workers.kubecontainer.image_service import ImageStamp, ImageUsage

MAX_LIST_BYTES: Final = 16 << 20
"""Longest list that is read, in bytes: ten thousand images."""
MAX_LAYERS_BYTES: Final = 64 << 20
"""Longest file of layers that is read, in bytes: a hundred thousand layers."""
_LIST: Final = "images.json"
_ARGUMENT: Final = "--exit-command-arg"
_OTHER_STORE: Final = "imagestore="
"""Storage option that names a store with a list of its own."""


class _FileStamp(NamedTuple):
    changed_ns: int
    inode: int
    size: int


class _Image(msgspec.Struct, frozen=True, rename="kebab"):
    """One of images.json (containers/storage, images.go)."""

    id: str
    layer: str = ""
    mapped_layers: tuple[str, ...] = ()
    """Copies of its layer for other user namespaces."""
    big_data_sizes: dict[str, int] = {}


class _Layer(msgspec.Struct, frozen=True, rename="kebab"):
    """One of layers.json (containers/storage, layers.go)."""

    id: str
    parent: str = ""
    diff_size: int = 0


class StoreUsage(msgspec.Struct, frozen=True):
    """Sizes of images, in bytes."""

    total: int
    """Bytes of all images; layers that several have in common count once."""
    sizes: Mapping[str, int]
    """By image id, each with all that it needs."""
    exclusive: Mapping[str, int]
    """By image id: what is no other image's too, and goes with it."""


class ImageStore:
    """The list of one service's images, once a monitor has told where it is."""

    def __init__(self) -> None:
        self._list: Path | None = None
        self._is_known = False
        self._counted: tuple[_FileStamp, StoreUsage] | None = None

    def learn(self, monitor: Sequence[str]) -> None:
        """Take it from that monitor's command line, if it is not known yet. With more than one store there is none."""
        if self._is_known:
            return
        self._is_known = True
        self._list = list_of(monitor)

    def learn_layer(self, layer: str) -> None:
        """Learn where images are from the directory of a container's own layer, ``<root>/<driver>/<id>/diff``."""
        if not self._is_known and (driver := Path(layer).parent.parent).name:
            self._is_known = True
            self._list = driver.with_name(f"{driver.name}-images") / _LIST

    def learn_root(self, root: str, driver: str) -> None:
        """Learn where images are from what Podman says of itself."""
        if not self._is_known:
            self._is_known = True
            self._list = Path(root, f"{driver}-images", _LIST)

    @property
    def root(self) -> str:
        """A directory on the images' file system; empty while it is not known."""
        return str(self._list.parent.parent) if self._list is not None else ""

    def usage(self) -> StoreUsage | None:
        """Sum of what images occupy, counted anew when one has come or gone; None when it cannot be known. Blocks."""
        stamp = self.stamp()
        if self._list is None or not isinstance(stamp, _FileStamp):
            return None
        if self._counted is None or self._counted[0] != stamp:
            try:
                usage = count(*_read_store(self._list))
            except (OSError, *UNDECODABLE):
                return None
            self._counted = (stamp, usage)
        return self._counted[1]

    def read_usage(self) -> ImageUsage | None:
        """`usage`, and how full the file system is; None when it is not known or cannot be looked at. Blocks."""
        try:
            found = os.statvfs(self.root)
        except OSError:
            return None
        usage = self.usage()
        return ImageUsage(
            capacity=found.f_blocks * found.f_frsize,
            available=found.f_bavail * found.f_frsize,
            exclusive=usage.exclusive if usage is not None else None,
        )

    def stamp(self, having: str = "") -> ImageStamp | None:
        """Stamp of the list, another one after each change; None when it cannot be known, or the list does not name the
        image ``having`` (its id). Blocks."""
        if self._list is None:
            return None
        try:
            if not having:
                return _stamp_of(os.stat(self._list))
            with opened_regular_file(self._list) as fd:
                found = os.fstat(fd)
                return _stamp_of(found) if having.encode() in read_at_most(fd, MAX_LIST_BYTES) else None
        except OSError:
            return None


def _stamp_of(found: os.stat_result) -> _FileStamp:
    return _FileStamp(found.st_mtime_ns, found.st_ino, found.st_size)


def list_of(monitor: Sequence[str]) -> Path | None:
    """The file, out of a monitor's command line; None when that names none, or other stores beside it."""
    arguments = [word for option, word in itertools.pairwise(monitor) if option == _ARGUMENT]
    options = list(itertools.pairwise(arguments))
    root, driver = dict(options).get("--root", ""), dict(options).get("--storage-driver", "")
    others = any(option == "--storage-opt" and _OTHER_STORE in word for option, word in options)
    return Path(root, f"{driver}-images", _LIST) if root and driver and not others else None


def count(images: Sequence[_Image], layers: Sequence[_Layer]) -> StoreUsage:
    """Sum up the layers that images have, and the texts that belong to each. Pure."""
    known = {layer.id: layer for layer in layers}
    of_image = {image.id: frozenset(_layers_of(image, known)) for image in images}
    texts = {image.id: sum(image.big_data_sizes.values()) for image in images}
    users = Counter(layer for needed in of_image.values() for layer in needed)
    return StoreUsage(
        total=_size(users, known) + sum(texts.values()),
        sizes={id: _size(needed, known) + texts[id] for id, needed in of_image.items()},
        exclusive={
            id: _size((layer for layer in needed if users[layer] == 1), known) + texts[id]
            for id, needed in of_image.items()
        },
    )


def _layers_of(image: _Image, known: Mapping[str, _Layer]) -> Iterator[str]:
    """Layers of an image and those below them; one that refers to itself ends."""
    seen: set[str] = set()
    for top in (image.layer, *image.mapped_layers):
        id = top
        while id in known and id not in seen:
            seen.add(id)
            yield id
            id = known[id].parent


def _size(ids: Iterable[str], known: Mapping[str, _Layer]) -> int:
    return sum(known[id].diff_size for id in ids)


def _read_store(images: Path) -> tuple[tuple[_Image, ...], tuple[_Layer, ...]]:
    layers = images.parent.with_name(images.parent.name.removesuffix("-images") + "-layers") / "layers.json"
    return (
        _decoded(images, MAX_LIST_BYTES, tuple[_Image, ...]),
        _decoded(layers, MAX_LAYERS_BYTES, tuple[_Layer, ...]),
    )


def _decoded(path: Path, max_bytes: int, type: Any) -> Any:
    """Raises OSError, or DecodeError also for a file that is longer."""
    return msgspec.json.decode(read_regular_file(path, max_bytes), type=type)
