"""Starts of sandboxes and containers, and calls of the runtime, as they are counted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ipc.k8s.api.decode import decode_pod
from ipc.link.messages.pod_worker import SyncAction, SyncPod, WorkType
from ipc.link.messages.sync_error import SyncError
from ipc.link.metrics import kubelet
from ipc.link.metrics.model import Metric
from ipc.link.shm.metric_cells import METERS
from tests.fakes.clock import SimClock, simulated
from tests.fakes.podman import FakePodman
from tests.fakes.runtime import FakeRuntime
from workers.kubecontainer.runtime import RuntimeCallError
from workers.sync.record import SyncRecord
from workers.sync.traced_runtime import traced

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default", "uid": "uid-web"},
    "spec": {
        "initContainers": [{"name": "prepare", "image": "busybox"}],
        "containers": [{"name": "app", "image": "busybox"}],
    },
}


@pytest.fixture(autouse=True)
def _from_zero() -> Iterator[None]:
    METERS.detach()
    yield
    METERS.detach()


def record(**spec: object) -> SyncRecord:
    pod = decode_pod({**POD, "spec": {**POD["spec"], **spec}})  # type: ignore[dict-item]
    return SyncRecord(
        SyncPod(uid="uid-web", generation=1, incarnation=1, kind=WorkType.SYNC, pod=pod, row=0, min_observed_at=0.0)
    )


def counts(metric: Metric, *values: str) -> float:
    return METERS.value(metric, *values)


def test_containers_by_type() -> None:
    made = record()
    made.succeeded(SyncAction.START_CONTAINER, "prepare")
    made.succeeded(SyncAction.START_CONTAINER, "app")
    made.failed(SyncAction.START_CONTAINER, "app", SyncError.IMAGE_PULL, "no such image")
    assert counts(kubelet.STARTED_CONTAINERS, "init_container") == 1.0
    assert counts(kubelet.STARTED_CONTAINERS, "container") == 2.0
    assert counts(kubelet.STARTED_CONTAINERS_ERRORS, "container", "ErrImagePull") == 1.0


def test_a_container_that_waits_is_not_being_started() -> None:
    record().failed(SyncAction.START_CONTAINER, "app", SyncError.CRASH_LOOP_BACK_OFF, "back-off 10s")
    assert counts(kubelet.STARTED_CONTAINERS, "container") == 0.0


def test_an_error_of_another_kind_is_counted_too() -> None:
    record().failed(SyncAction.START_CONTAINER, "app", SyncError.TIMEOUT, "too late")
    assert counts(kubelet.STARTED_CONTAINERS_ERRORS, "container", "other") == 1.0


@pytest.mark.parametrize(("spec", "own_namespace"), [({}, 0.0), ({"hostUsers": False}, 1.0)])
def test_sandboxes(spec: dict[str, object], own_namespace: float) -> None:
    made = record(**spec)
    made.succeeded(SyncAction.CREATE_SANDBOX, "web")
    assert counts(kubelet.STARTED_PODS) == 1.0
    assert counts(kubelet.STARTED_PODS_ERRORS) == 0.0
    assert counts(kubelet.STARTED_USER_NAMESPACED_PODS) == own_namespace
    made.failed(SyncAction.CREATE_SANDBOX, "web", SyncError.CREATE_POD_SANDBOX, "no")
    assert (counts(kubelet.STARTED_PODS), counts(kubelet.STARTED_PODS_ERRORS)) == (2.0, 1.0)


def test_what_is_neither_is_not_counted() -> None:
    record().succeeded(SyncAction.KILL_CONTAINER, "app")
    assert counts(kubelet.STARTED_CONTAINERS, "container") == 0.0


@simulated
async def test_calls_of_the_runtime() -> None:
    runtime = traced(FakeRuntime(FakePodman(SimClock()), "one"))
    await runtime.version()
    await runtime.version()
    with pytest.raises(RuntimeCallError):
        await runtime.inspect_container("nobody")
    with pytest.raises(RuntimeCallError):
        await runtime.create_container({"name": "app", "image": "absent"})
    assert counts(kubelet.RUNTIME_OPERATIONS_TOTAL, "version") == 2.0
    assert counts(kubelet.RUNTIME_OPERATIONS_DURATION, "version") == 2.0
    assert counts(kubelet.RUNTIME_OPERATIONS_TOTAL, "container_status") == 1.0
    assert counts(kubelet.RUNTIME_OPERATIONS_ERRORS, "container_status") == 0.0, "that it is not there is an answer"
    assert counts(kubelet.RUNTIME_OPERATIONS_ERRORS, "create_container") == 1.0


def test_every_verb_that_is_counted_exists() -> None:
    assert [verb for verb in kubelet.RUNTIME_OPERATIONS if not hasattr(FakeRuntime, verb)] == []
