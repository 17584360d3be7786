"""Processes that bear a container's tag."""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

from workers.proc.container_tags import ContainerTag, container_tag, end_tagged

DEADLINE_S: Final = 20.0
RLIMIT_LOCKS: Final = 10
"""The resource module has no name for it."""
FORKS: Final = "import os, time; os.fork() or os.setsid(); os.write(1, b'up\\n'); time.sleep(600)"


@contextlib.contextmanager
def marked(mark: ContainerTag) -> Iterator[subprocess.Popen[str]]:
    """A process with that mark, which forks another one that leaves its session."""
    process = subprocess.Popen(
        [sys.executable, "-c", FORKS],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(RLIMIT_LOCKS, (mark.soft, mark.hard)),
    )
    assert process.stdout is not None
    with process, process.stdout as output:
        try:
            assert [output.readline() for _ in range(2)] == ["up\n"] * 2
            yield process
        finally:
            end_tagged({mark})


def test_what_has_the_mark_ends_and_nothing_else() -> None:
    mine, other = container_tag("u", "a", 0), container_tag("u", "a", 1)
    with marked(mine) as ends, marked(other) as stays:
        assert end_tagged({mine}) == 2
        assert ends.wait(DEADLINE_S) == -9
        assert stays.poll() is None
        assert end_tagged({mine}) == 0
        assert end_tagged({other}) == 2
