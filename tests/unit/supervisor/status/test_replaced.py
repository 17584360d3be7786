"""Containers that ended because their manifest changed are not done."""

from __future__ import annotations

import msgspec
import pytest

from ipc.k8s.api.pod_containers import ContainerKind
from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.kubecontainer.hashing import container_hash, sandbox_hash
from ipc.k8s.kubecontainer.pod_status import (
    ContainerState,
    RuntimeContainerStatus,
    RuntimePodStatus,
    SandboxState,
    SandboxStatus,
)
from supervisor.status.replaced import replaced_containers

MAIN = Container(name="main", image="v1")
POD = Pod(
    metadata=ObjectMeta(name="p", namespace="default", uid="u"), spec=PodSpec(containers=(MAIN,), hostname="first")
)
EDITED = msgspec.structs.replace(
    POD, spec=msgspec.structs.replace(POD.spec, containers=(Container(name="main", image="v2"),))
)
RENAMED = msgspec.structs.replace(POD, spec=msgspec.structs.replace(POD.spec, hostname="second"))


def seen(
    state: ContainerState, *, sandbox: SandboxState = SandboxState.READY, newer_sandbox: Pod | None = None
) -> RuntimePodStatus:
    """Observation of what was made of POD, perhaps with a sandbox above it that was made of an edited one."""
    first = SandboxStatus(id="s0", name="s", infra_id="i", attempt=0, state=sandbox, hash=sandbox_hash(POD))
    sandboxes: tuple[SandboxStatus, ...] = (first,)
    if newer_sandbox is not None:
        down = msgspec.structs.replace(first, state=SandboxState.NOT_READY)
        newest = msgspec.structs.replace(first, id="s1", attempt=1, hash=sandbox_hash(newer_sandbox))
        sandboxes = (newest, down)
    main = RuntimeContainerStatus(
        id="c", name="main", attempt=0, state=state, sandbox_id="s0", hash=container_hash(MAIN, ContainerKind.REGULAR)
    )
    return RuntimePodStatus(uid="u", sandboxes=sandboxes, containers=(main,))


def names(wanted: Pod, observed: RuntimePodStatus, *, was_observed_before: bool) -> frozenset[str]:
    """On a host where cpu can be changed in place, and memory cannot."""
    return replaced_containers(wanted, observed, {}, frozenset({"cpu"}), was_observed_before=was_observed_before)


EXITED = ContainerState.EXITED


@pytest.mark.parametrize(
    ("wanted", "observed", "replaced"),
    [
        (POD, seen(EXITED), False),
        (EDITED, seen(EXITED), True),
        (EDITED, seen(ContainerState.RUNNING), False),
        (EDITED, seen(EXITED, sandbox=SandboxState.NOT_READY), False),
        (RENAMED, seen(EXITED), True),
        (RENAMED, seen(EXITED, sandbox=SandboxState.NOT_READY), True),
        (RENAMED, seen(EXITED, newer_sandbox=RENAMED), True),
        (POD, seen(EXITED, newer_sandbox=POD), False),
        (POD, RuntimePodStatus(uid="u"), False),
    ],
)
def test_what_ended_for_the_manifest_s_sake_starts_again(
    wanted: Pod, observed: RuntimePodStatus, replaced: bool
) -> None:
    assert names(wanted, observed, was_observed_before=True) == ({"main"} if replaced else set())


def test_what_was_done_before_this_agent_began_does_not_run_again() -> None:
    """The pod's sandbox was stopped when it was done, and its manifest edited since."""
    done = seen(EXITED, sandbox=SandboxState.NOT_READY)
    assert names(RENAMED, done, was_observed_before=False) == set()


@pytest.mark.parametrize(("resource", "is_replaced"), [("cpu", False), ("memory", True)])
def test_what_ended_for_its_resources_starts_again_where_they_need_another_container(
    resource: str, is_replaced: bool
) -> None:
    def asking(amount: str) -> Container:
        resources = ResourceRequirements(requests={"cpu": "1", "memory": "1", resource: amount})
        return Container(name="main", image="v1", resources=resources)

    of = msgspec.structs.replace(POD, spec=msgspec.structs.replace(POD.spec, containers=(asking("2"),)))
    made = msgspec.structs.replace(seen(EXITED).containers[0], resources=asking("3").resources)
    observed = msgspec.structs.replace(seen(EXITED), containers=(made,))
    assert names(of, observed, was_observed_before=True) == ({"main"} if is_replaced else set())
