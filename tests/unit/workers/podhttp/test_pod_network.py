"""From what was observed to where a pod is reached."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus, SandboxState, SandboxStatus
from tests.support.pods import observed, pod, sandbox
from workers.podhttp.pod_network import NOWHERE, PodNetwork, pod_network

HOST_IP = "192.0.2.7"
OF = pod("main")
RUNS: dict[str, Any] = {"infra_pid": 4711, "infra_start_ticks": 99}


def seen(*sandboxes: SandboxStatus) -> RuntimePodStatus:
    return observed(OF, sandboxes=sandboxes)


@pytest.mark.parametrize(
    ("sandboxes", "network"),
    [
        pytest.param((sandbox(OF, **RUNS),), PodNetwork(**RUNS), id="slirp4netns and pasta tell no address"),
        pytest.param(
            (sandbox(OF, ips=("10.88.0.4", "fd00::4"), **RUNS),), PodNetwork(ip="10.88.0.4", **RUNS), id="a bridge does"
        ),
        pytest.param((sandbox(OF, host_network=True, **RUNS),), PodNetwork(ip=HOST_IP), id="the host's network"),
        pytest.param((), NOWHERE, id="no sandbox"),
        pytest.param((sandbox(OF, state=SandboxState.NOT_READY),), NOWHERE, id="it has ended"),
        pytest.param((sandbox(OF, state=SandboxState.NOT_READY, host_network=True),), NOWHERE, id="that has, too"),
        pytest.param((sandbox(OF),), NOWHERE, id="Podman says that it runs, and no process is there"),
        pytest.param((sandbox(OF, infra_pid=4711),), NOWHERE, id="nobody knows which process it is"),
        pytest.param(
            (sandbox(OF, 1, state=SandboxState.NOT_READY), sandbox(OF, 0, **RUNS)),
            PodNetwork(**RUNS),
            id="the newest that runs",
        ),
        pytest.param(
            (sandbox(OF, 1, infra_pid=5, infra_start_ticks=6), sandbox(OF, 0, **RUNS)),
            PodNetwork(infra_pid=5, infra_start_ticks=6),
            id="the newest of two",
        ),
    ],
)
def test_where_a_pod_is_reached(sandboxes: tuple[SandboxStatus, ...], network: PodNetwork) -> None:
    assert pod_network(seen(*sandboxes), (HOST_IP,)) == network
