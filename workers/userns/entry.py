"""Entry of the program that runs steps inside Podman's user and mount namespaces, by `podman unshare`.

There this user is root, over the ids that are mapped: it may give files to a group of a container's, read or remove
what other users of a container have made, and mount. A mount made there is what containers' mounts are made from, and
nobody outside sees it; it goes when its mount point is removed, also from outside, and with the namespace.

Reads ``[[step, {argument: value}], ...]`` as JSON from standard input, carries the steps out in order up to the first
that fails, and writes ``{"done": [result, ...], "error": text}``. With an argument it stays, and does
so for each that asks (`workers.userns.fork_server`). The interpreter is started without site packages, because it is in
the way of a container's start: so all that this needs of Rootlet needs only the standard library.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Final

if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from workers.fs.disk_usage import bytes_and_inodes_at_least, used_bytes, used_bytes_and_inodes
from workers.userns.steps.first_owner import look_into_image, set_mode
from workers.userns.steps.group import give_to_group
from workers.userns.steps.images import bind_image
from workers.userns.steps.mounts import bind, hold_together, let_go, mount_tmpfs
from workers.userns.steps.reading import read_file
from workers.userns.steps.removal import remove
from workers.userns.steps.syscalls import Refused
from workers.userns.steps.unlinked_files import unlinked_files
from workers.userns.steps.user import give_to_user

STEPS: Final[Mapping[str, Callable[..., object]]] = {
    step.__name__: step
    for step in (
        *(mount_tmpfs, hold_together, let_go, bind, bind_image),
        *(give_to_group, give_to_user, look_into_image, set_mode, read_file, remove),
        *(used_bytes, used_bytes_and_inodes, bytes_and_inodes_at_least, unlinked_files),
    )
}


def main() -> None:
    if sys.argv[1:]:
        from workers.userns.fork_server import stay  # needs sockets, which take longer to import than all the rest

        stay(_answer)
    else:
        sys.stdout.buffer.write(_answer(sys.stdin.buffer.read()))


def _answer(request: bytes) -> bytes:
    done: list[object] = []
    error = ""
    for name, arguments in json.loads(request):
        try:
            done.append(STEPS[name](**arguments))
        except OSError as failure:
            error = f"{failure.filename}: {failure.strerror}" if failure.filename else str(failure.strerror)
            break
        except Refused as refusal:
            error = str(refusal)
            break
    # Paths need not be text; what is told of them is.
    return json.dumps({"done": done, "error": error.encode(errors="backslashreplace").decode()}).encode()


if __name__ == "__main__":
    main()
