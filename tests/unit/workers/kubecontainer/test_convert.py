from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.probe import ExecAction, LifecycleHandler
from ipc.k8s.kubecontainer.pod_status import CONTAINER_STATUS_UNKNOWN, ContainerState, RuntimePodStatus, SandboxState
from tests.support.runtime_values import UID, container_labels, infra, inspected, listed, listed_pod, own_labels
from workers.kubecontainer import labels
from workers.kubecontainer.convert import container_state, pod_status, sandbox_of


@pytest.mark.parametrize(
    ("podman", "ours"),
    [
        ("configured", ContainerState.CREATED),
        ("created", ContainerState.CREATED),
        ("initialized", ContainerState.CREATED),
        ("running", ContainerState.RUNNING),
        ("paused", ContainerState.RUNNING),
        ("stopping", ContainerState.RUNNING),
        ("stopped", ContainerState.EXITED),
        ("exited", ContainerState.EXITED),
        ("removing", ContainerState.UNKNOWN),
        ("dead", ContainerState.UNKNOWN),
        ("unknown", ContainerState.UNKNOWN),
        ("a word of Podman 7", ContainerState.UNKNOWN),
        ("", ContainerState.UNKNOWN),
    ],
)
def test_every_podman_state_has_one_of_ours(podman: str, ours: ContainerState) -> None:
    assert container_state(podman) is ours


def test_nothing_is_an_empty_status() -> None:
    assert pod_status(UID, [], [], 5.0) == RuntimePodStatus(uid=UID, observed_at=5.0)


def test_a_container_with_all_that_its_labels_say() -> None:
    own = container_labels(
        "web",
        3,
        **{
            labels.CONTAINER_HASH: "abc",
            labels.BACKOFF_S: "20.5",
            labels.GRACE_PERIOD_S: "7",
            labels.SANDBOX_HASH: "no",
        },
    )
    status = pod_status(UID, [listed_pod()], [inspected("c1", labels=own), infra()], 5.0)
    (container,) = status.containers
    assert (status.name, status.namespace) == ("pod-0c3a", "default")
    assert (container.id, container.name, container.attempt, container.sandbox_id) == ("c1", "web", 3, "p1")
    assert (container.hash, container.backoff_s, container.grace_period_s) == ("abc", 20.5, 7)
    assert (container.state, container.podman_state, container.pid) == (ContainerState.RUNNING, "running", 77)
    assert (container.created_at, container.started_at, container.finished_at) == (100.25, 101.5, 0.0)
    assert (container.image, container.image_id) == ("localhost/x:latest", "i1")


def test_a_sandbox_with_all_that_its_labels_say() -> None:
    own = own_labels(
        **{
            labels.ATTEMPT: "2",
            labels.SANDBOX_HASH: "abc",
            labels.HOST_NETWORK: "true",
            labels.GRACE_PERIOD_S: "9",
        }
    )
    status = pod_status(UID, [listed_pod(labels=own)], [infra(ips=("10.88.0.2",))], 5.0)
    (sandbox,) = status.sandboxes
    assert (sandbox.id, sandbox.name, sandbox.infra_id, sandbox.attempt) == ("p1", "pod-one", "infra", 2)
    assert (sandbox.state, sandbox.hash, sandbox.host_network) == (SandboxState.READY, "abc", True)
    assert (sandbox.ips, sandbox.grace_period_s, sandbox.created_at) == (("10.88.0.2",), 9, 100.25)
    assert status.containers == ()


@pytest.mark.parametrize("state", ["created", "exited", "stopped", "removing"])
def test_a_sandbox_is_ready_only_while_its_infra_container_runs(state: str) -> None:
    running_member = inspected("c1")
    (sandbox,) = pod_status(UID, [listed_pod()], [infra(state=state), running_member], 5.0).sandboxes
    assert sandbox.state is SandboxState.NOT_READY


@pytest.mark.parametrize(("ticks", "told"), [(99, (77, 99)), (0, (0, 0))], ids=["its own process", "a stranger's pid"])
def test_a_sandbox_tells_which_process_it_is(ticks: int, told: tuple[int, int]) -> None:
    [sandbox] = pod_status(UID, [listed_pod()], [infra(start_ticks=ticks)], 5.0).sandboxes
    assert (sandbox.infra_pid, sandbox.infra_start_ticks) == told


def test_a_sandbox_without_its_infra_container_is_not_ready() -> None:
    (sandbox,) = pod_status(UID, [listed_pod()], [inspected("c1")], 5.0).sandboxes
    assert (sandbox.state, sandbox.created_at) == (SandboxState.NOT_READY, 100.0)


@pytest.mark.parametrize("spoiled", ["", "x", "-1", "1.5", "²", "nan", "1" * 400 + "x"])
def test_spoiled_numbers_in_labels_are_defaults(spoiled: str) -> None:
    own = container_labels("web", 0, **{labels.ATTEMPT: spoiled, labels.GRACE_PERIOD_S: spoiled})
    (container,) = pod_status(UID, [], [inspected("c1", labels=own)], 5.0).containers
    assert (container.attempt, container.grace_period_s) == (0, 30)


@pytest.mark.parametrize("spoiled", ["", "x", "-1", "nan", "inf"])
def test_a_spoiled_back_off_is_none(spoiled: str) -> None:
    own = container_labels("web", 0, **{labels.BACKOFF_S: spoiled})
    (container,) = pod_status(UID, [], [inspected("c1", labels=own)], 5.0).containers
    assert container.backoff_s == 0.0


def test_how_a_container_is_stopped_is_read_from_it() -> None:
    hook = LifecycleHandler(exec=ExecAction(command=("true",)))
    own = container_labels("web", 0, **{labels.PRE_STOP: msgspec.json.encode(hook).decode()})
    (container,) = pod_status(UID, [], [inspected("c1", labels=own, stop_signal="SIGUSR1")], 5.0).containers
    assert (container.pre_stop, container.stop_signal) == (hook, "SIGUSR1")


@pytest.mark.parametrize(
    "spoiled", ["", "x", "null", "[]", '{"exec":7}', "[" * 100_000, '{"exec":{"command":["\ud800"]}}']
)
def test_a_spoiled_hook_is_none(spoiled: str) -> None:
    own = container_labels("web", 0, **{labels.PRE_STOP: spoiled})
    (container,) = pod_status(UID, [], [inspected("c1", labels=own)], 5.0).containers
    assert container.pre_stop is None


def test_newest_attempt_first_whatever_the_order_of_the_list() -> None:
    containers = [
        inspected("b0", labels=container_labels("b", 0)),
        inspected("a1", labels=container_labels("a", 1)),
        inspected("b10", labels=container_labels("b", 10)),
        inspected("a0", labels=container_labels("a", 0)),
        inspected("b9", labels=container_labels("b", 9)),
    ]
    pods = [listed_pod(f"p{n}", f"i{n}", labels=own_labels(**{labels.ATTEMPT: str(n)})) for n in (0, 10, 9)]
    for order in (containers, containers[::-1]):
        status = pod_status(UID, pods, order, 5.0)
        assert [c.id for c in status.containers] == ["a1", "a0", "b10", "b9", "b0"]
        assert [s.id for s in status.sandboxes] == ["p10", "p9", "p0"]


def test_twins_of_one_attempt_are_ordered_by_age_then_id() -> None:
    twins = [inspected("x", created_at=1.0), inspected("z", created_at=2.0), inspected("y", created_at=2.0)]
    assert [c.id for c in pod_status(UID, [], twins, 5.0).containers] == ["y", "z", "x"]


def test_an_end_never_lies_before_its_start() -> None:
    """Podman 4.3.1 shows that of a process that ends within milliseconds."""
    ended = inspected("c1", state="exited", pid=0, started_at=101.5, finished_at=101.495)
    (container,) = pod_status(UID, [], [ended], 5.0).containers
    assert container.finished_at == container.started_at == 101.5


def test_the_end_of_an_earlier_run_stays_before_a_running_containers_start() -> None:
    again = inspected("c1", state="running", started_at=200.0, finished_at=150.0)
    (container,) = pod_status(UID, [], [again], 5.0).containers
    assert container.finished_at == 150.0


def test_a_stray_without_sandbox_is_shown() -> None:
    status = pod_status(UID, [], [inspected("c1", pod_id="")], 5.0)
    assert [(c.id, c.sandbox_id) for c in status.containers] == [("c1", "")]
    assert not status.is_empty()


def test_an_infra_container_in_a_list_stands_for_its_pod() -> None:
    pod = sandbox_of(listed("infra", is_infra=True, labels=own_labels()))
    assert (pod.id, pod.name, pod.infra_id, pod.labels) == ("p1", "pod-one", "infra", own_labels())


@pytest.mark.parametrize(
    ("fields", "ended"),
    [
        ({"state": "exited", "exit_code": -1, "finished_at": 150.0}, (137, CONTAINER_STATUS_UNKNOWN, 150.0)),
        ({"state": "configured", "exit_code": 0}, (137, CONTAINER_STATUS_UNKNOWN, 101.5)),
        ({"state": "created", "exit_code": 0}, (137, CONTAINER_STATUS_UNKNOWN, 101.5)),
        ({"state": "configured", "exit_code": 3, "finished_at": 90.0}, (137, CONTAINER_STATUS_UNKNOWN, 101.5)),
        ({"state": "configured", "exit_code": 3, "finished_at": 150.0}, (3, "", 150.0)),
        ({"state": "created", "exit_code": 0, "finished_at": 150.0}, (0, "", 150.0)),
        ({"state": "exited", "exit_code": 0, "finished_at": 0.0}, (137, CONTAINER_STATUS_UNKNOWN, 101.5)),
        ({"state": "stopped", "exit_code": 0, "finished_at": 0.0}, (137, CONTAINER_STATUS_UNKNOWN, 101.5)),
        ({"state": "exited", "exit_code": 0, "finished_at": 101.4}, (0, "", 101.5)),
    ],
    ids=[
        "no exit file",
        "reboot",
        "reboot as 4.3.1 shows it",
        "reboot of a second run",
        "reboot after its end",
        "about to run again",
        "reboot as 5.4 shows it",
        "stopped without a date",
        "an end that was at once",
    ],
)
def test_an_end_without_an_exit_code_is_no_success(fields: dict[str, Any], ended: tuple[int, str, float]) -> None:
    """A reboot makes Podman show what it ran as configured (libpod, resetState), with all its dates."""
    shown = inspected("c1", **{"pid": 0, **fields})
    (container,) = pod_status(UID, [], [shown], 5.0).containers
    assert container.state is ContainerState.EXITED
    assert (container.exit_code, container.reason, container.finished_at) == ended


def test_what_never_ran_is_created() -> None:
    (container,) = pod_status(UID, [], [inspected("c1", state="configured", started_at=0.0, pid=0)], 5.0).containers
    assert container.state is ContainerState.CREATED
