"""Removes the directories of hostPath volumes whose claims are gone and whose policy is Delete.

Mirrors pkg/volume/hostpath/host_path.go (hostPathDeleter.Delete), which takes directories below /tmp alone. Different
on purpose: no link on the way is followed, for everybody may put one into /tmp.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import PurePosixPath
from typing import Final

from ipc.link.messages.node_worker import DeleteVolume, VolumeDeleted
from workers.kubecontainer.mounted_volume import why
from workers.userns.remove import remove_below
from workers.userns.unshare import DEFAULT, Unshare

TEMPORARY: Final = "/tmp"

log = logging.getLogger(__name__)


class VolumeDeleter:
    """Takes one request after another, each in a thread: a tree can be large."""

    def __init__(self, report: Callable[[VolumeDeleted], Awaitable[None]], unshare: Unshare = DEFAULT) -> None:
        self._report = report
        self._unshare = unshare
        self._requests: asyncio.Queue[DeleteVolume] = asyncio.Queue()

    def ask(self, request: DeleteVolume) -> None:
        self._requests.put_nowait(request)

    async def run(self) -> None:
        """Delete contents of volumes as that is asked for, for ever."""
        while True:
            request = await self._requests.get()
            problem = await asyncio.to_thread(delete, request.path, self._unshare)
            log.info("content of volume %s, %s: %s", request.volume, request.path, problem or "removed")
            await self._report(VolumeDeleted(volume=request.volume, problem=problem))


def delete(path: str, unshare: Unshare = DEFAULT, root: str = TEMPORARY) -> str:
    """Remove a directory below ``root`` with all that is in it. Blocks. Why that failed; empty when it is gone."""
    try:
        names = PurePosixPath(path).relative_to(root).parts
        if not names or ".." in names:
            return f"host_path deleter only supports {root}/.+ but received provided {path}"
        stuck = remove_below(root, *names, unshare=unshare)
    except ValueError:
        return f"host_path deleter only supports {root}/.+ but received provided {path}"
    except OSError as error:
        return f"cannot remove {path}: {why(error)}"
    return f"cannot remove {stuck[0]}" if stuck else ""
