"""Attacks on the place of the manifests: for a moment something else is there, as after an unmount. No pod may end."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ipc.host.clock import monotonic
from tests.attack.attack import Attack
from tests.attack.ground import CANARY, Ground
from tests.e2e.manifests import pod
from tests.e2e.replaced_sources import IN_THE_WAY, empty_directory, fifo, manifest, other_manifests
from tests.support import hung_file_system
from tests.support.overlay_mount import overlay, why_not

TOGGLED_S: Final = 5.0
HUNG_S: Final = 8.0
"""Some looks at the directory, and ticks of the master."""
IN_DOUBT: Final = "its pods stay as they were until it is back"
BESIDE: Final = pod("beside")
ON_IT: Final = pod("on-the-mount")


def _link(path: Path) -> None:
    """A link to an empty directory."""
    empty = path.with_name("empty")
    empty.mkdir(exist_ok=True)
    path.symlink_to(empty)


@contextmanager
def _away(ground: Ground, make: Callable[[Path], None]) -> Iterator[None]:
    """Something else is in the place of the manifests, which come back in any case."""
    manifests = ground.agent.manifests
    elsewhere = manifests.with_name("elsewhere")
    manifests.rename(elsewhere)
    try:
        make(manifests)
        yield
    finally:
        if manifests.is_dir() and not manifests.is_symlink():
            shutil.rmtree(manifests)
        else:
            manifests.unlink(missing_ok=True)
        elsewhere.rename(manifests)


def _doubts(ground: Ground) -> int:
    return sum(event["count"] for event in ground.agent.events() if IN_DOUBT in event["message"])


def _replaced(make: Callable[[Path], None]) -> Callable[[Ground], None]:
    """Told, and nothing of it is taken for a wish; afterwards manifests are read as ever."""

    def strike(ground: Ground) -> None:
        before = _doubts(ground)
        with _away(ground, make):
            ground.until(lambda: _doubts(ground) > before, "it is told")
        assert IN_THE_WAY not in ground.agent.pods()
        ground.agent.run(BESIDE)

    return strike


def _unmounted(ground: Ground) -> None:
    """Unmount it while it answers, and while its server is dead; each time it comes back."""
    if reason := why_not():
        print(reason)
        return
    manifests, elsewhere = ground.agent.manifests, ground.agent.manifests.with_name("elsewhere")
    with _away(ground, empty_directory), overlay(elsewhere, manifests) as mounted:
        mounted.mount()
        ground.agent.run(ON_IT)
        for is_dead in (False, True):
            before = _doubts(ground)
            if is_dead:
                mounted.kill_server()
            ground.until(mounted.is_unmounted, "it is unmounted")
            ground.until(lambda before=before: _doubts(ground) > before, "it is told")  # type: ignore[misc]
            assert {CANARY, "on-the-mount"} <= ground.agent.pods().keys()
            mounted.mount()
            ground.agent.run(BESIDE)
            ground.agent.remove("beside")
            ground.agent.until_gone(["beside"])
        ground.agent.remove("on-the-mount")
        ground.agent.until_gone(["on-the-mount"])


def _hung(ground: Ground) -> None:
    """Mount one on it: only who looks at it waits until it goes."""
    if not hung_file_system.is_there():
        print(f"no {hung_file_system.FUSERMOUNT} or no /dev/fuse on this host: an ordinary user mounts nothing")
        return
    with _away(ground, empty_directory), hung_file_system.hung(ground.agent.manifests):
        ground.last(HUNG_S)
        assert CANARY in ground.agent.pods()
    ground.agent.run(BESIDE)


def _toggled(ground: Ground) -> None:
    """As fast as a program can, each of them in turn."""
    until = monotonic() + TOGGLED_S
    while monotonic() < until:
        for make in (empty_directory, manifest, fifo, other_manifests, _link):
            with _away(ground, make):
                pass
    ground.agent.run(BESIDE)


ATTACKS: Final = (
    *(
        Attack(
            f"source-{name}",
            f"The manifest directory is moved away, and {words} takes its place for a moment.",
            "be told, and waited for",
            _replaced(make),
            is_quick=False,
        )
        for name, words, make in (
            ("empty", "an empty directory", empty_directory),
            ("file", "a manifest", manifest),
            ("fifo", "a FIFO", fifo),
            ("others", "a directory with another manifest", other_manifests),
            ("link", "a link to an empty directory", _link),
        )
    ),
    Attack(
        "source-unmounted",
        "The manifest directory's file system is unmounted and mounted again, once with its server killed before.",
        "be told, and waited for",
        _unmounted,
        is_quick=False,
    ),
    Attack(
        "source-hung",
        "A file system that never answers is mounted on the manifest directory.",
        "be read late",
        _hung,
        is_quick=False,
    ),
    Attack(
        "source-toggled",
        "The manifest directory becomes each of these in turn, as fast as a program can.",
        "be read late",
        _toggled,
        is_quick=False,
    ),
)
