"""Orphans: processes of containers that Podman does not know any more, and their monitors.

A Podman that is killed while it starts a container leaves conmon, the container's monitor, with a process that the OCI
runtime has made and Podman has not recorded. Podman removes such a container in silence and leaves both behind: they
wait for ever, hold memory and the name's cgroup, and show in no list. So they are searched for in /proc, once after
every death of Podman, and ended when Podman says that it does not know the container's id.

Tried on Podman 4.3.1, 5.4.2, 5.8.6 and 6.1.1, by tests/contract/test_killed_podman.py and test_podman_files_podman.py.
A monitor whose command line has other options is not found, and stays.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from workers.podman_files.monitor import has_our_root, is_monitor, monitor_option, monitor_words
from workers.proc.pidfd import open_pidfd, wait_ended
from workers.proc.procfs import PROC

LEAVE_S: Final = 2.0
"""A monitor whose container was removed in good order is gone by then, in seconds."""
DELETE_DEADLINE_S: Final = 10.0
"""For the OCI runtime to kill a process and forget its container, in seconds."""

log = logging.getLogger(__name__)


class Monitor(msgspec.Struct, frozen=True, kw_only=True):
    """A conmon, as its command line shows it."""

    pid: int
    container_id: str
    name: str
    oci_runtime: str
    """Path of the program."""


def find_monitors(pod_logs_dir: str) -> tuple[Monitor, ...]:
    """The monitors of this user's processes that have a file below ``pod_logs_dir``. Reads /proc: for a thread."""
    return tuple(monitor for pid in own_pids() if (monitor := _monitor(pid, pod_logs_dir)) is not None)


def parse_monitor(pid: int, words: Sequence[str], pod_logs_dir: str) -> Monitor | None:
    """None for what is no monitor, or not ours: one that has neither its log nor its pid file below the directory."""
    if not is_monitor(words):
        return None
    options = ("-c", "-r", "-n", "-l", "--conmon-pidfile")
    container_id, oci_runtime, name, log_file, pid_file = (monitor_option(words, option) for option in options)
    files = (log_file.partition(":")[2], pid_file)
    if not any(file.startswith(f"{pod_logs_dir.rstrip('/')}/") for file in files) or not (container_id and oci_runtime):
        return None
    return Monitor(pid=pid, container_id=container_id, name=name, oci_runtime=oci_runtime)


async def end(monitor: Monitor, pod_logs_dir: str, leave_s: float = LEAVE_S) -> bool:
    """End a monitor whose container is unknown to Podman, and what it holds; False when it leaves of its own accord,
    within ``leave_s`` seconds."""
    pidfd = open_pidfd(monitor.pid)
    if pidfd is None:
        return False
    try:
        # The pid may have passed to another process before the pidfd was opened, but not if it is the monitor's now.
        if _monitor(monitor.pid, pod_logs_dir) != monitor or await wait_ended(pidfd, leave_s):
            return False
        # Before the container: the monitor would call Podman to clean up what Podman does not know.
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    finally:
        os.close(pidfd)
    await _delete(monitor)
    return True


async def _delete(monitor: Monitor) -> None:
    process = await asyncio.create_subprocess_exec(
        monitor.oci_runtime,
        *("delete", "--force", monitor.container_id),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(DELETE_DEADLINE_S):
            _, words = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        words = f"no answer within {DELETE_DEADLINE_S:g} s".encode()
    if process.returncode:
        log.warning("%s: %s", monitor.name, words.decode(errors="replace").strip())


def own_pids() -> Iterator[int]:
    """Processes of this user."""
    uid = os.getuid()
    with os.scandir(PROC) as entries:
        for entry in entries:
            try:
                if entry.name.isdigit() and entry.stat().st_uid == uid:
                    yield int(entry.name)
            except FileNotFoundError:
                continue  # it has ended


def _monitor(pid: int, pod_logs_dir: str) -> Monitor | None:
    found = parse_monitor(pid, monitor_words(pid), pod_logs_dir)
    return found if found is not None and has_our_root(pid) else None
