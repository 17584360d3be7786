"""An infra container that was just started, without an inspect: from its monitor's command line, files and process.

Podman's start has answered, so what it would show of the container is what it has handed to the monitor and the OCI
runtime. An inspect costs Podman 2 ms of CPU, which is a twentieth of a whole start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.network_addresses import addresses_of
from workers.kubecontainer.runtime import InspectedContainer
from workers.libpod.bundle import read_config
from workers.proc import procfs

RESOLV_CONF: Final = "/etc/resolv.conf"
MAX_PID_BYTES: Final = 32


def look_at_infra(
    name: str,
    pod_id: str,
    pid_file: Path,
    labels: Mapping[str, str],
    *,
    host_network: bool,
    on_monitor: Callable[[Sequence[str]], None],
) -> InspectedContainer | None:
    """The container of that name, made and started with these, whose monitor has written ``pid_file``. ``on_monitor``
    gets the monitor's command line.

    Its dates are those of files: of the directory that containers/storage makes for it, and of the pid file that the
    monitor writes before Podman lets the process go. Podman notes both some milliseconds beside.

    None when its files do not tell, or are not ours to read (a service of another host, a pod with ids of its own):
    Podman has to be asked then. Reads ten small files.
    """
    try:
        monitor_pid = int(pid_file.read_bytes())
        words = procfs.monitor_words(monitor_pid)
        "".join(words).encode()  # what is no Unicode travels in no message: a ValueError
        if _named(words) != (name, str(pid_file)) or not procfs.has_our_root(monitor_pid):
            return None
        on_monitor(words)
        pid, started_at = _dated_pid(procfs.monitor_option(words, "-p"))
        bundle = procfs.monitor_option(words, "-b")
        created_at = os.stat(os.path.dirname(bundle)).st_mtime
        config_path = os.path.join(bundle, "config.json")
        config = read_config(config_path)
    except (OSError, ValueError, msgspec.DecodeError):
        return None
    start_ticks = procfs.start_ticks_of_child(pid, monitor_pid)
    if not start_ticks:
        return None
    return InspectedContainer(
        id=procfs.monitor_option(words, "-c"),
        name=name,
        pod_id=pod_id,
        is_infra=True,
        state="running",
        pid=pid,
        conmon_pid=monitor_pid,
        exit_code=0,
        oom_killed=False,
        error="",
        created_at=created_at,
        started_at=started_at,
        finished_at=0.0,
        image="",
        image_id="",
        labels=dict(labels),
        ips=() if host_network else addresses_of(pid),
        log_path=procfs.monitor_option(words, "-l").partition(":")[2],
        resolv_conf=next((mount.source for mount in config.mounts if mount.destination == RESOLV_CONF), ""),
        start_ticks=start_ticks,
        config_path=config_path,
    )


def _dated_pid(pid_file: str) -> tuple[int, float]:
    """Content and date. Raises OSError, ValueError."""
    with open(pid_file, "rb", buffering=0) as file:
        return int(file.read(MAX_PID_BYTES)), os.fstat(file.fileno()).st_mtime


def _named(words: list[str]) -> tuple[str, str]:
    return procfs.monitor_option(words, "-n"), procfs.monitor_option(words, "--conmon-pidfile")
