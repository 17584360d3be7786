"""The verbs of `workers.kubecontainer.runtime.Runtime`, held against the fake and against Podman."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from tests.contract.target import DEADLINE_S, Target, container_spec, exited, pod_spec, running, unique
from tests.fakes.ownership import ownership
from workers.kubecontainer import labels
from workers.kubecontainer.runtime import ContainerProcess, ErrorKind, RuntimeCallError

NOWHERE = "0123456789abcdef" * 4
"""An id that nothing has."""


def kind_of(caught: pytest.ExceptionInfo[RuntimeCallError]) -> ErrorKind:
    return caught.value.kind


async def test_version_names_a_release(target: Target) -> None:
    major, minor, *_ = (await target.runtime.version()).split(".")
    assert (int(major), int(minor)) >= (4, 3)


# --- pods ---


async def test_a_new_pod_has_a_created_infra_container_with_its_labels(target: Target) -> None:
    spec = pod_spec(target)
    id = await target.runtime.create_pod(spec)

    pod = await target.runtime.inspect_pod(id)
    assert (pod.id, pod.name, pod.labels) == (id, spec["name"], spec["labels"])
    assert pod.created_at > 0
    assert pod.containers == ((pod.infra_id, "created"),)

    infra = await target.runtime.inspect_container(pod.infra_id)
    assert infra.is_infra
    assert infra.pod_id == id
    assert spec["labels"].items() <= infra.labels.items()
    assert (infra.state, infra.pid, infra.started_at, infra.finished_at) == ("created", 0, 0.0, 0.0)


async def test_a_listed_pod_shows_what_inspect_shows(target: Target) -> None:
    id = await target.runtime.create_pod(pod_spec(target))
    (listed,) = await target.runtime.list_pods()
    inspected = await target.runtime.inspect_pod(id)
    assert (listed.id, listed.name, listed.labels) == (id, inspected.name, inspected.labels)
    assert (listed.infra_id, listed.created_at) == (inspected.infra_id, inspected.created_at)
    assert listed.containers == inspected.containers


async def test_pods_are_listed_by_uid(target: Target) -> None:
    one = await target.runtime.create_pod(pod_spec(target, "u1"))
    two = await target.runtime.create_pod(pod_spec(target, "u2"))
    again = await target.runtime.create_pod(pod_spec(target, "u1"))
    assert {pod.id for pod in await target.runtime.list_pods("u1")} == {one, again}
    assert {pod.id for pod in await target.runtime.list_pods()} == {one, two, again}
    assert await target.runtime.list_pods("u3") == ()


async def test_containers_are_listed_by_the_uid_that_they_carry(target: Target) -> None:
    made = {}
    for uid in ("u1", "u2"):
        pod = await target.runtime.create_pod(pod_spec(target, uid))
        made[uid] = await target.runtime.create_container(container_spec(target, pod, uid=uid))
    listed = await target.runtime.list_containers("u1")
    assert {container.id for container in listed if not container.is_infra} == {made["u1"]}
    assert {container.labels[labels.POD_UID] for container in listed} == {"u1"}
    assert await target.runtime.list_containers("u3") == ()


async def test_only_pods_without_containers_are_empty(target: Target) -> None:
    await target.runtime.create_pod(pod_spec(target))
    empty = await target.runtime.create_pod(pod_spec(target, no_infra=True, shared_namespaces=[]))
    (found,) = await target.runtime.list_empty_pods()
    assert (found.id, found.infra_id, found.containers) == (empty, "", ())


async def test_a_pod_name_is_taken_once(target: Target) -> None:
    spec = pod_spec(target)
    await target.runtime.create_pod(spec)
    with pytest.raises(RuntimeCallError) as caught:
        await target.runtime.create_pod(spec)
    assert kind_of(caught) is ErrorKind.NAME_IN_USE


async def test_an_unknown_pod_is_not_found(target: Target) -> None:
    with pytest.raises(RuntimeCallError) as caught:
        await target.runtime.inspect_pod(NOWHERE)
    assert kind_of(caught) is ErrorKind.NOT_FOUND


async def test_removing_a_pod_takes_everything_in_it_and_can_be_repeated(target: Target) -> None:
    container = await running(target)
    await target.runtime.remove_pod(container.pod_id)
    assert await target.runtime.list_pods() == ()
    assert await target.runtime.list_containers() == ()
    await target.runtime.remove_pod(container.pod_id)
    await target.runtime.remove_pod(NOWHERE)


# --- creating containers ---


async def test_a_created_container_shows_its_spec(target: Target) -> None:
    pod = await target.runtime.create_pod(pod_spec(target))
    spec = container_spec(target, pod)
    id = await target.runtime.create_container(spec)

    found = await target.runtime.inspect_container(id)
    assert (found.id, found.name, found.pod_id, found.is_infra) == (id, spec["name"], pod, False)
    assert (found.state, found.pid, found.exit_code, found.error) == ("created", 0, 0, "")
    assert (found.started_at, found.finished_at) == (0.0, 0.0)
    assert found.created_at > 0
    assert spec["labels"].items() <= found.labels.items()
    assert found.image == target.image
    image = await target.runtime.inspect_image(target.image)
    assert image is not None
    assert found.image_id == image.id


async def test_lists_and_inspects_agree_on_all_by_which_ours_are_known(target: Target) -> None:
    """Name, date and labels, of containers, of infra containers and of pods."""
    container = await running(target)
    own = ownership(target.instance)
    (pod,) = await target.runtime.list_pods()
    inspected = {id: await target.runtime.inspect_container(id) for id in (container.id, pod.infra_id)}
    listed = {shown.id: shown for shown in await target.runtime.list_containers()}
    assert listed.keys() == inspected.keys()
    for id, shown in listed.items():
        assert (shown.name, shown.labels) == (inspected[id].name, inspected[id].labels)
        assert shown.created_at == pytest.approx(inspected[id].created_at, abs=1e-3)
        assert own.owns(shown)
        assert own.owns(inspected[id])
    assert own.owns_pod(pod)
    assert own.owns_pod(await target.runtime.inspect_pod(pod.id))
    copy = await target.runtime.create_container({**container_spec(target, ""), "labels": container.labels})
    assert not own.owns(await target.runtime.inspect_container(copy))


async def test_a_container_name_is_taken_once(target: Target) -> None:
    pod = await target.runtime.create_pod(pod_spec(target))
    spec = container_spec(target, pod)
    await target.runtime.create_container(spec)
    with pytest.raises(RuntimeCallError) as caught:
        await target.runtime.create_container(spec)
    assert kind_of(caught) is ErrorKind.NAME_IN_USE


async def test_a_container_needs_its_image(target: Target) -> None:
    pod = await target.runtime.create_pod(pod_spec(target))
    with pytest.raises(RuntimeCallError) as caught:
        await target.runtime.create_container(container_spec(target, pod, image="localhost/no-such-image:latest"))
    assert kind_of(caught) is ErrorKind.IMAGE_UNKNOWN
    assert "no-such-image" in caught.value.message


async def test_a_container_needs_its_pod(target: Target) -> None:
    with pytest.raises(RuntimeCallError) as caught:
        await target.runtime.create_container(container_spec(target, NOWHERE))
    assert kind_of(caught) is ErrorKind.NOT_FOUND


async def test_a_bad_name_is_invalid(target: Target) -> None:
    pod = await target.runtime.create_pod(pod_spec(target))
    with pytest.raises(RuntimeCallError) as caught:
        await target.runtime.create_container(container_spec(target, pod, name="no spaces!"))
    assert kind_of(caught) is ErrorKind.INVALID


# --- starting ---


async def test_starting_runs_the_container_and_its_infra(target: Target) -> None:
    container = await running(target)
    assert container.state == "running"
    assert container.pid > 0
    assert container.created_at <= container.started_at
    assert container.finished_at == 0.0
    pod = await target.runtime.inspect_pod(container.pod_id)
    assert dict(pod.containers) == {container.id: "running", pod.infra_id: "running"}


async def test_starting_twice_is_a_success_without_effect(target: Target) -> None:
    container = await running(target)
    await target.runtime.start_container(container.id)
    assert await target.runtime.inspect_container(container.id) == container


async def test_a_command_that_is_not_there_leaves_the_container_created(target: Target) -> None:
    pod = await target.runtime.create_pod(pod_spec(target))
    id = await target.runtime.create_container(container_spec(target, pod, ["/no/such/command"]))
    with pytest.raises(RuntimeCallError) as caught:
        await target.runtime.start_container(id)
    assert kind_of(caught) is ErrorKind.COMMAND
    found = await target.runtime.inspect_container(id)
    assert (found.state, found.pid, found.exit_code) == ("created", 0, 0)
    assert (found.started_at, found.finished_at) == (0.0, 0.0)
    assert found.error == "" or "not found" in found.error  # Podman 5 remembers it, 4.3 forgets.


async def test_starting_what_is_not_there_is_not_found(target: Target) -> None:
    with pytest.raises(RuntimeCallError) as caught:
        await target.runtime.start_container(NOWHERE)
    assert kind_of(caught) is ErrorKind.NOT_FOUND


# --- commands ---


@pytest.mark.parametrize(
    ("command", "exit_code", "output"),
    [
        (["true"], 0, b""),
        (["false"], 1, b""),
        (["sh", "-c", "echo hello; exit 7"], 7, b"hello\n"),
        (["sh", "-c", "echo late; sleep 1"], 0, b"late\n"),
    ],
)
async def test_a_command_runs_beside_the_containers_own(
    target: Target, command: list[str], exit_code: int, output: bytes
) -> None:
    container = await running(target)
    result = await target.runtime.exec_container(container.id, command, DEADLINE_S)
    assert (result.exit_code, result.output, result.limited) == (exit_code, output, False)
    assert await target.runtime.inspect_container(container.id) == container


async def test_a_command_that_is_not_there_cannot_be_run(target: Target) -> None:
    container = await running(target)
    with pytest.raises(RuntimeCallError) as caught:
        await target.runtime.exec_container(container.id, ["/no/such/command"], DEADLINE_S)
    assert kind_of(caught) is ErrorKind.COMMAND


async def test_a_command_that_takes_too_long_is_ended(target: Target) -> None:
    container = await running(target)
    with pytest.raises(RuntimeCallError) as caught:
        await target.runtime.exec_container(container.id, ["sleep", "1000"], 1.0)
    assert kind_of(caught) is ErrorKind.TIMEOUT
    assert await target.runtime.inspect_container(container.id) == container


async def test_a_command_ends_with_its_container(target: Target) -> None:
    container = await running(target)
    command = asyncio.ensure_future(target.runtime.exec_container(container.id, ["sleep", "1000"], DEADLINE_S))
    await asyncio.sleep(1.0)
    assert not command.done()
    await target.runtime.kill_container(container.id, "KILL")
    async with asyncio.timeout(DEADLINE_S):
        assert (await command).exit_code == 137


@pytest.mark.parametrize("ended", [False, True])
async def test_no_command_runs_in_what_does_not_run(target: Target, ended: bool) -> None:
    pod = await target.runtime.create_pod(pod_spec(target))
    id = await target.runtime.create_container(container_spec(target, pod, ["true"]))
    if ended:
        await target.runtime.start_container(id)
        await exited(target, id)
    with pytest.raises(RuntimeCallError) as caught:
        await target.runtime.exec_container(id, ["true"], DEADLINE_S)
    assert kind_of(caught) is ErrorKind.WRONG_STATE


async def test_no_command_runs_in_what_is_not_there(target: Target) -> None:
    with pytest.raises(RuntimeCallError) as caught:
        await target.runtime.exec_container(NOWHERE, ["true"], DEADLINE_S)
    assert kind_of(caught) is ErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    ("spec", "name"), [({}, "SIGTERM"), ({"stop_signal": 10}, "SIGUSR1"), ({"stop_signal": 37}, "SIGRTMIN+3")]
)
async def test_a_container_shows_its_stop_signal(target: Target, spec: dict[str, Any], name: str) -> None:
    pod = await target.runtime.create_pod(pod_spec(target))
    id = await target.runtime.create_container(container_spec(target, pod, **spec))
    assert (await target.runtime.inspect_container(id)).stop_signal == name


# --- ending ---


@pytest.mark.parametrize(("command", "exit_code"), [(["true"], 0), (["sh", "-c", "exit 7"], 7)])
async def test_a_container_ends_with_its_exit_code(target: Target, command: list[str], exit_code: int) -> None:
    container = await running(target, command)
    found = await exited(target, container.id)
    assert (found.exit_code, found.pid, found.oom_killed) == (exit_code, 0, False)
    # Podman notes the start when the runtime has come back: a quick end lies some time before it.
    assert found.started_at - found.finished_at < DEADLINE_S
    pod = await target.runtime.inspect_pod(container.pod_id)
    assert dict(pod.containers)[pod.infra_id] == "running"


async def test_kill_ends_a_container(target: Target) -> None:
    container = await running(target)
    await target.runtime.kill_container(container.id, "KILL")
    found = await exited(target, container.id)
    assert found.exit_code == 137
    assert found.started_at == container.started_at


async def test_a_handled_signal_gives_the_handlers_exit_code(target: Target) -> None:
    container = await running(target, ["sh", "-c", "trap 'exit 3' TERM; sleep 1000 & wait"])
    async with asyncio.timeout(DEADLINE_S):  # The shell may not have come to its trap when the first one arrives.
        while not await target.runtime.wait_exit(container.process, 0.2):
            await target.runtime.kill_container(container.id, "TERM")
    assert (await exited(target, container.id)).exit_code == 3


async def test_an_ignored_signal_changes_nothing(target: Target) -> None:
    container = await running(target)
    await target.runtime.kill_container(container.id, "TERM")
    assert not await target.runtime.wait_exit(container.process, 0.3)
    assert await target.runtime.inspect_container(container.id) == container


async def test_killing_what_does_not_run_is_a_success(target: Target) -> None:
    pod = await target.runtime.create_pod(pod_spec(target))
    id = await target.runtime.create_container(container_spec(target, pod))
    await target.runtime.kill_container(id, "KILL")
    assert (await target.runtime.inspect_container(id)).state == "created"
    await target.runtime.kill_container(NOWHERE, "KILL")


async def test_an_unknown_signal_is_invalid(target: Target) -> None:
    container = await running(target)
    with pytest.raises(RuntimeCallError) as caught:
        await target.runtime.kill_container(container.id, "NOSUCH")
    assert kind_of(caught) is ErrorKind.INVALID


# --- waiting ---


async def test_wait_exit_ends_with_the_process(target: Target) -> None:
    container = await running(target)
    waiting = asyncio.create_task(target.runtime.wait_exit(container.process, DEADLINE_S))
    await target.runtime.kill_container(container.id, "KILL")
    assert await waiting


async def test_wait_exit_without_a_pid_finds_it(target: Target) -> None:
    container = await running(target)
    assert not await target.runtime.wait_exit(ContainerProcess(container_id=container.id), 0.1)
    await target.runtime.kill_container(container.id, "KILL")
    assert await target.runtime.wait_exit(ContainerProcess(container_id=container.id), DEADLINE_S)


async def test_wait_exit_gives_up_in_time(target: Target) -> None:
    container = await running(target)
    assert not await target.runtime.wait_exit(container.process, 0.1)


async def test_wait_exit_of_what_does_not_run_is_over_at_once(target: Target) -> None:
    pod = await target.runtime.create_pod(pod_spec(target))
    id = await target.runtime.create_container(container_spec(target, pod))
    assert await target.runtime.wait_exit(ContainerProcess(container_id=id), DEADLINE_S)
    assert await target.runtime.wait_exit(ContainerProcess(container_id=NOWHERE), DEADLINE_S)


async def test_wait_exit_is_not_fooled_by_a_pid_of_somebody_else(target: Target) -> None:
    container = await running(target)
    other = await running(target)
    somebody = msgspec.structs.replace(container.process, pid=other.pid, start_ticks=0)
    assert await target.runtime.wait_exit(somebody, DEADLINE_S)
    earlier = msgspec.structs.replace(container.process, start_ticks=container.start_ticks - 1)
    assert await target.runtime.wait_exit(earlier, DEADLINE_S)


async def test_many_waits_need_no_threads(target: Target) -> None:
    container = await running(target)
    waits = [asyncio.create_task(target.runtime.wait_exit(container.process, DEADLINE_S)) for _ in range(30)]
    await target.runtime.kill_container(container.id, "KILL")
    assert all(await asyncio.gather(*waits))


# --- removing ---


async def test_removing_a_running_container_takes_it_alone_and_can_be_repeated(target: Target) -> None:
    container = await running(target)
    await target.runtime.remove_container(container.id)
    with pytest.raises(RuntimeCallError) as caught:
        await target.runtime.inspect_container(container.id)
    assert kind_of(caught) is ErrorKind.NOT_FOUND
    pod = await target.runtime.inspect_pod(container.pod_id)
    assert pod.containers == ((pod.infra_id, "running"),)
    await target.runtime.remove_container(container.id)
    await target.runtime.remove_container(NOWHERE)


async def test_the_infra_container_goes_only_with_its_pod(target: Target) -> None:
    container = await running(target)
    pod = await target.runtime.inspect_pod(container.pod_id)
    with pytest.raises(RuntimeCallError, match="infra container"):
        await target.runtime.remove_container(pod.infra_id)
    assert await target.runtime.inspect_pod(pod.id) == pod


async def test_a_removed_containers_name_is_free_again(target: Target) -> None:
    container = await running(target)
    await target.runtime.remove_container(container.id)
    spec = container_spec(target, container.pod_id, name=container.name)
    assert await target.runtime.create_container(spec) != container.id


# --- the list ---


async def test_the_list_shows_every_state_and_tells_the_infra_container_apart(target: Target) -> None:
    started = await running(target)
    pod = await target.runtime.inspect_pod(started.pod_id)
    ended = await target.runtime.create_container(container_spec(target, pod.id, ["sh", "-c", "exit 5"]))
    await target.runtime.start_container(ended)
    await exited(target, ended)
    created = await target.runtime.create_container(container_spec(target, pod.id))

    found = {c.id: c for c in await target.runtime.list_containers()}
    assert found.keys() == {started.id, ended, created, pod.infra_id}
    assert [id for id, c in found.items() if c.is_infra] == [pod.infra_id]
    assert {(c.pod_id, c.pod_name) for c in found.values()} == {(pod.id, pod.name)}
    assert (found[started.id].state, found[started.id].pid) == ("running", started.pid)
    assert (found[created].state, found[created].pid, found[created].started_at) == ("created", 0, 0.0)
    assert found[ended].state in ("stopped", "exited")
    assert found[ended].exit_code == 5


async def test_the_list_agrees_with_inspect_to_the_second(target: Target) -> None:
    container = await running(target)
    await target.runtime.kill_container(container.id, "KILL")
    ended = await exited(target, container.id)
    (listed,) = [c for c in await target.runtime.list_containers() if c.id == container.id]
    assert listed.started_at == int(ended.started_at)
    assert listed.exited_at == int(ended.finished_at)
    assert (listed.name, listed.image, listed.image_id) == (ended.name, ended.image, ended.image_id)
    assert listed.labels == ended.labels


async def test_labels_come_back_as_they_were_sent(target: Target) -> None:
    odd = {labels.INSTANCE: target.instance, labels.POD_UID: "u1", "x/y": 'ä "quoted" \\ = , {}', "empty": ""}
    pod = await target.runtime.create_pod(pod_spec(target))
    id = await target.runtime.create_container(container_spec(target, pod, labels=odd))
    assert odd.items() <= (await target.runtime.inspect_container(id)).labels.items()


async def test_two_instances_do_not_see_one_another(target: Target) -> None:
    container = await running(target)
    stranger = target.stranger()
    assert await stranger.list_pods() == ()
    assert await stranger.list_pods("u1") == ()
    assert await stranger.list_empty_pods() == ()
    assert await stranger.list_containers() == ()
    assert await target.runtime.inspect_container(container.id) == container


async def test_a_container_outside_of_any_pod_is_listed(target: Target) -> None:
    id = await target.runtime.create_container(container_spec(target, ""))
    (found,) = await target.runtime.list_containers()
    assert (found.id, found.pod_id, found.is_infra) == (id, "", False)
    assert (await target.runtime.inspect_container(id)).pod_id == ""


# --- images ---


async def test_an_absent_image_is_none(target: Target) -> None:
    assert await target.runtime.inspect_image("localhost/no-such-image:latest") is None


async def test_an_image_has_an_id_and_digests(target: Target) -> None:
    image = await target.runtime.inspect_image(target.image)
    assert image is not None
    assert len(image.id) == 64
    assert all("@sha256:" in digest for digest in image.digests)
    assert await target.runtime.inspect_image(image.id) == image


async def test_a_pull_that_fails_says_why(target: Target) -> None:
    words: list[str] = []
    with pytest.raises(RuntimeCallError) as caught:
        await target.runtime.pull_image("127.0.0.1:1/nobody/listens:latest", words.append)
    first = words[:1]  # Podman 6 tells none of a pull that is refused at once
    assert not first or first[0].startswith("Trying to pull 127.0.0.1:1/nobody/listens:latest")
    assert kind_of(caught) is ErrorKind.PULL
    assert "127.0.0.1:1/nobody/listens" in caught.value.message


# --- counting ---


async def test_calls_and_errors_are_counted(target: Target) -> None:
    before = target.runtime.counts()
    await target.runtime.list_pods()
    with pytest.raises(RuntimeCallError):
        await target.runtime.inspect_container(NOWHERE)
    with pytest.raises(RuntimeCallError):
        await target.runtime.create_container(container_spec(target, NOWHERE, name=unique("c", target)))
    with pytest.raises(RuntimeCallError):
        await target.runtime.create_pod(pod_spec(target, name="no spaces!"))
    after = target.runtime.counts()
    assert after.calls - before.calls == 4
    assert after.errors - before.errors == 1
