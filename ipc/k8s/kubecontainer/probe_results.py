"""Probe results of a container: reported by the workers that probe, kept by the master, used for decisions in both."""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.probe import Probe


class ProbeType(enum.StrEnum):
    """pkg/kubelet/prober/prober_manager.go, probeType."""

    STARTUP = "startup"
    LIVENESS = "liveness"
    READINESS = "readiness"


class ProbeResult(enum.StrEnum):
    """pkg/kubelet/prober/results/results_manager.go, Result. No result yet is ``UNKNOWN`` too."""

    UNKNOWN = "unknown"
    SUCCESS = "success"
    FAILURE = "failure"


class ProbeResults(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Results of one container's probes, as they were when their thresholds were reached."""

    startup: ProbeResult = ProbeResult.UNKNOWN
    liveness: ProbeResult = ProbeResult.UNKNOWN
    readiness: ProbeResult = ProbeResult.UNKNOWN

    def of(self, probe: ProbeType) -> ProbeResult:
        """One of the three."""
        return {
            ProbeType.STARTUP: self.startup,
            ProbeType.LIVENESS: self.liveness,
            ProbeType.READINESS: self.readiness,
        }[probe]

    def changed(self, probe: ProbeType, result: ProbeResult) -> ProbeResults:
        """Results with another one of one probe."""
        return msgspec.structs.replace(self, **{probe.value: result})

    def has_started(self, container: Container) -> bool:
        """Whether a running container has started: its other probes may begin, and all that waits for it."""
        return container.startup_probe is None or self.startup is ProbeResult.SUCCESS


NO_PROBE_RESULTS: Final = ProbeResults()


def probes_of(container: Container) -> dict[ProbeType, Probe]:
    """Probes that the container's manifest has, by type."""
    probes = {
        ProbeType.STARTUP: container.startup_probe,
        ProbeType.LIVENESS: container.liveness_probe,
        ProbeType.READINESS: container.readiness_probe,
    }
    return {kind: probe for kind, probe in probes.items() if probe is not None}
