"""Identity and end of a container's process, from /proc and its monitor's files, without any privilege.

A pid in Podman's state may have passed to another process: when the container's monitor (conmon) is gone, Podman does
not clear it, and after a reboot with a runtime directory that outlives it all pids are stale.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ipc.host.regular_files import opened_regular_file
from workers.kubecontainer.runtime import ContainerProcess, InspectedContainer, RecordedEnd
from workers.proc.pidfd import open_pidfd

PROC: Final = Path("/proc")
MONITORS: Final = frozenset({"conmon", "conmon-v3"})
"""Names of the program; the second one is that of its successor in Rust, which takes the same arguments."""
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
MAX_STAT_BYTES: Final = 4096
MAX_CODE_BYTES: Final = 64
"""More than the fifty numbers of /proc/PID/stat can be."""
START_SLACK_S: Final = 2.0
"""The time of boot in /proc/stat is in whole seconds."""
_STATE, _PPID, _SESSION, _FLAGS, _START_TIME = 3 - 3, 4 - 3, 6 - 3, 9 - 3, 22 - 3
"""Positions in /proc/PID/stat, counted from behind the command's name (proc(5))."""
_ENDED: Final = ("Z", "X")
"""States of a process that has ended."""
_PF_EXITING: Final = 0x4
"""The flag of a process that the kernel is taking down (linux/sched.h)."""


def open_process(container: InspectedContainer) -> int | None:
    """A pidfd of the container's first process; None when that has ended, also if its pid was reused.

    Raises OSError, e.g. EMFILE.
    """
    pidfd = open_pidfd(container.pid) if container.pid > 0 else None
    if pidfd is None:
        return None
    # Looked at when the pidfd is there: had the process ended in between, the pidfd would say so.
    if is_process_of(container):
        return pidfd
    os.close(pidfd)
    return None


def open_known_process(process: ContainerProcess) -> int | None:
    """Open a pidfd of a process of which the start is known."""
    pidfd = open_pidfd(process.pid)
    if pidfd is None:
        return None
    if start_ticks(process.pid) == process.start_ticks:
        return pidfd
    os.close(pidfd)
    return None


def exists(pid: int) -> bool:
    """Whether any process has that pid."""
    return (PROC / str(pid)).exists()


def is_alive(pid: int) -> bool:
    """Whether a process has that pid and has not ended: a zombie has."""
    return state_of(pid) not in ("", *_ENDED)


def state_of(pid: int) -> str:
    """The letter of a process's state, as proc(5) has it; empty when there is no such process."""
    fields = stat_fields(pid)
    return fields[_STATE] if fields else ""


def session_of(pid: int) -> int:
    """Session id of a process (setsid); 0 when there is no such process."""
    fields = stat_fields(pid)
    return int(fields[_SESSION]) if fields else 0


def parent_of(pid: int) -> int:
    """Pid of the parent; 0 when there is no such process."""
    fields = stat_fields(pid)
    return int(fields[_PPID]) if fields else 0


def children_of(pid: int) -> list[int]:
    """Pids of the children of a process's first thread; none where the kernel does not tell (CONFIG_PROC_CHILDREN)."""
    return [int(child) for child in _read(pid, f"task/{pid}/children").split()]


def pids() -> list[int]:
    """Pids of all processes of this host."""
    return [int(name) for name in os.listdir(PROC) if name.isdigit()]


def monitor_words(pid: int) -> list[str]:
    """The command line of a container's monitor; empty when that process is none."""
    words = _read(pid, "cmdline").split("\0")
    return words if is_monitor(words) else []


def is_monitor(words: Sequence[str]) -> bool:
    """Whether that is the command line of a conmon."""
    return bool(words) and os.path.basename(words[0]) in MONITORS


def has_our_root(pid: int) -> bool:
    """Whether a process sees the file system that this one sees, as Podman's monitors do and no container does.

    A command line says what its process wants it to say: one in a container may call itself a monitor, of an OCI
    runtime of its own making.
    """
    try:
        return os.path.samefile(f"{PROC}/{pid}/root", "/")
    except OSError:  # gone, or somebody else's
        return False


def monitor_options(words: Sequence[str]) -> Mapping[str, str]:
    """Every word of a monitor's command line, and the one behind it: of an option its value."""
    return dict(itertools.pairwise(words))


def monitor_option(words: Sequence[str], name: str) -> str:
    """The word behind that option on a monitor's command line; empty when it is not there."""
    return monitor_options(words).get(name, "")


def variable(pid: int, name: str) -> str:
    """Value of a variable of the environment with which a process was started; empty when it has none, or is another
    user's."""
    try:
        entries = _read(pid, "environ").split("\0")
    except PermissionError:
        return ""
    return next((entry.partition("=")[2] for entry in entries if entry.startswith(f"{name}=")), "")


def has_monitor(process: ContainerProcess) -> bool:
    """Whether conmon still waits for the container's end. Without it Podman never notices that."""
    return bool(words_of_monitor(process.container_id, process.monitor_pid))


def words_of_monitor(container_id: str, monitor_pid: int) -> list[str]:
    """The command line of that container's monitor; empty when the pid that it had is another process's by now: one in
    a container may call itself so."""
    words = monitor_words(monitor_pid)
    return words if container_id in words and has_our_root(monitor_pid) else []


def is_exiting(container: InspectedContainer) -> bool:
    """Whether the kernel is ending the container's first process, which has one thread, or has done so.

    The first process of a PID namespace ends after all others in it, which it takes along: until they are gone neither
    a pidfd nor its state tells of its end (zap_pid_ns_processes in kernel/pid_namespace.c).
    """
    fields = stat_fields(container.pid)
    return len(fields) <= _FLAGS or bool(int(fields[_FLAGS]) & _PF_EXITING)


def will_record(process: ContainerProcess) -> bool:
    """Whether the container's monitor lives, and `recorded_end` can read what it writes."""
    words = words_of_monitor(process.container_id, process.monitor_pid)
    directory, bundle = monitor_option(words, "--exit-dir"), monitor_option(words, "-b")
    return bool(directory) and os.access(directory, os.X_OK) and (not bundle or os.access(bundle, os.X_OK))


def recorded_end(process: ContainerProcess) -> RecordedEnd | None:
    """End of the container as its monitor, which lives, has recorded it; None while it has not.

    conmon writes the exit code to a file, by renaming it, after the log and before it calls Podman. What Podman says of
    the end is that file and its date (libpod, container_internal.go, handleExitFile), which it removes in its clean-up.
    None as well for a container of a pod with ids of its own, whose bundle Podman 4.3 does not leave open to us.
    """
    words = words_of_monitor(process.container_id, process.monitor_pid)
    directory, bundle = monitor_option(words, "--exit-dir"), monitor_option(words, "-b")
    if monitor_option(words, "-c") != process.container_id or not directory:
        return None
    try:
        with opened_regular_file(Path(directory, process.container_id)) as fd:
            code, noted_at = int(os.read(fd, MAX_CODE_BYTES)), os.fstat(fd).st_ctime
        oom_killed = bool(bundle) and Path(bundle, "oom").exists()
    except (FileNotFoundError, PermissionError, ValueError):
        return None
    return RecordedEnd(exit_code=code, finished_at=noted_at, oom_killed=oom_killed)


def is_process_of(container: InspectedContainer) -> bool:
    """Whether the process that has the container's pid is the container's.

    It was started at the tick that was seen when the container was looked at. If it had ended by then: its cgroup
    carries the id, or its parent is the container's monitor. When neither says so (no cgroups, and the monitor is dead)
    it must not be younger than the container's start, which Podman notes after the process is there.
    """
    if container.start_ticks:
        return start_ticks(container.pid) == container.start_ticks
    if container.id in _read(container.pid, "cgroup"):
        return True
    fields = stat_fields(container.pid)
    if len(fields) <= _START_TIME:
        return False  # it has just ended
    if int(fields[_PPID]) == container.conmon_pid and has_monitor(container.process):
        return True
    return boot_time() + int(fields[_START_TIME]) / TICKS_PER_S <= container.started_at + START_SLACK_S


def has_open_input(container: InspectedContainer) -> bool:
    """Whether conmon still holds the other end of the pipe that is the standard input of the container's first process.

    It lets go with the first client that attaches and goes (conmon's src/conn_sock.c, terminate_remote_sock: Podman has
    no word for --leave-stdin-open). True when that is no pipe, or not ours to see: nothing is known then.
    """
    input_of = _links(container.pid, "0")
    return not input_of or not input_of[0].startswith("pipe:") or input_of[0] in _links(container.conmon_pid)


def _links(pid: int, *numbers: str) -> list[str]:
    """Targets of these descriptors of a process, or of all; none of a process that is gone or another user's."""
    directory = PROC / str(pid) / "fd"
    links = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        for number in numbers or os.listdir(directory):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                links.append(os.readlink(directory / number))
    return links


def start_ticks(pid: int) -> int:
    """When that process was started, in clock ticks since boot; 0 when there is none."""
    fields = stat_fields(pid)
    return int(fields[_START_TIME]) if len(fields) > _START_TIME else 0


def start_ticks_of_child(pid: int, parent: int) -> int:
    """`start_ticks` of a process of that parent; 0 when that pid is no such process, or has ended."""
    fields = stat_fields(pid)
    is_one = len(fields) > _START_TIME and int(fields[_PPID]) == parent and fields[_STATE] not in _ENDED
    return int(fields[_START_TIME]) if is_one else 0


def start_ticks_of(container: InspectedContainer) -> int:
    """`start_ticks` of a container's first process; 0 when that has ended, also if its pid was reused."""
    # Read first: had another process got the pid in between, the second question would say so.
    ticks = start_ticks(container.pid) if container.pid > 0 else 0
    return ticks if ticks and is_process_of(container) else 0


def boot_time() -> float:
    """When this host was booted, in epoch seconds of the present clock."""
    lines = (PROC / "stat").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("btime ")))


def stat_fields(pid: int) -> list[str]:
    """Fields behind the command's name, which may have any character in it; none when the process is gone."""
    return read_once(pid, "stat", MAX_STAT_BYTES).decode(errors="replace").rpartition(")")[2].split()


def read_once(pid: int, name: str, max_bytes: int) -> bytes:
    """A short file /proc/PID/NAME; empty for a process that is not there.

    In one call, because the kernel makes the text anew for each: the dialer reads one for every socket that it makes.
    """
    try:
        fd = os.open(f"{PROC}/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        return b""
    try:
        return os.read(fd, max_bytes)
    except ProcessLookupError:
        return b""
    finally:
        os.close(fd)


def _read(pid: int, name: str) -> str:
    """A file /proc/PID/NAME of any length; empty for a process that is not there."""
    try:
        with open(f"{PROC}/{pid}/{name}", "rb", buffering=0) as file:
            return file.read().decode(errors="surrogateescape")
    except (FileNotFoundError, ProcessLookupError):
        return ""
