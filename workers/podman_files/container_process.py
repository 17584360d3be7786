"""Identity of a container's first process, and signals to it, without Podman.

A pid in Podman's state may have passed to another process: when the container's monitor (conmon) is gone, Podman does
not clear it, and after a reboot with a runtime directory that outlives it all pids are stale.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Final

from workers.kubecontainer.runtime import ContainerProcess, InspectedContainer
from workers.podman_files.monitor import has_monitor
from workers.proc import procfs
from workers.proc.pidfd import open_pidfd
from workers.proc.signal_names import signal_number

START_SLACK_S: Final = 2.0
"""The time of boot in /proc/stat is in whole seconds."""
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
    if procfs.start_ticks(process.pid) == process.start_ticks:
        return pidfd
    os.close(pidfd)
    return None


def is_process_of(container: InspectedContainer) -> bool:
    """Whether the process that has the container's pid is the container's.

    It was started at the tick that was seen when the container was looked at. If it had ended by then: its cgroup
    carries the id, or its parent is the container's monitor. When neither says so (no cgroups, and the monitor is dead)
    it must not be younger than the container's start, which Podman notes after the process is there.
    """
    if container.start_ticks:
        return procfs.start_ticks(container.pid) == container.start_ticks
    if container.id in procfs.read_whole(container.pid, "cgroup"):
        return True
    fields = procfs.stat_fields(container.pid)
    if len(fields) <= procfs.START_TIME:
        return False  # it has just ended
    if int(fields[procfs.PPID]) == container.conmon_pid and has_monitor(container.process):
        return True
    began_at = procfs.boot_time() + int(fields[procfs.START_TIME]) / procfs.TICKS_PER_S
    return began_at <= container.started_at + START_SLACK_S


def start_ticks_of(container: InspectedContainer) -> int:
    """`start_ticks` of a container's first process; 0 when that has ended, also if its pid was reused."""
    # Read first: had another process got the pid in between, the second question would say so.
    ticks = procfs.start_ticks(container.pid) if container.pid > 0 else 0
    return ticks if ticks and is_process_of(container) else 0


def is_exiting(container: InspectedContainer) -> bool:
    """Whether the kernel is ending the container's first process, which has one thread, or has done so.

    The first process of a PID namespace ends after all others in it, which it takes along: until they are gone neither
    a pidfd nor its state tells of its end (zap_pid_ns_processes in kernel/pid_namespace.c).
    """
    fields = procfs.stat_fields(container.pid)
    return len(fields) <= procfs.FLAGS or bool(int(fields[procfs.FLAGS]) & _PF_EXITING)


def has_open_input(container: InspectedContainer) -> bool:
    """Whether conmon still holds the other end of the pipe that is the standard input of the container's first process.

    It lets go with the first client that attaches and goes (conmon's src/conn_sock.c, terminate_remote_sock: Podman has
    no word for --leave-stdin-open). True when that is no pipe, or not ours to see: nothing is known then.
    """
    input_of = _links(container.pid, "0")
    return not input_of or not input_of[0].startswith("pipe:") or input_of[0] in _links(container.conmon_pid)


def _links(pid: int, *numbers: str) -> list[str]:
    """Targets of these descriptors of a process, or of all; none of a process that is gone or another user's."""
    directory = procfs.PROC / str(pid) / "fd"
    links = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        for number in numbers or os.listdir(directory):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                links.append(os.readlink(directory / number))
    return links


def send_signal(process: ContainerProcess, name: str) -> bool:
    """Send a signal to that process, by pidfd. False when that cannot be done, and Podman has to be asked: it is not
    known which process that is, the container's monitor does not live, the process has ended (and the container perhaps
    been started again), or it may not be signalled.

    Podman has the OCI runtime send it, which is one more process that looks up the pid; what it adds is a note for its
    own restart policies, which no container of ours has, and an event that nobody waits for.

    Whoever owns a user namespace may signal every process in it (kernel/signal.c, kill_ok_by_cred).
    """
    if not process.pid or not process.start_ticks or not has_monitor(process):
        return False
    try:
        number = signal_number(name)
        pidfd = open_known_process(process)
    except (ValueError, OSError):
        return False
    if pidfd is None:
        return False
    try:
        signal.pidfd_send_signal(pidfd, number)
    except OSError:
        return False
    finally:
        os.close(pidfd)
    return True
