"""Probe results on disk, so that a container that was ready stays ready over a restart of the agent.

Upstream finds them in the API, where the pod's status was reported (pkg/kubelet/prober/worker.go: no initial result
for a container that is older than the kubelet). Kept are successes only: a container whose liveness had failed when
the agent died is probed again. A new container has another id, so no result can be applied to the wrong one.

Format: one JSON object ``{"version", "verdicts": {container id: {"startup", "readiness"}}}``, replaced as a whole.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.atomic_file import UntrustedFile, replace_file
from ipc.host.clock import Clock
from ipc.host.private_directories import make_private
from ipc.host.state_file import usable_state
from ipc.k8s.kubecontainer.probe_results import NO_PROBE_RESULTS, ProbeResult, ProbeResults
from supervisor.state.throttled_saver import ThrottledSaver, Write

VERSION: Final = 1
"""Version of the format. Another version is not trusted, whatever it says."""
MAX_FILE_BYTES: Final = 16 << 20
"""Largest file that is read: that of 100,000 containers."""
WRITE_PERIOD_S: Final = 5.0
"""Readiness may change often; it is written no more often than this, in seconds, and when the agent ends."""

log = logging.getLogger(__name__)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    probe_results: dict[str, ProbeResults] = msgspec.field(name="verdicts")
    """Called ``verdicts`` in version 1 of the format."""


def worth_keeping(probe_results: Mapping[str, ProbeResults]) -> dict[str, ProbeResults]:
    """The successes of startup and readiness, by container id."""
    kept = {
        id: ProbeResults(startup=_success(said.startup), readiness=_success(said.readiness))
        for id, said in probe_results.items()
    }
    return {id: said for id, said in kept.items() if said != NO_PROBE_RESULTS}


def _success(result: ProbeResult) -> ProbeResult:
    return result if result is ProbeResult.SUCCESS else ProbeResult.UNKNOWN


def save(path: Path, probe_results: Mapping[str, ProbeResults]) -> None:
    """Replace the file, of which a power cut may leave the previous one: no container outlives that. Raises OSError;
    the previous file is whole then."""
    make_private(path.parent)
    replace_file(path, msgspec.json.encode(_File(VERSION, dict(probe_results))))


def load(path: Path) -> dict[str, ProbeResults]:
    """Results as they were saved; none without a file, or with one that cannot be used: that is logged."""
    return usable_state(path, MAX_FILE_BYTES, _decode, "results of probes", log) or {}


def _decode(data: bytes) -> dict[str, ProbeResults]:
    file = msgspec.json.decode(data, type=_File)
    if file.version != VERSION:
        raise UntrustedFile(f"it is of version {file.version}, not {VERSION}")
    return worth_keeping(file.probe_results)


class ProbeCheckpoint:
    """When the file is written (`supervisor.state.throttled_saver`)."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._saver = ThrottledSaver[dict[str, ProbeResults]](
            "results of probes", {}, clock, log, period_s=WRITE_PERIOD_S
        )

    def restore(self) -> dict[str, ProbeResults]:
        """Results that an earlier run of the agent has saved."""
        self._saver.restored(load(self._path))
        return self._saver.written

    def keep(self, probe_results: Callable[[], Mapping[str, ProbeResults]]) -> None:
        """Write what is new. To be called every second; ``probe_results`` returns all that is known."""
        self._saver.keep(lambda: worth_keeping(probe_results()), self._write)

    def write_again(self) -> None:
        """The file has gone away: the next `keep` writes it."""
        self._saver.write_again()

    async def close(self, probe_results: Mapping[str, ProbeResults]) -> None:
        """Write the last ones, if the disk takes them in time."""
        await self._saver.close(lambda: worth_keeping(probe_results), self._write)

    async def settled(self) -> None:
        """Wait for the end of the write that is under way."""
        await self._saver.settled()

    def _write(self, kept: dict[str, ProbeResults]) -> Write:
        return functools.partial(save, self._path, kept)
