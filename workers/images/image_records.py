"""Records of images that outlive the agent: when each was first seen and last used, and which this agent has pulled.

Upstream keeps the times in memory (imageRecords, pkg/kubelet/images/image_gc_manager.go). Here they are a file of
``stateDir``, because only images that this agent has pulled are garbage by default, and a restart must not make them
a stranger's. A pull that has begun is noted before it: what a killed process has pulled is found at the next
collection. A file that cannot be used is moved aside and begun anew: then nothing that is there was pulled by this
agent.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.atomic_file import UntrustedFile, write_atomically
from ipc.host.clock import Clock
from ipc.host.state_file import usable_state
from workers.images.garbage import ImageRecord, detect, stored_name
from workers.kubecontainer.image_service import ListedImage

VERSION: Final = 1
"""Version of the file's format."""
MAX_FILE_BYTES: Final = 16 << 20
"""Largest file that is read."""
MAX_PULLING: Final = 1_000
"""Most pulls that are remembered as begun: the newest."""

log = logging.getLogger(__name__)


class _State(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file."""

    version: int = VERSION
    began_at: float = 0.0
    """Since when uses are watched, in epoch seconds."""
    images: dict[str, ImageRecord] = {}
    """By id."""
    pulling: dict[str, str] = {}
    """Name -> id of the image that had it when the first pull of it began that has not ended, empty for none."""


class ImageRecords:
    """Owner of the file. Every method that changes something writes it, and raises no OSError: it is logged."""

    def __init__(self, path: str, clock: Clock) -> None:
        """With an empty ``path`` nothing is kept beyond this process."""
        self._path = path
        self._clock = clock
        self._state = self._read()

    @property
    def began_at(self) -> float:
        """Since when uses are watched, in epoch seconds."""
        return self._state.began_at

    @property
    def all(self) -> Mapping[str, ImageRecord]:
        """Records of all images, by image id."""
        return self._state.images

    @property
    def has_pulled(self) -> bool:
        """Whether an image is there, or may be, that this agent has pulled."""
        return bool(self._state.pulling) or any(record.pulled for record in self._state.images.values())

    def of(self, image_id: str) -> ImageRecord:
        """Record of an image; an empty one of an image that was not detected."""
        return self._state.images.get(image_id) or ImageRecord()

    # --- pulls ---

    def pull_begins(self, reference: str, present: str) -> None:
        """Note a pull before it begins; ``present`` is the id of the image that has this name now, or empty."""
        name, others = stored_name(reference), self._state.pulling
        begun = [*others.items()] if name in others else [*others.items(), (name, present)]
        self._keep(msgspec.structs.replace(self._state, pulling=dict(begun[-MAX_PULLING:])))

    def pull_ended(self, reference: str, image_id: str = "") -> None:
        """Note its end, with the image that it has brought; without one it has failed."""
        name = stored_name(reference)
        present = self._state.pulling.get(name)
        rest = {other: id for other, id in self._state.pulling.items() if other != name}
        images = {**self._state.images, **self._pulled(name, present, image_id)} if image_id else self._state.images
        self._keep(msgspec.structs.replace(self._state, pulling=rest, images=images))

    def find_pulled(self, images: Iterable[ListedImage], in_flight: Collection[str]) -> None:
        """Record what pulls have brought whose end nobody has noted; those ``in_flight`` (names) have none yet."""
        flying = {stored_name(reference) for reference in in_flight}
        by_name = {name: image.id for image in images for name in image.names}
        for name in [name for name in self._state.pulling if name not in flying]:
            self.pull_ended(name, by_name.get(name, ""))

    def _pulled(self, name: str, present: str | None, image_id: str) -> dict[str, ImageRecord]:
        """The record of a pulled image. One that was there before, and not by a pull of ours, stays its owner's; so
        does one of which that is not known."""
        known = self._state.images.get(image_id)
        if present in (image_id, None) and not (known and known.pulled):
            return {}
        record = known or ImageRecord(first_detected=self._clock.now().wall)
        return {image_id: msgspec.structs.replace(record, pulled=tuple(dict.fromkeys((*record.pulled, name))))}

    # --- uses ---

    def detected(self, ids: Iterable[str], in_use: Collection[str], listed_at: float) -> None:
        """Take what was there when they were listed, and what was used of it (ids); images that are gone are forgotten.
        One that was pulled since is no less there."""
        found = detect(ids, in_use, self._state.images, listed_at, listed_at)
        newer = {id: record for id, record in self._state.images.items() if record.first_detected >= listed_at}
        self._keep(msgspec.structs.replace(self._state, images={**newer, **found}))

    def removed(self, image_id: str) -> None:
        """Forget an image that was removed."""
        images = {id: record for id, record in self._state.images.items() if id != image_id}
        self._keep(msgspec.structs.replace(self._state, images=images))

    # --- the file ---

    def _keep(self, state: _State) -> None:
        if state == self._state:
            return
        self._state = state
        if not self._path:
            return
        try:
            write_atomically(Path(self._path), msgspec.json.encode(state), durable=False)
        except OSError as error:
            log.warning("cannot write %s: %s", self._path, error)

    def _read(self) -> _State:
        new = _State(began_at=self._clock.now().wall)
        if not self._path:
            return new
        return usable_state(Path(self._path), MAX_FILE_BYTES, _decode, "records of images", log) or new


def _decode(data: bytes) -> _State:
    state = msgspec.json.decode(data, type=_State)
    if state.version != VERSION:
        raise UntrustedFile(f"it is of version {state.version}, not {VERSION}")
    return state
