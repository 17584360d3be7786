"""Files between this host and a container, as tar streams (kubectl pkg/cmd/cp)."""

from __future__ import annotations

import io
import os
import posixpath
import shutil
import stat
import tarfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

import click
import msgspec

from supervisor.cli.options import Failure
from supervisor.client.errors import RequestFailed
from supervisor.client.http import AgentClient

PIPE_BYTES: Final = 64 * 1024
_FORMAT: Final = "[[namespace/]pod:]file/path"
_NOT_FOUND: Final = 404
NOT_COPIED: Final = ("/dev", "/proc", "/sys")
"""Podman says what there is, and leaves it out of what it copies from a container (libpod copyToArchive, Excludes)."""
_NOT_COPIED_WORDS: Final = (
    "Podman copies nothing out of /dev, /proc and /sys: read a file there with rootlet exec POD -- cat FILE"
)
_DIRECTORY: Final = 1 << 31
"""Go's os.ModeDir."""


class Spec(msgspec.Struct, frozen=True):
    """One side of a copy."""

    path: str
    pod: str = ""
    """Empty for this host."""
    namespace: str = ""


def parse_spec(text: str, namespace: str) -> Spec:
    """``path``, ``pod:path`` or ``namespace/pod:path``. Raises Failure."""
    place, colon, path = text.partition(":")
    if not colon:
        return Spec(text)
    stated, slash, pod = place.rpartition("/")
    if not pod or "/" in stated or (slash and not stated):
        raise Failure(
            f"{text!r}: filespec must match the canonical format: [[namespace/]pod:]file/path", prefix="error: "
        )
    if not path:
        raise Failure("filepath can not be empty", prefix="error: ")
    return Spec(path, pod, stated or namespace)


class Remote:
    """A path of a container."""

    def __init__(self, client: AgentClient, spec: Spec, container: str) -> None:
        self._client = client
        self._spec = spec
        self._container = {"container": container} if container else {}

    def place(self) -> str:
        """The path from the container's root, where Podman says it; no link in it. Raises RequestFailed."""
        return posixpath.normpath(str(self._stat().get("linkTarget", "")))

    def is_directory(self) -> bool | None:
        """None when there is nothing."""
        try:
            found = self._stat()
        except RequestFailed as error:
            if error.code == _NOT_FOUND and "in the container" in error.message:
                return None
            raise
        return bool(int(found.get("mode", 0)) & _DIRECTORY) or bool(found.get("isDir"))

    def _stat(self) -> Mapping[str, Any]:
        return self._client.path_stat(self._spec.namespace, self._spec.pod, self._query(self._spec.path))

    def read(self) -> Iterator[bytes]:
        return self._client.read_archive(self._spec.namespace, self._spec.pod, self._query(self._spec.path))

    def write(self, directory: str, pieces: Iterator[bytes]) -> None:
        self._client.write_archive(self._spec.namespace, self._spec.pod, self._query(directory), pieces)

    def _query(self, path: str) -> Mapping[str, str]:
        return {**self._container, "path": path}


def copy_in(source: str, remote: Remote, path: str, *, preserve: bool) -> None:
    """A file or directory of this host to a path of the container: into it, if it is a directory. Raises Failure."""
    local = Path(source)
    if not os.path.lexists(local):
        raise Failure(f"{source} doesn't exist in local filesystem", prefix="error: ")
    name = local.resolve().name
    target = posixpath.join(path, name) if path.endswith("/") or remote.is_directory() else path
    directory, base = posixpath.split(posixpath.normpath(target))
    remote.write(directory or ".", _tar_of(local, base, preserve=preserve))


def _tar_of(local: Path, name: str, *, preserve: bool) -> Iterator[bytes]:
    """Made by a thread, one pipe ahead of its reader. Raises OSError of what could not be read."""
    read_end, write_end = os.pipe()
    failed: list[BaseException] = []

    def make() -> None:
        try:
            with os.fdopen(write_end, "wb") as pipe, tarfile.open(fileobj=pipe, mode="w|") as tar:
                tar.add(local, name, filter=None if preserve else _without_owner)
        except BrokenPipeError:
            return  # nobody reads any more: the reader knows why
        except BaseException as error:
            failed.append(error)

    maker = threading.Thread(target=make, daemon=True)
    maker.start()
    with os.fdopen(read_end, "rb", buffering=0) as pipe:
        while piece := pipe.read(PIPE_BYTES):
            yield piece
    maker.join()
    if failed:
        raise failed[0]


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Belongs to root of the container, as what its own tar unpacks as root would."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def copy_out(remote: Remote, source: str, target: str) -> None:
    """A file or directory of the container to a path of this host: into it, if it is a directory. Raises Failure."""
    place = remote.place()
    if any(place == each or place.startswith(f"{each}/") for each in NOT_COPIED):
        raise Failure(f"{source} was not copied: {_NOT_COPIED_WORDS}", prefix="error: ")
    local = Path(target)
    if target.endswith("/") or local.is_dir():
        name = posixpath.basename(posixpath.normpath(source))
        local = local if name in (".", "..") else local / name
    count = 0
    try:
        with tarfile.open(fileobj=_Pieces(remote.read()), mode="r|") as tar:
            for member in tar:
                count += 1
                _unpack(tar, member, local, is_root=place == "/")
    except tarfile.TarError as error:
        raise Failure(f"the copy of {source} broke off: {error}", prefix="error: ") from None
    if not count:
        raise Failure(f"{source} was not copied: {_NOT_COPIED_WORDS}", prefix="error: ")
    if place == "/":
        raise Failure(f"{', '.join(NOT_COPIED)} were not copied: {_NOT_COPIED_WORDS}", prefix="error: ")


def _unpack(tar: tarfile.TarFile, member: tarfile.TarInfo, local: Path, *, is_root: bool) -> None:
    """Only files and directories, and never beside the target: a container says all of these names. They begin with
    that of what is copied, which the root does not have."""
    parts = [part for part in PurePosixPath(member.name).parts if part != "/"]
    below = parts if is_root else parts[1:]
    if ".." in below:
        click.echo(f"warning: file {member.name!r} is outside target destination, skipping", err=True)
        return
    path = local.joinpath(*below)
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
    elif member.isreg():
        content = tar.extractfile(member)
        assert content is not None, "a file has content"
        path.parent.mkdir(parents=True, exist_ok=True)
        with content, path.open("wb") as file:
            shutil.copyfileobj(content, file, PIPE_BYTES)
        path.chmod(stat.S_IMODE(member.mode) & 0o777)
    else:
        kind = "symlink" if member.issym() or member.islnk() else "special file"
        click.echo(f"warning: skipping {kind}: {member.name!r}", err=True)


class _Pieces(io.RawIOBase):
    """An iterator of pieces as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: IO[bytes] | bytearray | memoryview) -> int:  # type: ignore[override]
        if not self._rest:
            self._rest = next(self._pieces, b"")
        view = memoryview(buffer)  # type: ignore[arg-type]
        size = min(len(view), len(self._rest))
        view[:size], self._rest = self._rest[:size], self._rest[size:]
        return size
