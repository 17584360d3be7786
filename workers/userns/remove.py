"""Removes trees below a pod's directory that any user of a container may have made.

In a volume lie files of ids that this user may not touch outside Podman's user namespace. What `remove_tree` may not
remove is removed in there, which costs a process. A mount in Podman's mount namespace shows here as the empty directory
or file that it lies on, and goes with it: the kernel allows that since Linux 3.19, even while containers still use what
was mounted.
"""

from __future__ import annotations

import errno
import os
from typing import Final

from workers.fs.directories import directory_below, root_directory
from workers.fs.tree_removal import Stuck, remove_tree
from workers.userns.steps.removal import remove
from workers.userns.unshare import Unshare, UnshareError

_DENIED: Final = frozenset({errno.EACCES, errno.EPERM})


def remove_below(root: str, *names: str, unshare: Unshare) -> tuple[Stuck, ...]:
    """Remove what the last name stands for, each name one step down from a directory of the configuration. Blocks.

    The answer is what stays; what is gone already does not. Raises OSError.
    """
    try:
        with root_directory(root) as top, directory_below(top, *names[:-1]) as parent:
            stuck = remove_tree(parent, names[-1])
    except FileNotFoundError:
        return ()
    if not any(one.errno in _DENIED for one in stuck):
        return stuck
    try:
        unshare.run([(remove.__name__, {"path": os.path.join(os.path.realpath(root), *names)})])
    except UnshareError as error:
        return tuple(one._replace(why=f"{one.why}; {error}") for one in stuck)
    return ()
