"""A Podman storage of the bench's own: its population is what the bench has made, whatever else the user runs.

It stays between two runs, with the image in it. Podman's locks (/dev/shm) and its runtime directory are the user's.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import tomli_w

from ipc.host.clock import wall
from tests.podman_service import ensure_image, remove_objects, remove_of_dead_runs, why_not

VARIABLE: Final = "CONTAINERS_STORAGE_CONF"


@contextlib.contextmanager
def own_storage() -> Iterator[str]:
    """Podman of this process and its children uses that storage; the instance names of this run begin with the result.

    Raises SystemExit when there is no Podman, or another bench runs.
    """
    if reason := why_not():
        raise SystemExit(reason)
    home = Path(f"/tmp/rootlet-bench-{os.getuid()}")
    home.mkdir(mode=0o700, exist_ok=True)
    conf, root = home / "storage.conf", str(home / "storage")
    with (home / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit("another bench runs: two would measure each other") from None
        storage = {"driver": "overlay", "graphroot": root, "rootless_storage_path": root}
        conf.write_text(tomli_w.dumps({"storage": storage}))
        os.environ[VARIABLE] = str(conf)
        run_name = f"test-{os.getpid()}-{int(wall())}"
        remove_of_dead_runs()
        ensure_image(home)
        try:
            yield run_name
        finally:
            remove_objects(lambda instance: instance.startswith(run_name))
