"""Taking a pod's files away, whoever of its users has made them.

In a volume lie files of ids that this user may not touch outside Podman's user namespace, so what cannot be removed
here is removed in there, which costs a process. Neither follows a link or enters a mount: a mount in Podman's namespace
shows here as the empty directory or file that it lies on, and goes with it, which the kernel allows since Linux 3.19
even while containers still use what was mounted.
"""

from __future__ import annotations

import os
from pathlib import Path

from workers.unshare import Unshare, UnshareError
from workers.volumes import beneath, inside


def remove(path: Path, unshare: Unshare) -> None:
    """Blocks: for a thread. What is gone already is no error. Raises OSError; what could go is gone."""
    try:
        beneath.remove_tree(str(path))
    except PermissionError as error:
        real = os.path.join(os.path.realpath(path.parent), path.name)
        try:
            unshare.run([(inside.remove.__name__, {"path": real})])
        except UnshareError as inner:
            raise PermissionError(error.errno, str(inner), str(path)) from error
