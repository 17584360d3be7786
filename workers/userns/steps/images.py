"""Binds a part of an image to a path where it cannot be swapped. Podman mounts images as a whole, from 5.4 on
directories in them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Final

from workers.userns.steps.mounts import bind
from workers.userns.steps.syscalls import Refused

DEADLINE_S: Final = 20.0
"""Deadline of one command of Podman's, in seconds."""


def bind_image(podman: Sequence[str], image: str, sub_path: str, target: str) -> None:
    """Bind what lies at ``sub_path`` in an image that is there. It stays as long as that mount, also when Podman takes
    its own away."""
    with mounted(podman, image) as root:
        bind(root, target, sub_path, must_exist=True)


@contextlib.contextmanager
def mounted(podman: Sequence[str], image: str) -> Iterator[str]:
    """Where Podman has mounted it, read-only: it counts who has asked for that. Raises Refused."""
    root = _said_by(*podman, "image", "mount", image)
    try:
        yield os.path.realpath(root)
    finally:
        _said_by(*podman, "image", "unmount", image)


def _said_by(*command: str) -> str:
    import subprocess  # takes a while, for which no other step should have to wait

    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise Refused(f"{' '.join(command)}: not done within {DEADLINE_S:g} s") from error
    if done.returncode:
        raise Refused(done.stderr.strip())
    return done.stdout.strip()
