"""Attacks on the files of the agent's own state: what a broken disk, a backup or another program may leave there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.attack.attack import Attack
from tests.attack.ground import Ground

SPARSE_BYTES: Final = 10 << 30
READ_AT_THE_START: Final = (
    "desired.json",
    "objects.json",
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
        for name in (*READ_AT_THE_START, *COMPARED, ".rootlet-instance"):
            _clear_aside(agent.state, name)
            damage(agent.state / name)
        agent.start()
        ground.until(
            lambda: all(name in agent.log_text()[told:] for name in (*READ_AT_THE_START, ".rootlet-instance")),
            "each file is told",
        )
        for name in READ_AT_THE_START:
            assert os.path.lexists(agent.state / f"{name}.refused"), name
        assert all((agent.state / name).is_file() for name in COMPARED)

    return strike


def _clear_aside(state: Path, name: str) -> None:
    for path in state.glob(f"{name}.refused*"):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


ATTACKS: Final = tuple(
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
