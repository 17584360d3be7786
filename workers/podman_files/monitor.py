"""conmon, the monitor of a container: its command line, and the files in which it records how the container has ended.

Podman removes these files in its clean-up. A process in a container may call itself a monitor: what such a command line
names is not read (`has_our_root`).

Tried on conmon 2.1.6, 2.1.12 and 2.1.13 (Podman 4.3.1, 5.4.2, 5.8.6, 6.1.1), by tests/contract/test_signals_contract.py
and test_wrong_podman_answers_contract.py. Where no command line is found, or it lacks an option, the container has no
monitor for us: Podman is asked for its end, and commands run through Podman's exec sessions.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ipc.host.regular_files import opened_regular_file
from workers.kubecontainer.runtime import ContainerProcess, RecordedEnd
from workers.proc import procfs
from workers.proc.pidfd import kill_if

MONITORS: Final = frozenset({"conmon", "conmon-v3"})
"""Names of the program; the second one is that of its successor in Rust, which takes the same arguments."""
MAX_CODE_BYTES: Final = 64


def has_our_root(pid: int) -> bool:
    """Whether a process sees the file system that this one sees, as Podman's monitors do and no container does.

    A command line says what its process wants it to say: one in a container may call itself a monitor, of an OCI
    runtime of its own making.
    """
    try:
        return os.path.samefile(f"{procfs.PROC}/{pid}/root", "/")
    except OSError:  # gone, or somebody else's
        return False


def monitor_words(pid: int) -> list[str]:
    """The command line of a container's monitor; empty when that process is none."""
    words = procfs.read_whole(pid, "cmdline").split("\0")
    return words if is_monitor(words) else []


def is_monitor(words: Sequence[str]) -> bool:
    """Whether that is the command line of a conmon."""
    return bool(words) and os.path.basename(words[0]) in MONITORS


def monitor_options(words: Sequence[str]) -> Mapping[str, str]:
    """Every word of a monitor's command line, and the one behind it: of an option its value."""
    return dict(itertools.pairwise(words))


def monitor_option(words: Sequence[str], name: str) -> str:
    """The word behind that option on a monitor's command line; empty when it is not there."""
    return monitor_options(words).get(name, "")


def has_monitor(process: ContainerProcess) -> bool:
    """Whether conmon still waits for the container's end. Without it Podman never notices that."""
    return bool(words_of_monitor(process.container_id, process.monitor_pid))


def words_of_monitor(container_id: str, monitor_pid: int) -> list[str]:
    """The command line of that container's monitor; empty when the pid that it had is another process's by now: one in
    a container may call itself so."""
    words = monitor_words(monitor_pid)
    return words if container_id in words and has_our_root(monitor_pid) else []


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


def dismiss_monitor(process: ContainerProcess) -> None:
    """SIGKILL to the child of a container's monitor that waits to clean up, if the monitor has recorded the end: then
    it ends, too, as after a clean-up (conmon's src/ctr_exit.c, do_exit_command)."""
    if recorded_end(process) is None:
        return
    for pid in procfs.children_of(process.monitor_pid):
        is_it = functools.partial(_is_monitor_of, process.container_id, pid)
        with contextlib.suppress(OSError):
            kill_if(pid, is_it)


def _is_monitor_of(container_id: str, pid: int) -> bool:
    return container_id in monitor_words(pid)
