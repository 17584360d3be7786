"""Attacks on the files of the agent's own state: what a broken disk, a backup or another program may leave there, and
that nothing is left of it."""

from __future__ import annotations

import errno
import functools
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.attack.attack import Attack
from tests.attack.ground import UNTIL_S, Ground
from tests.e2e.manifests import pod
from tests.support.podman_service import wait_until

SPARSE_BYTES: Final = 10 << 30
READ_AT_THE_START: Final = (
    "desired.json",
    "objects.json",
    "manifest_source",
    "probes.json",
    "events.jsonl",
    "boot-id",
    "allocated_pods_state",
    "actuated_pods_state",
    "volume_bindings",
    "container_restarts",
    "graceful_node_shutdown_state",
    "images.json",
)
"""Below the state directory; all but ``label-key.json``, whose loss is decision 13's."""
COMPARED: Final = ("containers.conf", "conmon", "sandbox-seccomp.json")
"""Written anew where they are others."""
KEPT: Final = "kept"
LATER: Final = "later"
"""Pods that are applied before and after it."""


def _one_byte(path: Path) -> None:
    content = bytearray(path.read_bytes() if path.is_file() else b"{}")
    content[len(content) // 2] = 0xFF
    path.write_bytes(content)


def _sparse(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.touch()
    os.truncate(path, SPARSE_BYTES)


def _unreadable(path: Path) -> None:
    path.touch()
    path.chmod(0)


def _fifo(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def _directory(path: Path) -> None:
    path.unlink(missing_ok=True)
    (path / "somebody's").mkdir(parents=True)


DAMAGES: Final[Mapping[str, Callable[[Path], None]]] = {
    "byte": _one_byte,
    "sparse": _sparse,
    "unreadable": _unreadable,
    "fifo": _fifo,
    "directory": _directory,
}


def _damaged(damage: Callable[[Path], None]) -> Callable[[Ground], None]:
    """The agent starts, says of each file that it was moved aside, and goes on with the canary."""

    def strike(ground: Ground) -> None:
        agent = ground.agent
        agent.stop()
        told = len(agent.log_text())

        def is_told(name: str) -> bool:
            return name in agent.log_text()[told:]

        for name in (*READ_AT_THE_START, *COMPARED, ".rootlet-instance"):
            _clear_aside(agent.state, name)
            damage(agent.state / name)
        agent.start()
        for name in (*READ_AT_THE_START, ".rootlet-instance"):
            ground.until(functools.partial(is_told, name), f"{name} is told")
        for name in READ_AT_THE_START:
            assert os.path.lexists(agent.state / f"{name}.refused"), name
        assert all((agent.state / name).is_file() for name in COMPARED)

    return strike


def _clear_aside(state: Path, name: str) -> None:
    for path in state.glob(f"{name}.refused*"):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _gone(vanish: Callable[[Path], None]) -> Callable[[Ground], None]:
    """The applied pods go on, new ones start."""

    def strike(ground: Ground) -> None:
        agent = ground.agent
        for name in (KEPT, LATER):
            agent.until(lambda name=name: _applied(ground, name), f"{name} is applied")  # type: ignore[misc]
            agent.until_ready([name])
            if name == KEPT:
                before = agent.eye.pod_table(KEPT)
                vanish(agent.state)
                ground.until(lambda: all((agent.state / own).is_file() for own in COMPARED), "files are back")
        assert agent.eye.pod_table(KEPT) == before
        agent.run(pod("new"))
        for name in (KEPT, LATER):
            assert agent.cli("delete", "pod", name).code == 0

    return strike


def _applied(ground: Ground, name: str) -> bool:
    return ground.agent.cli("apply", "-f", "-", stdin=json.dumps(pod(name))).code == 0


def _emptied(state: Path) -> None:
    for path in state.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _removed(state: Path) -> None:
    """Files that the agent writes again meanwhile are removed as well: it is gone when nothing is left."""
    wait_until(lambda: _is_removed(state), UNTIL_S)


def _is_removed(state: Path) -> bool:
    try:
        shutil.rmtree(state)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        return False
    return True


def _moved(state: Path) -> None:
    """Another inode has its name for a moment: nothing was open that could follow."""
    state.rename(state.with_name("moved"))
    shutil.rmtree(state.with_name("moved"))


def _one_by_one(state: Path) -> None:
    for path in sorted(state.iterdir()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        wait_until(lambda: all((state / own).is_file() for own in COMPARED), UNTIL_S)


DAMAGED: Final = tuple(
    Attack(
        f"state-{name}",
        f"While the agent is down each file of its state is damaged: {words}.",
        "be away while the agent starts",
        _damaged(DAMAGES[name]),
        is_quick=name == "byte",
        restarts=True,
    )
    for name, words in {
        "byte": "one byte is no UTF-8",
        "sparse": "it is 10 GiB of nothing",
        "unreadable": "nobody may read it",
        "fifo": "it is a FIFO",
        "directory": "it is a directory",
    }.items()
)
GONE: Final = tuple(
    Attack(
        f"state-{name}",
        f"While the agent runs its state directory is {words}.",
        "nothing: what the agent knows is written again",
        _gone(vanish),
        is_quick=False,
    )
    for name, words, vanish in (
        ("removed", "removed", _removed),
        ("emptied", "emptied", _emptied),
        ("moved", "moved away", _moved),
        ("one-by-one", "emptied, one name after the other", _one_by_one),
    )
)
ATTACKS: Final = (*DAMAGED, *GONE)
