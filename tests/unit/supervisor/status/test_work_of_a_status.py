"""A status is work in proportion to its pod, whatever a manifest has much of: eight times the pod is eight times the
lines of code that run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import pytest

from ipc.host.clock import Instant
from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.kubecontainer.pod_status import (
    ContainerState,
    RuntimeContainerStatus,
    RuntimePodStatus,
    SandboxState,
    SandboxStatus,
)
from supervisor.status.generate import StatusInput, generate_pod_status
from tests.support.work import work_of

FEW: Final = 30
TIMES: Final = 8
MAX_GROWTH: Final = 2 * TIMES
"""Linear work has 8, quadratic work 64."""
SANDBOX: Final = SandboxStatus(id="s", name="s", infra_id="i", attempt=0, state=SandboxState.READY)

Containers = tuple[Container, ...]


def containers(number: int, prefix: str = "c") -> Containers:
    return tuple(Container(name=f"{prefix}{index}", image="i") for index in range(number))


def with_names(number: int, each: int, prefix: str = "c", policy: str | None = None) -> Containers:
    """Each container asks for resources that no other one asks for."""
    return tuple(
        Container(
            name=f"{prefix}{index}",
            image="i",
            resources=ResourceRequirements(
                limits={f"a.io/{prefix}{index}-{place}": "1" for place in range(each)},
                requests={f"a.io/{prefix}{index}-{place}": "1" for place in range(each)},
            ),
            restart_policy=policy,  # type: ignore[arg-type]
        )
        for index in range(number)
    )


def pod_of(regular: Containers, inits: Containers = ()) -> Pod:
    return Pod(metadata=ObjectMeta(name="p", uid="u"), spec=PodSpec(containers=regular, init_containers=inits))


POD_OF: Final[dict[str, Callable[[int], Pod]]] = {
    "resource names of one container": lambda n: pod_of(with_names(1, n)),
    "resource names of many containers": lambda n: pod_of(with_names(n, 2)),
    "resource names of init containers": lambda n: pod_of(containers(1), with_names(n, 2, "i")),
    "resource names of sidecars": lambda n: pod_of(containers(1), with_names(n, 2, "s", "Always")),
    "containers": lambda n: pod_of(containers(n)),
    "init containers": lambda n: pod_of(containers(1), containers(n, "i")),
    "both": lambda n: pod_of(containers(n), containers(n, "i")),
}


def nothing_of(_pod: Pod) -> RuntimePodStatus:
    return RuntimePodStatus(uid="u", observed_at=1.0)


def ended(pod: Pod, attempts: int = 1) -> RuntimePodStatus:
    names = [container.name for container in (*pod.spec.init_containers, *pod.spec.containers)]
    found = tuple(
        RuntimeContainerStatus(
            id=f"{name}-{attempt}", name=name, attempt=attempt, state=ContainerState.EXITED, exit_code=1, sandbox_id="s"
        )
        for name in names
        for attempt in reversed(range(attempts))
    )
    return RuntimePodStatus(uid="u", observed_at=1.0, sandboxes=(SANDBOX,), containers=found)


def inits_gone(pod: Pod) -> RuntimePodStatus:
    """Only what has begun last is left."""
    seen = ended(pod)
    return RuntimePodStatus(uid="u", observed_at=1.0, sandboxes=(SANDBOX,), containers=seen.containers[-1:])


def make_status(pod: Pod, observed: RuntimePodStatus) -> None:
    first = generate_pod_status(StatusInput(pod=pod, observed=observed, reasons={}, previous=None), Instant(1.0, 1e9))
    generate_pod_status(StatusInput(pod=pod, observed=observed, reasons={}, previous=first), Instant(2.0, 1e9))


@pytest.mark.parametrize("observed_of", [nothing_of, ended, partial(ended, attempts=3), inits_gone])
@pytest.mark.parametrize("name", POD_OF)
def test_the_work_grows_with_the_pod(name: str, observed_of: Callable[[Pod], RuntimePodStatus]) -> None:
    few, many = POD_OF[name](FEW), POD_OF[name](TIMES * FEW)
    works = [work_of(partial(make_status, pod, observed_of(pod))) for pod in (few, many)]
    assert works[1] <= MAX_GROWTH * works[0], works
