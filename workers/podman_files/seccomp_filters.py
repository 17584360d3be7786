"""Seccomp filters that the OCI runtime has compiled, given to the next container that needs the same one.

crun compiles a container's profile to a filter, 15 ms of CPU for Podman's default one, and leaves it beside the
container's state. With libgcrypt, and since 1.14 always, it keeps filters for later containers; Debian's 1.8.1 has no
such cache. The annotation ``run.oci.seccomp_bpf_data`` (crun(1)) hands it one that is ready; a runtime that does not
know that annotation compiles the profile, which is in the config as before.

A filter is that of the same profile, unchanged, for the same capabilities: rules of a profile may ask for some. Podman
finds these from its settings, which the service has read when it began, and from image, user and changes of the
container.

Tried on crun 1.8.1 (Podman 4.3.1), 1.21 (5.4.2) and 1.28 (5.8.6, 6.1.1), by tests/contract/test_seccomp_podman.py.
Where the file is absent or no filter, the runtime compiles the profile for each container.
"""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.clock import wall
from workers.fs.regular_file import regular_file
from workers.kubecontainer.runtime import SpecDict

ANNOTATION: Final = "run.oci.seccomp_bpf_data"
FILTER_FILE: Final = "seccomp.bpf"
"""In the runtime's directory of a container."""
INSTRUCTION_BYTES: Final = 8
MAX_INSTRUCTIONS: Final = 4096
"""The kernel's limit (BPF_MAXINSNS)."""
MAX_FILTERS: Final = 32
MAX_ASKED: Final = 256
SETTLED_S: Final = 1.0
"""Age of a profile from which on another version of it has another date for certain, in seconds."""


class _Source(msgspec.Struct, frozen=True):
    """All that a filter is compiled from."""

    profile: str
    file: tuple[int, int, int, int, int]
    """Device, inode, size and dates of that file: another version of it has others."""
    changed_at: float
    image_id: str
    user: str
    cap_add: tuple[str, ...]
    cap_drop: tuple[str, ...]


class SeccompFilters:
    """Filters of one worker's containers."""

    def __init__(self, now: Callable[[], float] = wall) -> None:
        self._now = now
        self._known: dict[_Source, str] = {}
        self._asked: dict[str, _Source] = {}
        """By name, of containers that are made now without one: the source before."""
        self._is_useless = False
        """The runtime has a cache of its own."""

    def with_filter(self, spec: SpecDict, image_id: str) -> SpecDict:
        """A body of containers/create, with the filter if it is known. ``image_id``: for certain that of its
        image."""
        source = None if self._is_useless else _source(spec, image_id)
        if source is None:
            return spec
        known = self._known.get(source)
        if known is None:
            self._ask(spec["name"], source)
            return spec
        return {**spec, "annotations": {**spec.get("annotations", {}), ANNOTATION: known}}

    def learn(self, spec: SpecDict, image_id: str, state_directory: Path | None) -> None:
        """From a container that was made with that body, as `with_filter` has given it back, and has started. Reads its
        filter if it is not known yet, and if its source is the same before and after."""
        source = self._asked.pop(spec["name"], None)
        if source is None or self._is_useless or source in self._known or source != _source(spec, image_id):
            return
        content = self._read(state_directory) if state_directory is not None else b""
        if content:
            if len(self._known) >= MAX_FILTERS:
                self._known.clear()
            self._known[source] = base64.b64encode(content).decode()

    def _ask(self, name: str, source: _Source) -> None:
        if source.changed_at + SETTLED_S <= self._now():
            if len(self._asked) >= MAX_ASKED:  # of creates that have failed
                self._asked.clear()
            self._asked[name] = source

    def _read(self, directory: Path) -> bytes:
        """The filter in that directory; empty when there is none."""
        try:
            with regular_file(directory, directory / FILTER_FILE) as fd:
                found = os.fstat(fd)
                self._is_useless = found.st_nlink > 1  # crun links what it has in its cache
                is_filter = 0 < found.st_size <= MAX_INSTRUCTIONS * INSTRUCTION_BYTES
                content = os.read(fd, found.st_size) if is_filter and not self._is_useless else b""
        except OSError:
            return b""
        return content if len(content) % INSTRUCTION_BYTES == 0 else b""


def _source(spec: SpecDict, image_id: str) -> _Source | None:
    """None where the container has no profile of a file, or another runtime than Podman's own."""
    profile = spec.get("seccomp_profile_path", "")
    if not os.path.isabs(profile) or spec.get("oci_runtime") or spec.get("privileged"):
        return None
    try:
        found = os.stat(profile)
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return _Source(
        profile=profile,
        file=(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns),
        changed_at=max(found.st_mtime, found.st_ctime),
        image_id=image_id,
        user=spec.get("user", ""),
        cap_add=tuple(spec.get("cap_add", ())),
        cap_drop=tuple(spec.get("cap_drop", ())),
    )
