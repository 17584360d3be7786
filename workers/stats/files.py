"""Figures of files in one housekeeping: layers, logs and volumes of pods, and the node's file systems."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from ipc.host.clock import Clock
from ipc.host.file_systems import mount_id
from workers.kubecontainer.mounted_claims import ClaimKind, read_mounted_claims
from workers.logs import layout
from workers.podman_files.image_store import ImageStore
from workers.stats import flat_files
from workers.stats.storage import PERIOD_S, DiskUsage, UserFileSystems, file_system, sum_of, used_on, volumes_in
from workers.stats.targets import ContainerTarget, PodDirectories, PodTarget
from workers.statsapi.values import ContainerSample, FileSystem, VolumeSample
from workers.userns.unshare import Unshare

EMPTY_DIR: Final = "kubernetes.io~empty-dir"


class _Volume(NamedTuple):
    plugin: str
    name: str
    path: str
    on: str
    """The directory whose file system it is on: that of all pods, or its own."""
    claim: str = ""
    """Name of the claim that it is; empty of any other volume."""

    @property
    def is_counted(self) -> bool:
        """Whether its files are counted; a local volume's use is that of its whole file system."""
        return self.plugin != ClaimKind.LOCAL


class Files:
    """Remembers which directories each pod has. For one thread at a time."""

    def __init__(self, directories: PodDirectories, clock: Clock, unshare: Unshare) -> None:
        self._pod_directories = directories
        self._clock = clock
        self._disk = DiskUsage(unshare)
        self._images = ImageStore()
        self._users = UserFileSystems()
        self._fs: dict[str, FileSystem | None] = {}
        """File systems of this round, by path."""
        self._began = clock.now()
        """When this round did."""
        self._volumes_of: dict[str, tuple[float, tuple[_Volume, ...]]] = {}
        """By uid: a pod's volumes, and when they were listed (monotonic seconds)."""
        self._log_directories: dict[str, str] = {}
        """By uid."""

    def begin_round(self, pods: Sequence[PodTarget]) -> None:
        """Count the directories of these pods that are due; forget those of others. Blocks."""
        self._fs.clear()
        self._began = self._clock.now()
        uids = {pod.uid for pod in pods}
        self._log_directories = {uid: known for uid, known in self._log_directories.items() if uid in uids}
        self._volumes_of = {uid: known for uid, known in self._volumes_of.items() if uid in uids}
        layers = (target.layer for pod in pods for target in pod.containers if target.layer)
        if not self._images.root and (layer := next(filter(self._file_system, layers), "")):
            self._images.learn_layer(layer)
        self._disk.count(self._directories(pods))

    def rootfs(self, target: ContainerTarget) -> FileSystem | None:
        """Writable layer of a container; None where the storage driver has none. Layers are plain directories, on the
        storage's file system."""
        return self._used(target.layer, _storage_of(target.layer)) if target.layer else None

    def logs(self, pod: PodTarget, target: ContainerTarget) -> FileSystem | None:
        """Logs of a container; None of the infra container, which writes none."""
        path = self._log_directory(pod, target)
        return self._used(path, self._pod_directories.logs) if path else None

    def volumes(self, pod: PodTarget) -> Iterable[VolumeSample]:
        """Volumes of a pod of which something is known."""
        for volume in self._volumes(pod):
            fs = self._used(volume.path, volume.on) if volume.is_counted else self._of_user(volume.path)
            if fs is not None:
                yield VolumeSample(name=volume.name, plugin=volume.plugin, fs=fs, claim=volume.claim)

    def ephemeral(
        self, pod: PodTarget, containers: Collection[ContainerSample], volumes: Collection[VolumeSample]
    ) -> FileSystem | None:
        """Layers, logs and emptyDirs on the disk together; its use is not known while that of one of them is not."""
        paths = [fs.path for c in containers for fs in (c.rootfs, c.logs) if fs is not None]
        root = self._pod_directories.pods
        paths += [v.fs.path for v in volumes if v.plugin == EMPTY_DIR and v.fs.path.startswith(root)]
        usage = sum_of(map(self._disk.of, paths)) if all(target.layer for target in pod.containers) else None
        return used_on(self._file_system(root), usage, root)

    def node(self) -> FileSystem | None:
        """File system of the pods' directories."""
        return _with_device(self._file_system(self._pod_directories.pods))

    def images(self) -> FileSystem | None:
        """The storage's file system, used by the images in it."""
        found = _with_device(self._file_system(self._images.root)) if self._images.root else None
        if found is None:
            return None
        usage = self._images.usage()
        return msgspec.structs.replace(found, used=usage.total if usage is not None else None, inodes_used=None)

    def _directories(self, pods: Sequence[PodTarget]) -> Iterable[str]:
        for pod in pods:
            for target in pod.containers:
                yield from filter(None, (target.layer, self._log_directory(pod, target)))
            yield from (volume.path for volume in self._volumes(pod) if volume.is_counted)

    def _log_directory(self, pod: PodTarget, target: ContainerTarget) -> str:
        """Empty for the infra container."""
        if not target.name:
            return ""
        directory = self._log_directories.get(pod.uid)
        if directory is None:
            root = self._pod_directories.logs
            directory = str(layout.pod_directory(root, pod.namespace, pod.name, pod.uid))
            self._log_directories[pod.uid] = directory
        return f"{directory}/{target.name}"

    def _volumes(self, pod: PodTarget) -> tuple[_Volume, ...]:
        """Listed as rarely as volumes are counted; they are all there before a container runs."""
        if not pod.containers:
            return ()
        known = self._volumes_of.get(pod.uid)
        if known is None or self._began.mono - known[0] > PERIOD_S:
            root, memory = self._pod_directories.pods, self._pod_directories.memory
            below = (volume for each in (root, memory) if each for volume in _volumes_below(each, pod.uid))
            known = self._began.mono, (*below, *_claims(root, pod.uid))
            self._volumes_of[pod.uid] = known
        return known[1]

    def _used(self, path: str, on: str) -> FileSystem | None:
        return used_on(self._file_system(on), self._disk.of(path), path)

    def _of_user(self, path: str) -> FileSystem | None:
        """A directory of the user's, whose file system need not answer; asked once in a round."""
        if path not in self._fs:
            self._fs[path] = self._users.of(path, self._began.wall)
        return self._fs[path]

    def _file_system(self, path: str) -> FileSystem | None:
        if path not in self._fs:
            self._fs[path] = file_system(path, self._began.wall)
        return self._fs[path]


def _storage_of(layer: str) -> str:
    """Directory of all layers: two levels above one's files."""
    return layer.rsplit("/", 2)[0]


def _volumes_below(root: str, uid: str) -> Iterator[_Volume]:
    for plugin, name in volumes_in(root, uid):
        path = os.path.join(root, uid, "volumes", plugin, name)
        yield _Volume(plugin, name, path, root if _is_on_one_device(path, root) else path)


def _claims(pods_dir: str, uid: str) -> Iterator[_Volume]:
    for each in read_mounted_claims(pods_dir, uid):
        yield _Volume(each.kind, each.volume, each.path, each.path, each.claim)


def _is_on_one_device(*paths: str) -> bool:
    try:
        return len({os.stat(path).st_dev for path in paths}) == 1
    except OSError:
        return False


def _with_device(fs: FileSystem | None) -> FileSystem | None:
    """With the mount's source and the kind of file system, where they can be found out."""
    if fs is None:
        return None
    try:
        fd = os.open(fs.path, os.O_PATH | os.O_CLOEXEC)
        try:
            wanted = str(mount_id(fd))
        finally:
            os.close(fd)
    except OSError:
        return fs
    for line in (flat_files.read("/proc/self/mountinfo") or b"").decode(errors="surrogateescape").splitlines():
        head, _, tail = line.partition(" - ")
        if head.split(" ", 1)[0] == wanted:
            kind, device, *_ = *tail.split(" "), "", ""
            return msgspec.structs.replace(fs, type=kind, device=device)
    return fs
