"""Signals to the first process of a container, by pidfd.

Podman has the OCI runtime send it, which is one more process that looks up the pid; what it adds is a note for its own
restart policies, which no container of ours has, and an event that nobody waits for.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal

from workers.kubecontainer.runtime import ContainerProcess
from workers.proc import procfs
from workers.proc.pidfd import kill_if
from workers.proc.signal_names import signal_number


def send(process: ContainerProcess, name: str) -> bool:
    """Send a signal to that process. False when that cannot be done, and Podman has to be asked: it is not known which
    process that is, the container's monitor does not live, the process has ended (and the container perhaps been
    started again), or it may not be signalled.

    Whoever owns a user namespace may signal every process in it (kernel/signal.c, kill_ok_by_cred).
    """
    if not process.pid or not process.start_ticks or not procfs.has_monitor(process):
        return False
    try:
        number = signal_number(name)
        pidfd = procfs.open_known_process(process)
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


def dismiss_monitor(process: ContainerProcess) -> None:
    """SIGKILL to the child of a container's monitor that waits to clean up, if the monitor has recorded the end: then
    it ends, too, as after a clean-up (conmon's src/ctr_exit.c, do_exit_command)."""
    if procfs.recorded_end(process) is None:
        return
    for pid in procfs.children_of(process.monitor_pid):
        is_it = functools.partial(_is_monitor_of, process.container_id, pid)
        with contextlib.suppress(OSError):
            kill_if(pid, is_it)


def _is_monitor_of(container_id: str, pid: int) -> bool:
    return container_id in procfs.monitor_words(pid)
