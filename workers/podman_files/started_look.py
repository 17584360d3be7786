"""A container that was just started, without an inspect: from its monitor's command line, files and process.

Podman's start has answered, so what it would show of the container is what it has handed to the monitor and the OCI
runtime. An inspect costs Podman 2 ms of CPU, which is a twentieth of a whole start.

Tried on Podman 4.3.1, 5.4.2, 5.8.6 and 6.1.1 (conmon 2.1.6, 2.1.12, 2.1.13; crun 1.8.1, 1.21, 1.28), by
tests/contract/test_infra_look_podman.py and test_container_look_podman.py. Where a file is absent or says another
thing, the container is inspected.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.clock import parse_rfc3339, wall
from ipc.host.network_addresses import addresses_of
from ipc.host.regular_files import opened_regular_file
from ipc.host.text.json_types import UNDECODABLE
from workers.kubecontainer.image_service import ImageInfo
from workers.kubecontainer.runtime import ContainerProcess, InspectedContainer, SpecDict
from workers.podman_files.bundle import RuntimeConfig, read_config, user_in
from workers.podman_files.monitor import (
    has_our_root,
    monitor_option,
    monitor_options,
    monitor_words,
    words_of_monitor,
)
from workers.podman_files.seccomp_filters import SeccompFilters
from workers.proc import procfs
from workers.proc.signal_names import signal_name

RESOLV_CONF: Final = "/etc/resolv.conf"
MAX_PID_BYTES: Final = 32
MERGED: Final = "merged"
"""The directory at which the overlay driver mounts a container's root."""
WRITTEN: Final = "diff"
"""The one beside it, of what the container has written."""


class StartedLook:
    """Looks at containers that this process has started. Where their monitors write pid files is known from the first
    monitor on, whoever has started its container."""

    def __init__(self, on_monitor: Callable[[Sequence[str]], None], filters: SeccompFilters) -> None:
        """``on_monitor`` gets the command line of the monitor of each infra container that was looked at or learnt
        from, ``filters`` the OCI runtime's directory of each other container that has compiled its own."""
        self._on_monitor = on_monitor
        self._filters = filters
        self._run_directory = ""
        """With a directory for each container, by its id; empty while it is not known."""
        self._runtime_root = ""
        """Where OCI runtimes keep the state of their containers; empty while it is not known."""

    def learn(self, process: ContainerProcess) -> None:
        """Where pid files are, from the monitor of a container that runs, if it is not known yet. Reads one file of
        /proc then."""
        if self._run_directory:
            return
        words = words_of_monitor(process.container_id, process.monitor_pid)
        if pid_file := monitor_option(words, "-p"):
            self._on_monitor(words)
            self._run_directory = _run_directory(pid_file)

    def at_infra(
        self, name: str, pod_id: str, pid_file: Path, labels: Mapping[str, str], *, host_network: bool
    ) -> InspectedContainer | None:
        """The infra container of that name, made and started with these, whose monitor has written ``pid_file``.

        Its date is that of the pid file that the monitor writes before Podman lets the process go. Podman notes the
        start some milliseconds later.

        None when its files do not tell, or are not ours to read (a service of another host, a pod with ids of its own):
        Podman has to be asked then. Reads ten small files.
        """
        found = _read(name, str(pid_file))
        if found is None:
            return None
        self._on_monitor(found.words)
        self._run_directory = _run_directory(found.pid_file)
        resolv_conf = next((mount.source for mount in found.config.mounts if mount.destination == RESOLV_CONF), "")
        return msgspec.structs.replace(
            found.container(pod_id, labels),
            is_infra=True,
            ips=() if host_network else addresses_of(found.pid),
            resolv_conf=resolv_conf,
        )

    def at_container(self, id: str, spec: SpecDict, image: ImageInfo) -> InspectedContainer | None:
        """The container of that id, made with that spec of that image, and started.

        None as for an infra container, where nobody knows yet where pid files are, and where Podman may have noted the
        start in another second than the OCI runtime has made it: a status has whole seconds, and must not change when
        somebody inspects the container later. Reads as many files.
        """
        if not self._run_directory:
            return None
        directory = f"{self._run_directory}/{id}/userdata"
        found = _read(spec["name"], f"{directory}/conmon.pid")
        if found is None or found.pid_file != f"{directory}/pidfile":
            return None
        state_directory = self._state_directory(found)
        if not found.config.annotations.seccomp_filter:  # else it is nothing that was compiled of the profile
            self._filters.learn(spec, image.id, state_directory)
        started_at = max(found.started_at, _let_go_at(state_directory))
        if int(started_at) != int(wall()):
            return None
        stop_signal = signal_name(found.config.annotations.stop_signal)
        if not stop_signal:
            return None
        root = found.config.root.path
        return msgspec.structs.replace(
            found.container(spec["pod"], {**image.labels, **spec["labels"]}),
            started_at=started_at,
            image=spec["image"],
            image_id=image.id,
            image_digest=image.digest,
            stop_signal=stop_signal,
            user=user_in(found.config),
            layer=os.path.join(os.path.dirname(root), WRITTEN) if os.path.basename(root) == MERGED else "",
        )

    def _state_directory(self, found: _Found) -> Path | None:
        """Directory in which crun and runc keep the container's state; None when it does not show. In which one all of
        these lie, every monitor of the service has in its environment."""
        runtime, container_id = os.path.basename(found.options.get("-r", "")), found.options.get("-c", "")
        if not runtime or not container_id:
            return None
        if not (self._runtime_root and os.path.exists(f"{self._runtime_root}/{runtime}/{container_id}")):
            # The first one, or of a service that was started anew elsewhere.
            self._runtime_root = procfs.variable(found.monitor_pid, "XDG_RUNTIME_DIR")
        return Path(self._runtime_root, runtime, container_id) if self._runtime_root else None


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """Findings in files of a container that runs."""

    words: list[str]
    """Command line of its monitor."""
    options: Mapping[str, str]
    """Options in it."""
    name: str
    monitor_pid: int
    pid_file: str
    """Pid file of the container's process, which the monitor writes, too."""
    pid: int
    start_ticks: int
    created_at: float
    started_at: float
    """Date of that file."""
    config_path: str
    config: RuntimeConfig

    def container(self, pod_id: str, labels: Mapping[str, str]) -> InspectedContainer:
        """Everything that is told of any container."""
        return InspectedContainer(
            id=self.options.get("-c", ""),
            name=self.name,
            pod_id=pod_id,
            is_infra=False,
            state="running",
            pid=self.pid,
            conmon_pid=self.monitor_pid,
            exit_code=0,
            oom_killed=False,
            error="",
            created_at=self.created_at,
            started_at=self.started_at,
            finished_at=0.0,
            image="",
            image_id="",
            labels=dict(labels),
            ips=(),
            log_path=self.options.get("-l", "").partition(":")[2],
            start_ticks=self.start_ticks,
            config_path=self.config_path,
        )


def _run_directory(pid_file: str) -> str:
    """DIRECTORY of a pid file DIRECTORY/ID/userdata/pidfile."""
    return pid_file.rsplit("/", 3)[0]


def _read(name: str, monitor_pid_file: str) -> _Found | None:
    """Findings about the container of that name, whose monitor has written that file; None when the files do not tell,
    or it does not run any more."""
    try:
        monitor_pid, _ = _dated_pid(monitor_pid_file)
        words = monitor_words(monitor_pid)
        "".join(words).encode()  # what is no Unicode travels in no message: a ValueError
        options = monitor_options(words)
        named = options.get("-n"), options.get("--conmon-pidfile")
        if named != (name, monitor_pid_file) or not has_our_root(monitor_pid):
            return None
        pid_file = options.get("-p", "")
        pid, started_at = _dated_pid(pid_file)
        bundle = options.get("-b", "")
        config_path = os.path.join(bundle, "config.json")
        config = read_config(config_path)
        created_at = _created_at(config, bundle)
    except (OSError, *UNDECODABLE):
        return None
    start_ticks = procfs.start_ticks_of_child(pid, monitor_pid)
    if not start_ticks:
        return None
    return _Found(
        words=words,
        options=options,
        name=name,
        monitor_pid=monitor_pid,
        pid_file=pid_file,
        pid=pid,
        start_ticks=start_ticks,
        created_at=created_at,
        started_at=started_at,
        config_path=config_path,
        config=config,
    )


def _let_go_at(state_directory: Path | None) -> float:
    """When the OCI runtime has let the container's process go; 0.0 when it does not show.

    In its directory of the container is a FIFO, for which the process waits from its making on. It is unlinked by the
    call that starts the container, a few milliseconds before Podman notes the start; the pid file is older by whatever
    lies between these two calls of the runtime, a third of a second on a busy host.
    """
    try:
        return state_directory.stat().st_mtime if state_directory is not None else 0.0
    except OSError:
        return 0.0


def _created_at(config: RuntimeConfig, bundle: str) -> float:
    """Podman's date; that of the directory which containers/storage makes some milliseconds later, if it has written
    none. Raises OSError, ValueError."""
    created = config.annotations.created
    return parse_rfc3339(created) if created else os.stat(os.path.dirname(bundle)).st_mtime


def _dated_pid(pid_file: str) -> tuple[int, float]:
    """Content and date. Raises OSError, ValueError."""
    with opened_regular_file(pid_file) as fd:
        return int(os.read(fd, MAX_PID_BYTES)), os.fstat(fd).st_mtime
