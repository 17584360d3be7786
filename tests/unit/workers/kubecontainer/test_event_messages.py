"""Words of events."""

from __future__ import annotations

import pytest

from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from workers.kubecontainer.event_messages import crash_loop_message, duration_to_the_ms


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0s"), (0.0009, "0s"), (0.3459, "345ms"), (1.5, "1.5s"), (60.2509, "1m0.25s"), (3600.001, "1h0m0.001s")],
)
def test_durations_are_cut_to_the_millisecond(seconds: float, text: str) -> None:
    assert duration_to_the_ms(seconds) == text


@pytest.mark.parametrize(("backoff_s", "text"), [(9.99, "10s"), (80.0, "1m20s"), (300.0, "5m0s")])
def test_a_back_off_is_told_in_seconds(backoff_s: float, text: str) -> None:
    pod = Pod(metadata=ObjectMeta(name="web", namespace="default", uid="u"), spec=PodSpec(containers=()))
    assert crash_loop_message(pod, "main", backoff_s) == (
        f"back-off {text} restarting failed container=main pod=web_default(u)"
    )
