"""Directories of a pod beside its logs.

``<pods_dir>/<uid>``, as pkg/kubelet/kubelet_getters.go has it (getPodDir). Containers have none of their own there.
Only the agent's user may read them: a container sees only what is mounted into it.
"""

from __future__ import annotations

import errno
from pathlib import Path

from workers.fs.directories import is_name
from workers.userns.remove import remove_below
from workers.userns.unshare import DEFAULT, Unshare


def pod_directory(pods_dir: str, uid: str) -> Path:
    return Path(pods_dir, uid)


def remove_pod_directory(root: str, uid: str, unshare: Unshare = DEFAULT) -> None:
    """Remove everything of a pod that is gone below ``pods_dir`` or ``memory_dir``. Raises OSError; not for a uid that
    cannot be a directory's name: an orphan's uid is an untrusted label."""
    if not root or not is_name(uid):
        return
    stuck = remove_below(root, uid, unshare=unshare)
    if stuck:
        raise OSError(errno.EBUSY, f"cannot remove {'; '.join(map(str, stuck))}")
