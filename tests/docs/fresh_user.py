"""A user of Podman and Rootlet who has nothing yet: storage, configuration and state in a directory that goes again."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.bench.own_storage import VARIABLE, make_config
from tests.support.podman_service import image_archive

IMAGE: Final = "docker.io/library/busybox:1.36"
"""The image of the pages: made of the host's busybox, for a machine without a registry."""
COMMAND_DEADLINE_S: Final = 120.0


class FreshUser(NamedTuple):
    directory: Path
    """Where the pages' files are."""
    environment: dict[str, str]


@contextlib.contextmanager
def fresh_user() -> Iterator[FreshUser]:
    """A user with the image. Their instances' sockets are beside those of the real one."""
    with tempfile.TemporaryDirectory(prefix="rootlet-docs-", dir="/tmp") as name:
        home = Path(name)
        places = {"XDG_STATE_HOME": "state", "XDG_DATA_HOME": "data", "XDG_CACHE_HOME": "cache"}
        environment = {
            **os.environ,
            **{variable: str(home / place) for variable, place in places.items()},
            VARIABLE: str(make_config(home)),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PS1": "",
        }
        pages = home / "pages"
        pages.mkdir()
        applets = subprocess.run(["busybox", "--list"], check=True, capture_output=True, text=True).stdout
        image = image_archive(home, applets.replace("busybox\n", ""))
        podman(environment, "import", "--quiet", "--change", "ENV=PATH=/bin", str(image), IMAGE)
        try:
            yield FreshUser(pages, environment)
        finally:
            podman(environment, "pod", "rm", "--all", "--force", "--time", "0")
            # Podman has mounted the storage on itself.
            gone = f"umount --lazy {home}/graph/overlay; rm --recursive --force {home}/graph"
            podman(environment, "unshare", "sh", "-c", gone)
            shutil.rmtree(Path(os.environ["XDG_RUNTIME_DIR"]) / home.name)


def podman(environment: dict[str, str], *arguments: str) -> None:
    subprocess.run(
        ["podman", *arguments],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=COMMAND_DEADLINE_S,
    )
