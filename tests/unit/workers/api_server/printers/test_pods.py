"""Rows of pods: what one line says of everything that their containers do."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.host.clock import rfc3339
from workers.api_server.printers.pods import pod_row, summarize_pod

NOW = 1_700_000_000.0


# --- the STATUS column ---------------------------------------------------------------------------------------------


def container(name: str = "app", ready: bool = False, **fields: Any) -> dict[str, Any]:
    return {"name": name, "ready": ready, "restartCount": 0, "state": {}} | fields


def waiting(reason: str) -> dict[str, Any]:
    return {"waiting": {"reason": reason}}


def ended(code: int = 0, reason: str = "", at: float = 0.0, signal: int = 0) -> dict[str, Any]:
    terminated = {"exitCode": code, "signal": signal} | ({"reason": reason} if reason else {})
    return {"terminated": terminated | ({"finishedAt": rfc3339(at)} if at else {})}


RUNNING: dict[str, Any] = {"running": {}}
READY = container(ready=True, state=RUNNING)
DONE = container(state=ended(0, "Completed"))
FAILED = container(state=ended(1, "Error"))
CRASHING = container("b", state=waiting("CrashLoopBackOff"))
IS_READY = [{"type": "Ready", "status": "True"}]


def pod(*, containers: int = 1, init: tuple[str, ...] = (), meta: dict[str, Any] | None = None, **status: Any) -> Any:
    """``init`` names init containers; a trailing * marks a restartable one."""
    inits = [{"name": n.rstrip("*")} | ({"restartPolicy": "Always"} if n.endswith("*") else {}) for n in init]
    return {
        "metadata": {"name": "web", "creationTimestamp": rfc3339(NOW - 60)} | (meta or {}),
        "spec": {"containers": [{"name": f"c{n}"} for n in range(containers)], "initContainers": inits},
        "status": status,
    }


DELETED = {"deletionTimestamp": rfc3339(NOW)}


@pytest.mark.parametrize(
    ("found", "ready", "reason"),
    [
        (pod(phase="Pending"), "0/1", "Pending"),
        (pod(phase="Failed", reason="Evicted"), "0/1", "Evicted"),
        (pod(phase="Running", containerStatuses=[READY]), "1/1", "Running"),
        (pod(phase="Running", containers=2, containerStatuses=[READY, container(state=RUNNING)]), "1/2", "Running"),
        (pod(phase="Pending", containerStatuses=[container(state=waiting("ErrImagePull"))]), "0/1", "ErrImagePull"),
        (pod(phase="Running", containerStatuses=[container(state=ended(0, "Completed"))]), "0/1", "Completed"),
        (pod(phase="Failed", containerStatuses=[container(state=ended(3))]), "0/1", "ExitCode:3"),
        (pod(phase="Failed", containerStatuses=[container(state=ended(137, signal=9))]), "0/1", "Signal:9"),
        (
            pod(phase="Running", containerStatuses=[container(state=waiting("A")), container(state=ended(1, "B"))]),
            "0/1",
            "A",
        ),
        # Completed beside one that runs.
        (
            pod(
                phase="Running", conditions=IS_READY, containerStatuses=[container(state=ended(0, "Completed")), READY]
            ),
            "1/1",
            "Running",
        ),
        (pod(phase="Running", containerStatuses=[container(state=ended(0, "Completed")), READY]), "1/1", "NotReady"),
        # A failure counts more than what is done, the first of it, but not more than a pod that is Ready.
        (pod(phase="Failed", containers=2, containerStatuses=[DONE, FAILED]), "0/2", "Error"),
        (
            pod(phase="Failed", containers=3, containerStatuses=[DONE, container(state=ended(3)), FAILED]),
            "0/3",
            "ExitCode:3",
        ),
        (pod(phase="Running", containers=3, containerStatuses=[DONE, FAILED, READY]), "1/3", "Error"),
        (
            pod(phase="Running", conditions=IS_READY, containers=3, containerStatuses=[DONE, FAILED, READY]),
            "1/3",
            "Running",
        ),
        (pod(phase="Running", containers=2, containerStatuses=[FAILED, READY]), "1/2", "Error"),
        (pod(phase="Running", containers=2, containerStatuses=[READY, CRASHING]), "1/2", "CrashLoopBackOff"),
        (pod(phase="Succeeded", containers=2, containerStatuses=[DONE, DONE]), "0/2", "Completed"),
        # On the way out.
        (pod(phase="Running", meta=DELETED, containerStatuses=[READY]), "1/1", "Terminating"),
        (pod(phase="Running", meta=DELETED, reason="NodeLost"), "0/1", "Unknown"),
        (pod(phase="Succeeded", meta=DELETED), "0/1", "Succeeded"),
        # Init containers.
        (
            pod(phase="Pending", init=("a", "b"), initContainerStatuses=[container("a", state=RUNNING)]),
            "0/1",
            "Init:0/2",
        ),
        (
            pod(
                phase="Pending",
                init=("a", "b"),
                initContainerStatuses=[container("a", state=ended()), container("b", state=waiting("PodInitializing"))],
            ),
            "0/1",
            "Init:1/2",
        ),
        (
            pod(
                phase="Pending", init=("a",), initContainerStatuses=[container("a", state=waiting("ImagePullBackOff"))]
            ),
            "0/1",
            "Init:ImagePullBackOff",
        ),
        (
            pod(phase="Pending", init=("a",), initContainerStatuses=[container("a", state=ended(2))]),
            "0/1",
            "Init:ExitCode:2",
        ),
        (
            pod(phase="Pending", init=("a",), initContainerStatuses=[container("a", state=ended(1, "Error"))]),
            "0/1",
            "Init:Error",
        ),
        (
            pod(phase="Failed", init=("a",), initContainerStatuses=[container("a", state=ended(137, signal=9))]),
            "0/1",
            "Init:Signal:9",
        ),
        (
            pod(phase="Pending", init=("a", "b"), initContainerStatuses=[container("a", state=ended()), CRASHING]),
            "0/1",
            "Init:CrashLoopBackOff",
        ),
        # All of them are done, and the rest waits for its turn.
        (
            pod(
                phase="Pending",
                init=("a",),
                initContainerStatuses=[container("a", state=ended())],
                containerStatuses=[container(state=waiting("PodInitializing"))],
            ),
            "0/1",
            "PodInitializing",
        ),
        # An initialized pod whose init container is run again says both, as kubectl does.
        (
            pod(
                phase="Running",
                init=("a",),
                conditions=[{"type": "Initialized", "status": "True"}],
                initContainerStatuses=[container("a", state=RUNNING)],
                containerStatuses=[READY],
            ),
            "1/1",
            "Init:0/1",
        ),
        # A sidecar holds up what comes after it until it has started, ready or not.
        (
            pod(
                phase="Pending", init=("s*", "b"), initContainerStatuses=[container("s", state=RUNNING, started=False)]
            ),
            "0/2",
            "Init:0/2",
        ),
        (
            pod(
                phase="Pending",
                init=("s*", "b"),
                initContainerStatuses=[container("s", state=RUNNING, started=True), container("b", state=RUNNING)],
            ),
            "0/2",
            "Init:1/2",
        ),
        (
            pod(
                phase="Pending",
                init=("s*", "b"),
                initContainerStatuses=[
                    container("s", True, state=RUNNING, started=True),
                    container("b", state=RUNNING),
                ],
            ),
            "1/2",
            "Init:1/2",
        ),
        # A sidecar that ended is not ready; the pod goes on.
        (
            pod(
                phase="Succeeded",
                init=("s*",),
                initContainerStatuses=[container("s", state=ended(0, "Completed"))],
                containerStatuses=[DONE],
            ),
            "0/2",
            "Completed",
        ),
        # A sidecar counts as a container.
        (
            pod(
                phase="Running",
                init=("s*",),
                initContainerStatuses=[container("s", ready=True, started=True, state=RUNNING)],
                containerStatuses=[READY],
            ),
            "2/2",
            "Running",
        ),
        (
            pod(phase="Pending", conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]),
            "0/1",
            "SchedulingGated",
        ),
    ],
)
def test_status_and_ready(found: Any, ready: str, reason: str) -> None:
    assert tuple(pod_row(found, NOW)[:3]) == ("web", ready, reason)


@pytest.mark.parametrize(
    ("found", "restarts"),
    [
        (pod(containerStatuses=[container(restartCount=3)]), "3"),
        (pod(containerStatuses=[container(restartCount=3, lastState=ended(1, at=NOW - 10))]), "3 (10s ago)"),
        (
            pod(
                containerStatuses=[
                    container(restartCount=1, lastState=ended(1, at=NOW - 300)),
                    container(restartCount=2, lastState=ended(1, at=NOW - 20)),
                ]
            ),
            "3 (20s ago)",
        ),
        # While initializing only init containers count, afterwards only restartable ones do.
        (
            pod(init=("a",), initContainerStatuses=[container("a", restartCount=4, state=RUNNING)]),
            "4",
        ),
        (
            pod(
                init=("a", "s*"),
                initContainerStatuses=[
                    container("a", restartCount=4, state=ended()),
                    container("s", restartCount=1, started=True, state=RUNNING),
                ],
                containerStatuses=[container(restartCount=2)],
            ),
            "3",
        ),
    ],
)
def test_restarts(found: Any, restarts: str) -> None:
    assert pod_row(found, NOW)[3] == restarts


def test_a_bare_object_is_shown_all_the_same() -> None:
    assert pod_row({"metadata": {"name": "x"}}, NOW) == ("x", "0/0", "", "0", "<unknown>", *["<none>"] * 6)
    gated = pod(phase="Running", podIPs=[{"ip": "10.0.0.1"}], conditions=[{"type": "a/b", "status": "True"}])
    gated["spec"] |= {"nodeName": "n", "readinessGates": [{"conditionType": "a/b"}, {"conditionType": "c/d"}]}
    assert pod_row(gated, NOW)[5:] == ("10.0.0.1", "n", "<none>", "1/2", "<none>", "<none>")
    assert summarize_pod(gated).total == 1


def test_what_leads_to_a_pod_from_outside_it() -> None:
    """Every pod has the same address where slirp4netns makes its network: it leads nowhere."""
    found = pod(podIPs=[{"ip": "10.0.2.100"}])
    ports = [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 53, "hostPort": 5353, "protocol": "UDP"}]
    found["spec"]["containers"][0]["ports"] = [*ports, {"containerPort": 9}]
    found["spec"]["initContainers"] = [{"name": "i", "ports": [{"containerPort": 1, "hostPort": 2, "hostIP": "::1"}]}]
    row = pod_row(found, NOW)
    assert (row[5], row[9]) == ("<private>", "::1:2->1/tcp,8080->80/tcp,5353->53/udp")
