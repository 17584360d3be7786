"""The process that stays in Podman's namespaces: it is one, it is replaced, and a run that hangs holds nobody up."""

from __future__ import annotations

import errno
import os
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.podman_service import wait_until
from workers.proc.procfs import is_alive
from workers.userns.standing import Standing
from workers.userns.unshare import Step, Unshare, UnshareError, UnshareTimeout

COUNTED = """#!/bin/sh
echo "$2" >> "$(dirname "$0")/started"
shift
exec "$@"
"""
"""The user's own namespaces instead of Podman's, and a line for each start."""


class Here:
    """Podman, whose commands join the mount namespace of the name `joined`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.joined = os.readlink("/proc/self/ns/mnt")
        self.say(COUNTED)
        self.standing = Standing(lambda: self.joined)
        self.unshare = Unshare(podman=str(directory / "podman"), standing=self.standing)

    def say(self, program: str) -> None:
        file = self.directory / "podman"
        file.write_text(program)
        file.chmod(stat.S_IRWXU)

    def run(self, *steps: Step, deadline_s: float = 60.0) -> tuple[Any, ...]:
        return Unshare(podman=self.unshare.podman, standing=self.standing, deadline_s=deadline_s).run(steps)

    def starts(self) -> int:
        return len((self.directory / "started").read_text().splitlines())

    def removed(self, name: str) -> bool:
        """Whether a directory that a run is to remove is removed."""
        (self.directory / name).mkdir()
        self.run(("remove", {"path": str(self.directory / name)}))
        return not (self.directory / name).exists()

    def server(self) -> int:
        """The process that stays, by what it was started with."""
        found = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._is_server(pid)]
        assert len(found) == 1, found
        return found[0]

    def _is_server(self, pid: int) -> bool:
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes()
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False
        return f"ROOTLET_TEST_HERE={self.directory}".encode() in environ and command.endswith(b"\0stay\0")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    monkeypatch.setenv("ROOTLET_TEST_HERE", str(tmp_path))
    made = Here(tmp_path)
    yield made
    made.unshare.close()


def test_many_runs_take_one_start_and_it_leaves_with_its_user(here: Here) -> None:
    assert all(here.removed(f"{number}") for number in range(5))
    assert here.starts() == 1
    server = here.server()
    here.unshare.close()
    wait_until(lambda: not is_alive(server), 10.0, 0.01)


def test_a_failing_step_is_told_as_from_a_process_of_its_own(here: Here) -> None:
    (here.directory / "first").mkdir()
    path = here.directory / os.fsdecode(b"\xff")
    steps: list[Step] = [
        ("remove", {"path": str(here.directory / "first")}),
        ("give_to_group", {"path": str(path), "gid": os.getegid()}),
    ]
    with pytest.raises(UnshareError, match=r"\\udcff: No such file or directory") as raised:
        here.run(*steps)
    assert raised.value.done == 1
    with pytest.raises(UnshareError, match=r"podman unshare: Traceback[\s\S]*KeyError: 'unheard of'"):
        here.run(("unheard of", {}))
    assert here.starts() == 1


def test_one_that_was_killed_is_replaced_and_nothing_is_lost(here: Here) -> None:
    assert here.removed("before")
    os.kill(here.server(), signal.SIGKILL)
    assert here.removed("after")
    assert here.starts() == 2


def test_one_that_is_stopped_is_late_and_replaced(here: Here) -> None:
    assert here.removed("before")
    server = here.server()
    os.kill(server, signal.SIGSTOP)
    with pytest.raises(UnshareTimeout, match=r"not done within 0\.2 s"):
        here.run(deadline_s=0.2)
    assert here.removed("after"), "another one has taken its place"
    assert here.starts() == 2
    os.kill(server, signal.SIGCONT)
    wait_until(lambda: not is_alive(server), 10.0, 0.01)


def test_a_run_that_hangs_is_killed_with_what_it_has_started_and_holds_nobody_up(here: Here) -> None:
    pid = here.directory / "pid"
    slow = here.directory / "slow"
    slow.write_text(f"#!/bin/sh\nsleep 1000 & echo $! > {pid}; wait\n")
    slow.chmod(stat.S_IRWXU)
    step = ("bind_image", {"podman": [str(slow)], "image": "i", "sub_path": "s", "target": "/"})
    late: list[UnshareError] = []

    def hang() -> None:
        with pytest.raises(UnshareTimeout) as raised:
            here.run(step, deadline_s=5.0)
        late.append(raised.value)

    hanging = threading.Thread(target=hang)
    hanging.start()
    wait_until(lambda: pid.exists() and pid.read_text().endswith("\n"), 10.0, 0.01)
    assert here.removed("meanwhile")
    assert not late
    hanging.join()
    assert late
    wait_until(lambda: not is_alive(int(pid.read_text())), 10.0, 0.01)
    assert here.removed("later")
    assert here.starts() == 1


def test_a_run_that_is_killed_is_told(here: Here) -> None:
    killer = here.directory / "killer"
    killer.write_text("#!/bin/sh\nkill -9 $PPID\n")
    killer.chmod(stat.S_IRWXU)
    with pytest.raises(UnshareError, match="the process that carried out the steps has ended"):
        here.run(("bind_image", {"podman": [str(killer)], "image": "i", "sub_path": "s", "target": "/"}))
    assert here.removed("after")
    assert here.starts() == 1


def test_where_podman_has_other_namespaces_now_it_is_not_asked(here: Here) -> None:
    """Nor where that is not known: each run comes in by itself."""
    assert here.removed("before")
    server = here.server()
    here.joined = "mnt:[1]"
    assert here.removed("elsewhere")
    assert here.starts() == 3, "one to stay, which was not where Podman is, and the run itself"
    wait_until(lambda: not is_alive(server), 10.0, 0.01)
    here.joined = ""
    assert here.removed("unknown")
    assert here.starts() == 4


def test_words_of_a_start_that_fails_are_told(here: Here) -> None:
    here.say("#!/bin/sh\necho 'cannot join the namespace' >&2; exit 125\n")
    with pytest.raises(UnshareError, match="podman unshare: cannot join the namespace"):
        here.run()
    here.say("#!/bin/sh\nsleep 1000\n")
    with pytest.raises(UnshareTimeout, match=r"not done within 0\.2 s"):
        here.run(deadline_s=0.2)
    here.say(COUNTED)
    assert here.removed("after")


def test_large_requests_and_answers_pass(here: Here) -> None:
    (here.directory / "file").write_bytes(b"\xff" * 2**20)
    argument = {"root": str(here.directory), "path": "file", "max_bytes": 2**20}
    assert here.run(*[("read_file", argument)] * 3) == ([0, "\xff" * 2**20],) * 3
    ((number, _),) = here.run(("read_file", {**argument, "path": "x" * 2**20}))
    assert number == errno.ENAMETOOLONG
