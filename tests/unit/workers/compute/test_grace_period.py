"""How long a container gets to stop, beside upstream's table."""

from __future__ import annotations

import msgspec
import pytest

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.probe import Probe
from tests.support.pods import container, pod
from workers.compute.grace_period import KillReason, signal_window_s, termination_grace_s


@pytest.mark.parametrize(("grace_period_s", "window_s"), [(30, 30), (1, 2), (0, 2)])
def test_nobody_gets_less_than_the_minimum(grace_period_s: int, window_s: int) -> None:
    assert signal_window_s(grace_period_s, 0.0) == window_s


@pytest.mark.parametrize(
    ("grace_period_s", "spent_s", "left_s"), [(30, 0.0, 30), (30, 12.5, 17.5), (30, 29.0, 2), (5, 60.0, 2), (0, 0.0, 2)]
)
def test_what_was_spent_before_the_signal_is_taken_from_the_window(
    grace_period_s: int, spent_s: float, left_s: float
) -> None:
    assert signal_window_s(grace_period_s, spent_s) == left_s


def deleted(of: Pod, grace_period_s: int) -> Pod:
    metadata = msgspec.structs.replace(of.metadata, deletion_grace_period_seconds=grace_period_s)
    return msgspec.structs.replace(of, metadata=metadata)


def test_the_deletion_decides_before_the_probe_and_the_spec() -> None:
    probed = container("a", liveness_probe=Probe(termination_grace_period_seconds=10))
    of = pod(probed)
    assert termination_grace_s(of, probed, KillReason.LIVENESS_PROBE) == 10
    assert termination_grace_s(deleted(of, 4), probed, KillReason.LIVENESS_PROBE) == 4


def test_a_container_that_the_manifest_lost_gets_the_pods() -> None:
    assert termination_grace_s(pod("a"), None, KillReason.LIVENESS_PROBE) == 30
