"""Attacks that give the name of a file to something else while the agent follows or writes it."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.attack.attack import Attack
from tests.attack.ground import UNTIL_S, Ground
from tests.e2e.manifests import container, pod
from tests.support.hung_file_system import hung, is_there
from workers.logs.rotated_names import TEMPORARY

COUNTS: Final = "i=0; while true; do i=$((i+1)); echo line $i; sleep 0.2; done"
ROTATED_BYTES: Final = 11 << 20
"""More than `containerLogMaxSize` has by default."""


def _directory(path: Path) -> None:
    path.mkdir()


def _socket(path: Path) -> None:
    """A relative name: that of a socket may have 107 bytes."""
    here = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{here}/{path.name}")
    finally:
        os.close(here)


def _endless_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _unreadable(path: Path) -> None:
    path.touch(0)


KINDS: Final[tuple[Callable[[Path], None], ...]] = (os.mkfifo, _directory, _socket, _endless_device, _unreadable)


def _free(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _log_of(ground: Ground, name: str) -> Path:
    return next(Path(ground.agent.settings["podLogsDir"]).glob(f"*_{name}_*")) / "main" / "0.log"


def _followed(ground: Ground) -> None:
    """The API server answers others, whatever takes the name, and the client gets what the container goes on to
    write."""
    agent = ground.agent
    agent.until_ready(["followed"])
    log = _log_of(ground, "followed")
    with agent.following("logs", "--follow", "followed") as client:
        assert client.stdout is not None
        _next_number(client.stdout.fileno())
        for take in KINDS:
            log.rename(log.with_name("away"))
            take(log)
            number = _next_number(client.stdout.fileno())
            agent.get("/version")
            while _next_number(client.stdout.fileno()) <= number:
                pass
            _free(log)
            log.with_name("away").rename(log)


def _next_number(fd: int) -> int:
    """Number of the newest line that the client has shown, when it shows more."""
    assert select.select([fd], [], [], UNTIL_S)[0], "the followed log shows nothing more"
    return int(os.read(fd, 1 << 16).split()[-1])


def _hung(ground: Ground) -> None:
    """A file system that answers nothing lies over the log's directory: whoever follows or asks is told, and others are
    answered. The pod is deleted when that file system is gone."""
    assert is_there(), "this host has no fusermount3, or no /dev/fuse for us"
    agent = ground.agent
    agent.until_ready(["hangs", "goes-on"])
    directory = _log_of(ground, "hangs").parent
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(agent.following("logs", "--follow", "hangs"))
        other = stack.enter_context(agent.following("logs", "--follow", "goes-on"))
        assert client.stdout is not None
        assert other.stdout is not None
        _next_number(client.stdout.fileno())
        with hung(directory):
            others = [
                stack.enter_context(agent.following("logs", *words, "hangs"))
                for words in ((), ("--tail=1",), ("--follow",))
            ]
            number = _next_number(other.stdout.fileno())
            agent.get("/version")
            while _next_number(other.stdout.fileno()) <= number:
                pass
            for each in (client, *others):
                each.wait(UNTIL_S)
            agent.get("/version")
        assert all(each.returncode for each in (client, *others))


def _rotated(ground: Ground) -> None:
    """A log is due, and a FIFO has the name of its next file; it is rotated as soon as that is away."""
    agent = ground.agent
    agent.until_ready(["rotates"])
    log = _log_of(ground, "rotates")
    next_file = log.with_name(f"{log.name}{TEMPORARY}")
    os.mkfifo(next_file)
    os.truncate(log, ROTATED_BYTES)
    ground.until(lambda: f"{next_file}: is not a regular file" in agent.log_text(), "it is told about")
    next_file.unlink()
    ground.until(lambda: len(list(log.parent.glob("0.log.2*"))) > 0, "it is rotated then")


def _state(ground: Ground) -> None:
    """All that the agent writes is written all the same."""
    agent = ground.agent
    kinds = itertools.cycle((os.mkfifo, _socket, _endless_device))
    for path in [path for path in agent.state.iterdir() if path.is_file() and not path.name.startswith(".")]:
        temporary = path.with_name(f".{path.name}.tmp")
        _free(temporary)
        next(kinds)(temporary)
    events = agent.state / "events.jsonl"
    events.unlink()
    os.mkfifo(events)
    agent.assert_works(pod("beside-taken-names"))
    ground.until(lambda: events.is_file() and b"beside-taken-names" in events.read_bytes(), "events are written again")


ATTACKS: Final = (
    Attack(
        "followed-log",
        "A FIFO, a directory, a socket, a device and an unreadable file take the name of a log that a client follows.",
        "be shown what the container goes on to write",
        _followed,
        (pod("followed", container(script=COUNTS)),),
        is_quick=False,
    ),
    Attack(
        "rotated-log",
        "A FIFO has the name of the file that a log which is to be rotated goes on in.",
        "be rotated when the FIFO is gone",
        _rotated,
        (pod("rotates", container(script=COUNTS)),),
        is_quick=False,
    ),
    Attack(
        "taken-state-names",
        "FIFOs, sockets and devices have the names of files that the agent is about to write.",
        "be replaced",
        _state,
    ),
    Attack(
        "hung-log",
        "A file system that answers nothing is mounted over a log that clients follow and ask for.",
        "have its clients told after 30 s",
        _hung,
        (pod("hangs", container(script=COUNTS)), pod("goes-on", container(script=COUNTS))),
        is_quick=False,
    ),
)
