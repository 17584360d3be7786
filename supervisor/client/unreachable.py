"""Why no agent can be asked, and what helps: words for each way in which a socket fails."""

from __future__ import annotations

import errno
import os
import pwd
import socket
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

MAX_SOCKET_PATH_BYTES: Final = 107
"""sockaddr_un's limit, less the closing zero."""
START: Final = "start one with 'rootlet run'"
MAX_NAMED_INSTANCES: Final = 5


def unreachable_words(path: Path, error: OSError) -> str:
    """Fault of the socket at ``path``, and the next step. Looks at the file system, changes nothing."""
    if len(os.fsencode(path)) > MAX_SOCKET_PATH_BYTES:
        return f"{path} is no path of a socket: it is longer than {MAX_SOCKET_PATH_BYTES} bytes"
    known = _BY_ERRNO.get(error.errno or 0)
    return known(path) if known is not None else f"the agent's socket {path}: {error.strerror or error}"


def _absent(path: Path) -> str:
    directory = path.parent
    if not directory.parent.is_dir() and directory.name == "rootlet":
        return (
            f"no agent runs: there is no runtime directory {directory.parent}: log in (su and sudo make none), or set "
            f"XDG_RUNTIME_DIR to that of the agent"
        )
    if others := _other_instances(path):
        return f"no agent answers on {path}: {START}, or choose one that runs with --instance: {others}"
    return f"no agent answers on {path}: {START}"


def listening_instances(directory: Path) -> list[str]:
    """Names of sockets of a directory that look like admin sockets, in order."""
    try:
        found = sorted(entry.name for entry in os.scandir(directory) if _is_admin_socket(entry))
    except OSError:
        return []
    return [name.removesuffix(".sock") for name in found]


def _other_instances(path: Path) -> str:
    """Instances beside it, for people; empty without any."""
    names = listening_instances(path.parent)
    more = f" and {len(names) - MAX_NAMED_INSTANCES} more" if len(names) > MAX_NAMED_INSTANCES else ""
    return ", ".join(names[:MAX_NAMED_INSTANCES]) + more


def _is_admin_socket(entry: os.DirEntry[str]) -> bool:
    """``NAME.sock``, on which somebody listens: other sockets of an instance have a second part in their names."""
    name, suffix = os.path.splitext(entry.name)
    if suffix != ".sock" or "." in name or not stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
        return False
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        return client.connect_ex(entry.path) == 0


def _refused(path: Path) -> str:
    """The kernel refuses a file that is no socket with the same number as a socket that nobody listens on."""
    try:
        mode = path.stat().st_mode
    except OSError:
        mode = stat.S_IFSOCK
    if not stat.S_ISSOCK(mode):
        return f"{path} is not a socket but {_kind(mode)}: name the agent's socket, or its instance with --instance"
    return f"no agent answers on {path}: the one that made this socket has ended: {START}"


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a directory", stat.S_IFREG: "a file", stat.S_IFIFO: "a FIFO"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def _denied(path: Path) -> str:
    """The owner of the innermost place that can be seen."""
    seen = next((place for place in (path, *path.parents) if _owner(place)), Path("/"))
    if seen.stat().st_uid == os.getuid():
        return f"{path} cannot be reached: {seen} is yours, but its mode forbids it: chmod u+rwx {seen}"
    return (
        f"the agent at {path} is not yours: {seen} belongs to {_owner(seen)}; only its own user can ask it: "
        f"run the command as that user, or start an agent of your own"
    )


def _owner(path: Path) -> str:
    try:
        uid = path.stat().st_uid
    except OSError:
        return ""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user id {uid}"


def _not_a_directory(path: Path) -> str:
    return f"{path} is no path of a socket: a part of it is not a directory"


def _late(path: Path) -> str:
    return f"the agent at {path} takes no connection: it is stopped or hangs; 'systemctl --user restart rootlet' helps"


def _other_type(path: Path) -> str:
    return f"{path} is a socket of another program: name the agent's socket, or its instance with --instance"


_BY_ERRNO: Final[Mapping[int, Callable[[Path], str]]] = {
    errno.ENOENT: _absent,
    errno.ECONNREFUSED: _refused,
    errno.EACCES: _denied,
    errno.EPERM: _denied,
    errno.ENOTDIR: _not_a_directory,
    errno.EAGAIN: _late,
    errno.EPROTOTYPE: _other_type,
}
