"""Slices of this user's systemd, by busctl(1), which is there wherever systemd is. Every call has a deadline.

Looks need no systemd: they read the cgroup file system. A slice that is stopped takes its processes with it, and one
that is not there is made by systemd itself, without limits, as soon as something is put into it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ipc.host.clock import monotonic
from ipc.k8s.podresources.cgroup_config import NO_LIMIT, CgroupConfig, shares_to_weight
from ipc.k8s.podresources.node_resources import PodCgroups
from ipc.k8s.podresources.pod_cgroups import (
    BEST_EFFORT,
    BURSTABLE,
    POD_PREFIX,
    CgroupName,
    pod_slice_uid,
    root_name,
    slice_directory,
    systemd_basename,
    uid_in_name,
)
from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.kubecontainer.slices import CgroupReading
from workers.proc import cgroups

DEADLINE_S: Final = 10.0
"""Deadline of one call, in seconds."""
_SERVICE: Final = "org.freedesktop.systemd1"
_MANAGER: Final = ("/org/freedesktop/systemd1", f"{_SERVICE}.Manager")
_COMMAND: Final = ("busctl", "--user", "--quiet", f"--timeout={DEADLINE_S:g}", "call", _SERVICE, *_MANAGER)
_IF_THERE: Final = "replace"
"""Mode of a job: it takes the place of one that waits (org.freedesktop.systemd1(5))."""
_SUFFIX: Final = ".slice"


class UserSlices:
    """The slices of one agent. Holds nothing: systemd and the kernel do."""

    def __init__(self, pod_cgroups: PodCgroups) -> None:
        self._of = pod_cgroups

    def exists(self, name: str) -> bool:
        return os.path.isdir(slice_directory(self._of, name))

    def read(self, name: str) -> CgroupReading:
        """Limits, weight and use; nothing is known of a slice that is not there."""
        return cgroups.read_cgroup(slice_directory(self._of, name))

    def is_populated(self, name: str) -> bool:
        """Whether a process is in it or below."""
        try:
            words = Path(slice_directory(self._of, name), "cgroup.events").read_text().split()
        except OSError:
            return False
        return words[words.index("populated") + 1 :][:1] == ["1"] if "populated" in words else False

    def pods(self) -> tuple[str, ...]:
        """Slices of pods, of all QoS classes. Raises OSError."""
        root = root_name(self._of)
        parents = (root, (*root, BURSTABLE), (*root, BEST_EFFORT))
        return tuple(name for parent in parents for name in self._below(parent) if pod_slice_uid(name, self._of))

    def _below(self, parent: CgroupName) -> Iterator[str]:
        try:
            with os.scandir(slice_directory(self._of, systemd_basename(parent))) as entries:
                yield from [entry.name for entry in entries if entry.name.endswith(_SUFFIX)]
        except FileNotFoundError:
            return

    def directory_of(self, uid: str) -> str:
        if not self._of.directory:
            return ""
        root, pod = root_name(self._of), POD_PREFIX + uid_in_name(uid)
        names = (systemd_basename((*root, *qos, pod)) for qos in ((), (BURSTABLE,), (BEST_EFFORT,)))
        return next((slice_directory(self._of, name) for name in names if self.exists(name)), "")

    async def start(self, name: str, config: CgroupConfig) -> None:
        """Make the slice with these values, or give them to the one that is there. Raises RuntimeCallError."""
        properties, is_there = slice_properties(config), self.exists(name)
        with _measured("update" if is_there else "create"):
            if not is_there:
                problem = await _try("StartTransientUnit", "ssa(sv)a(sa(sv))", name, _IF_THERE, *properties, "0")
                if not problem:
                    return
                # A slice may be there without a cgroup: stopped a moment ago, or its cgroup was removed under it.
                await _call("StartUnit", "ss", name, _IF_THERE)
            await _call("SetUnitProperties", "sba(sv)", name, "true", *properties)

    async def stop(self, name: str) -> None:
        """End the slice and what is in it. None of that name is success. Raises RuntimeCallError."""
        with _measured("destroy"):
            await _call("StopUnit", "ss", name, _IF_THERE)


@contextlib.contextmanager
def _measured(operation: str) -> Iterator[None]:
    began = monotonic()
    try:
        yield
    finally:
        METERS.histogram(metrics.CGROUP_MANAGER_DURATION, operation).observe(monotonic() - began)


async def _call(method: str, *arguments: str) -> None:
    """Raises RuntimeCallError."""
    if problem := await _try(method, *arguments):
        raise RuntimeCallError(ErrorKind.INTERNAL, f"systemd {method} {arguments[1]}", problem)


async def _try(method: str, *arguments: str) -> str:
    """Error of systemd; empty when the call is done. Raises RuntimeCallError where it does not answer."""
    return await asyncio.to_thread(_run, method, arguments)


def _run(method: str, arguments: tuple[str, ...]) -> str:
    call = f"systemd {method} {arguments[1]}"
    try:
        done = subprocess.run(
            (*_COMMAND, method, *arguments),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeCallError(ErrorKind.TIMEOUT, call, f"no answer within {DEADLINE_S:g} s") from error
    except OSError as error:
        raise RuntimeCallError(ErrorKind.INTERNAL, call, f"busctl: {error.strerror or error}") from error
    lines = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else (lines[-1] if lines else f"exit code {done.returncode}")


NO_MAXIMUM: Final = (1 << 64) - 1
"""systemd's *infinity*."""
_US_PER_S: Final = 1_000_000


def slice_properties(config: CgroupConfig) -> tuple[str, ...]:
    """Properties of a slice as busctl(1) takes them, from the values of its cgroup (systemd.resource-control(5)).

    The array has its length before it; those of which the config says nothing are absent. Upstream gets them by
    libcontainer's systemd driver (pkg/kubelet/cm/cgroup_manager_linux.go, toResources).
    """
    found = [("t", name, number) for name, number in _numbers(config)]
    return (str(len(found)), *(word for kind, name, number in found for word in (name, kind, str(number))))


def _numbers(config: CgroupConfig) -> Iterator[tuple[str, int]]:
    if config.cpu_shares is not None:
        yield "CPUWeight", shares_to_weight(config.cpu_shares)
    if config.cpu_quota is not None and config.cpu_period:
        is_limited = config.cpu_quota != NO_LIMIT
        yield "CPUQuotaPeriodUSec", config.cpu_period
        yield "CPUQuotaPerSecUSec", config.cpu_quota * _US_PER_S // config.cpu_period if is_limited else NO_MAXIMUM
    if config.memory is not None:
        yield "MemoryMax", config.memory if config.memory != NO_LIMIT else NO_MAXIMUM
    if config.pids_limit is not None:
        yield "TasksMax", config.pids_limit
