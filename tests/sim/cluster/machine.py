"""The machine on which a simulated node of a cluster runs, as that part of the node worker sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from workers.cluster import agent
from workers.cluster.node import observer
from workers.nodestatus.images import StoredImage
from workers.stats.machine import read_machine, read_versions


async def _no_images(_: str) -> tuple[StoredImage, ...]:
    return ()


@contextmanager
def machine_installed() -> Iterator[None]:
    """Read the machine once, and not for every node of every seed."""
    machine, versions = read_machine(), read_versions()
    with (
        patch.object(agent, "list_images", _no_images),
        patch.object(observer, "read_machine", lambda: machine),
        patch.object(observer, "read_versions", lambda: versions),
    ):
        yield
