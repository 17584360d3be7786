"""A Podman storage of the bench's own: its population is what the bench has made, whatever else the user runs.

It stays between two runs, with the image in it. Its database is made anew once hundreds of pods have come and gone
(`supervisor.doctor.podman_database`): an empty host is one that never had them. Podman's locks (/dev/shm) and libpod's
own directory are the user's; the storage's runtime directory is not: mounts are counted there, and a storage drops the
counts of layers that it does not know, so that two with one directory unmount each other's containers before they
start. For a rootless user Podman reads that directory only from the storage.conf of the configuration directory, which
is therefore another one.
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
from ipc.host.file_systems import file_system_type
from supervisor.doctor import podman_database
from supervisor.doctor.checks import MANY_FREE_PAGES
from tests.support.podman_service import ensure_image, podman, remove_objects, remove_of_dead_runs, stores, why_not

VARIABLE: Final = "XDG_CONFIG_HOME"
DIRECTORY: Final = "ROOTLET_BENCH_DIRECTORY"
"""Environment variable: where that storage is, to measure another disk."""
STORAGE_CONF: Final = "storage.conf"
GRAPH: Final = "graph"
LISTINGS: Final = (("ps", "--all", "--external", "--quiet"), ("pod", "ls", "--quiet"), ("volume", "ls", "--quiet"))
"""Commands that list all that is in the database."""


@contextlib.contextmanager
def own_storage() -> Iterator[str]:
    """Podman of this process and its children uses that storage; the instance names of this run begin with the result.

    Raises SystemExit when there is no Podman, or another bench runs.
    """
    if reason := why_not():
        raise SystemExit(reason)
    home = _home()
    home.mkdir(mode=0o700, exist_ok=True)
    with (home / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit("another bench runs: two would measure each other") from None
        os.environ[VARIABLE] = str(make_config(home))
        run_name = f"test-{os.getpid()}-{int(wall())}"
        remove_of_dead_runs()
        _forget_free_pages()
        ensure_image(home)
        try:
            yield run_name
        finally:
            for store in stores():
                remove_objects(lambda instance: instance.startswith(run_name), store)


def file_system() -> str:
    """Type of the file system that the storage is on: with what a flush to the disk costs there, a start costs."""
    fd = os.open(graph_root(), os.O_PATH)
    try:
        return file_system_type(fd)
    finally:
        os.close(fd)


def graph_root() -> Path:
    """Graph root of that storage."""
    return _home() / GRAPH


def _home() -> Path:
    return Path(os.environ.get(DIRECTORY) or f"/tmp/rootlet-bench-{os.getuid()}")


def _forget_free_pages() -> None:
    """Podman makes a new database where nothing is in the old one: images are not."""
    database = graph_root() / podman_database.FILE
    free = podman_database.free_pages(database) or 0
    if free >= MANY_FREE_PAGES and not any(podman(*listing).strip() for listing in LISTINGS):
        database.unlink()


def make_config(home: Path) -> Path:
    """A configuration directory below ``home`` as the user's own, but for the storage, which is there, too."""
    run = Path(os.environ["XDG_RUNTIME_DIR"]) / home.name
    run.mkdir(mode=0o700, exist_ok=True)
    return own_config(home, home / GRAPH, run)


def own_config(home: Path, graph: Path, run: Path) -> Path:
    """A configuration directory below ``home`` as the user's own, but for storage.conf, which names these directories
    of the storage."""
    own, users = home / "config" / "containers", _user_config_home() / "containers"
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in users.glob("*"):
        if file.name != STORAGE_CONF and not (own / file.name).is_symlink():
            (own / file.name).symlink_to(file)
    storage = {"driver": "overlay", "graphroot": str(graph), "rootless_storage_path": str(graph), "runroot": str(run)}
    (own / STORAGE_CONF).write_text(tomli_w.dumps({"storage": storage}))
    return own.parent


def _user_config_home() -> Path:
    return Path(os.environ.get(VARIABLE) or Path.home() / ".config")
