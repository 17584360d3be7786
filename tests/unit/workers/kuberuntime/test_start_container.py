"""Starting one container of any kind on a fake host."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.config_objects import Secret
from ipc.k8s.api.v1.container import EphemeralContainer, VolumeMount
from ipc.k8s.api.v1.env import EnvVar
from ipc.k8s.api.v1.meta import LocalObjectReference, ObjectMeta
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.probe import ExecAction, Lifecycle, LifecycleHandler
from ipc.k8s.api.v1.security import Capabilities, PodSecurityContext, SecurityContext
from ipc.k8s.api.v1.volume import ImageVolumeSource, Volume
from ipc.k8s.kubecontainer.pod_status import ContainerState
from ipc.k8s.podobjects.config_objects import ConfigObjects
from ipc.k8s.podobjects.registry_login import RegistryLogin
from ipc.link.messages.sync_error import SyncError
from tests.fakes.clock import simulate
from tests.support.pods import IMAGE, UID, container, pod
from tests.support.sync import FakeHost
from workers.env.expansion import MAX_EXPANSION_CHARS
from workers.images.credentials import DOCKER_CONFIG_JSON
from workers.images.manager import SEEN_FOR_S
from workers.kubecontainer import labels
from workers.kubecontainer.look import decode_looks
from workers.kubecontainer.runtime import SpecDict
from workers.logs.termination_message import termination_log


def on_host(tmp_path: Path, scenario: Callable[[FakeHost], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(FakeHost(tmp_path / "logs"))

    simulate(main)


def ephemeral(name: str, target: str = "") -> EphemeralContainer:
    return EphemeralContainer(name=name, image=IMAGE, args=("sleep", "1000"), target_container_name=target)


def all_kinds(target: str = "") -> Pod:
    return pod(
        "main",
        init_containers=(container("init"), container("sidecar", restart_policy="Always")),
        ephemeral_containers=(ephemeral("debug", target),),
    )


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("init", "spec.initContainers{init}"),
        ("sidecar", "spec.initContainers{sidecar}"),
        ("main", "spec.containers{main}"),
        ("debug", "spec.ephemeralContainers{debug}"),
    ],
)
def test_a_container_of_any_kind_is_started_and_told_of(tmp_path: Path, name: str, path: str) -> None:
    async def scenario(host: FakeHost) -> None:
        started, done = await host.start(all_kinds(), name)
        assert started
        assert [(r.target, r.error) for r in done.results if r.action == "StartContainer"] == [(name, "")]
        assert host.running().keys() == {name}
        assert [f"{e.reason}: {e.message} ({e.field_path})" for e in host.events if e.reason != "Pulled"] == [
            f"Created: Container created ({path})",
            f"Started: Container started ({path})",
        ]

    on_host(tmp_path, scenario)


def test_a_container_that_was_started_of_a_known_image_is_looked_at_instead_of_inspected(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        host.runtime.image_list = "first"
        started, done = await host.start(pod("main"), "main")
        looks = {look.container.id: look.container for look in decode_looks(done.effects.looks)}
        id = host.running()["main"]
        assert started
        assert looks[id] == host.podman.inspected(id)
        assert id not in done.effects.touched

    on_host(tmp_path, scenario)


def test_a_container_is_labelled_with_the_images_that_it_sees_as_volumes(tmp_path: Path) -> None:
    sees = (VolumeMount(name="model", mount_path="/model"), VolumeMount(name="again", mount_path="/again"))
    volumes = tuple(
        Volume(name=name, image=ImageVolumeSource(reference=IMAGE)) for name in ("model", "again", "of-others")
    )

    async def scenario(host: FakeHost) -> None:
        of = pod(container("main", volume_mounts=sees), "beside", volumes=volumes)
        await host.settle(of)
        view = await host.observe(UID)
        main, beside = view.newest("main"), view.newest("beside")
        assert main is not None
        assert beside is not None
        assert main.image_id
        assert main.image_volumes == dict.fromkeys(("model", "again"), main.image_id)
        assert beside.image_volumes == {}

    on_host(tmp_path, scenario)


@pytest.mark.parametrize("has_run", [False, True])
def test_an_image_that_would_direct_the_oci_runtime_is_refused(tmp_path: Path, has_run: bool) -> None:
    async def scenario(host: FakeHost) -> None:
        host.runtime.image_list = "first"
        if has_run:
            await host.start(pod("main"), "main")
            host.podman.exit(host.running()["main"], 1)
        host.runtime.image_list = "second"
        host.podman.images[IMAGE] = msgspec.structs.replace(host.podman.images[IMAGE], directs_runtime=True)
        started, done = await host.start(pod("main"), "main")
        assert not started
        assert [(r.error, r.message) for r in done.results if r.error] == [
            (
                SyncError.CREATE_CONTAINER_CONFIG,
                f'image "{IMAGE}" has annotations run.oci.*, which direct the OCI runtime',
            )
        ]
        assert not host.running()

    on_host(tmp_path, scenario)


@pytest.mark.parametrize("verb", ["create_container", "start_container"])
def test_one_whose_image_may_have_changed_meanwhile_is_inspected(tmp_path: Path, verb: str) -> None:
    async def scenario(host: FakeHost) -> None:
        runtime, act, lists = host.runtime, getattr(host.podman, verb), itertools.count()
        runtime.image_list = next(lists)

        def change(*args: Any) -> Any:
            runtime.image_list = next(lists)
            return act(*args)

        setattr(host.podman, verb, change)
        started, done = await host.start(pod("main"), "main")
        id = host.running()["main"]
        assert started
        assert id not in [look.container.id for look in decode_looks(done.effects.looks)]
        assert id in done.effects.touched

    on_host(tmp_path, scenario)


def test_pull_secrets_that_cannot_be_used_are_told_of_and_the_others_are_used(tmp_path: Path) -> None:
    login, image, type = RegistryLogin(username="tester", password="1"), "quay.io/a/private:1", DOCKER_CONFIG_JSON
    logins = json.dumps({"auths": {"quay.io": {"auth": base64.b64encode(b"tester:1").decode()}}})
    secrets = {
        name: Secret(metadata=ObjectMeta(name=name), type=type, data={".dockerconfigjson": data.encode()})
        for name, data in (("good", logins), ("broken", "{"))
    }
    names = tuple(LocalObjectReference(name=name) for name in ("good", "broken", "missing"))

    async def scenario(host: FakeHost) -> None:
        host.podman.registry.add(image)
        host.podman.logins[image] = {login}
        of = pod(container("main", image=image), container("other"), image_pull_secrets=names)
        await host.sync(of, objects=ConfigObjects(secrets=secrets))
        assert host.running().keys() == {"main", "other"}
        (told,) = (event for event in host.events if event.reason == "FailedToRetrieveImagePullSecret")
        assert told.message.startswith(
            "Unable to retrieve some image pull secrets (missing: there is no such Secret, broken: secret "
        )
        assert 'must be like {"auths": ' in told.message

    on_host(tmp_path, scenario)


def test_a_target_shows_its_processes(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = all_kinds("main")
        await host.start(of, "main")
        target = host.podman.container(host.running()["main"])
        specs = specs_made(host)
        assert (await host.start(of, "debug"))[0]
        assert [spec["pidns"] for spec in specs] == [{"nsmode": "path", "value": f"/proc/{target.pid}/ns/pid"}]

    on_host(tmp_path, scenario)


A = EnvVar(name="A", value="x" * (MAX_EXPANSION_CHARS - 1))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"args": ("$(A)", "$(A)" * 99)}, "args: its references expand to more than"),
        ({"command": ("$(A)",) * 99}, "command: has more than"),
        ({"env": (A, EnvVar(name="B", value="$(A)$(A)"))}, 'environment variable "B": its references expand to more'),
    ],
)
def test_what_expands_to_more_than_a_process_can_be_given_is_a_wrong_configuration(
    tmp_path: Path, fields: dict[str, Any], words: str
) -> None:
    async def scenario(host: FakeHost) -> None:
        started, done = await host.start(pod(container("main", **({"env": (A,)} | fields))), "main")
        assert not started
        (result,) = (result for result in done.results if result.error)
        assert (result.target, result.error) == ("main", "CreateContainerConfigError")
        assert result.message.startswith(words)
        assert not host.running()

    on_host(tmp_path, scenario)


def specs_made(host: FakeHost) -> list[SpecDict]:
    """Specifications of the containers that are created from now on."""
    made: list[SpecDict] = []
    create = host.podman.create_container

    def note(spec: SpecDict) -> str:
        made.append(spec)
        return create(spec)

    host.podman.create_container = note  # type: ignore[method-assign]
    return made


@pytest.mark.parametrize("state", ["never made", "ended", "removed"])
def test_a_target_that_does_not_run_is_a_wrong_configuration(tmp_path: Path, state: str) -> None:
    async def scenario(host: FakeHost) -> None:
        of = all_kinds("main")
        await host.start(of, "init")
        if state != "never made":
            await host.start(of, "main")
        if state == "ended":
            host.podman.exit(host.running()["main"])
        if state == "removed":
            host.podman.remove_container(host.running()["main"])
        host.events.clear()
        started, done = await host.start(of, "debug")
        words = "target container main is not running" if state == "ended" else "unable to find target container main"
        assert not started
        assert [(r.target, r.error, r.message) for r in done.results] == [
            ("debug", "CreateContainerConfigError", words)
        ]
        assert [(e.reason, e.message) for e in host.events if e.type == "Warning"] == [("Failed", f"Error: {words}")]
        assert "debug" not in {c.name for c in (await host.observe(UID)).containers}
        again, _ = await host.start(pod("main", ephemeral_containers=(ephemeral("debug"),)), "debug")
        assert again

    on_host(tmp_path, scenario)


def test_a_target_that_went_after_the_look_is_found_out(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = all_kinds("main")
        await host.start(of, "main")
        before = await host.observe(UID)
        host.podman.exit(host.running()["main"])

        async def old_view(uid: str) -> object:
            return before

        host.observe = old_view  # type: ignore[assignment, method-assign]
        started, done = await host.start(of, "debug")
        assert (started, done.results[0].message) == (False, "target container main is not running")

    on_host(tmp_path, scenario)


def test_a_containers_file_is_empty_and_its_own(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod(container("main", termination_message_path="/dev/termination-log"))
        specs = specs_made(host)
        for attempt in range(3):
            assert (await host.start(of, "main", attempt))[0]
            file = termination_log(str(host.pods_dir), UID, "main", attempt)
            assert file.read_text() == ""
            assert specs[-1]["mounts"][-1]["source"] == str(file)
            file.write_text("last words")
            host.podman.exit(host.running()["main"], 1)
        assert len(list(file.parent.glob("*.termination-log"))) == 2
        newest = (await host.observe(UID)).newest("main")
        assert newest is not None
        assert (newest.state, newest.message) == (ContainerState.EXITED, "last words")

    on_host(tmp_path, scenario)


def test_the_count_does_not_fall_when_the_newest_container_is_gone_and_an_older_one_is_left(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("main")
        for attempt in range(2):
            assert (await host.start(of, "main", attempt))[0]
            host.podman.exit(host.running()["main"], 1)
        newest = (await host.observe(UID)).newest("main")
        assert newest is not None
        host.podman.remove_container(newest.id)
        assert (await host.start(of, "main", 1))[0]
        again = (await host.observe(UID)).newest("main")
        assert again is not None
        assert again.attempt == 2

    on_host(tmp_path, scenario)


def test_a_successor_needs_no_look_at_the_image_of_the_container_before_it(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        of = pod("main")
        assert (await host.start(of, "main"))[0]
        assert list(host.runtime.calls).count("inspect_image") == 1
        await asyncio.sleep(SEEN_FOR_S * 2)
        host.podman.exit(host.running()["main"], 1)
        host.reasons()
        assert (await host.start(of, "main", 1))[0]
        assert list(host.runtime.calls).count("inspect_image") == 1
        assert host.reasons()[0] == "Pulled spec.containers{main}"

    on_host(tmp_path, scenario)


def test_an_image_whose_name_was_taken_from_under_a_container_is_missed_by_the_create(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        image = "registry.test/app:1"
        of = pod(container("main", image=image))
        assert (await host.start(of, "main"))[0]
        await asyncio.sleep(SEEN_FOR_S * 2)
        host.podman.exit(host.running()["main"], 1)
        del host.podman.images[image]
        host.reasons()
        assert (await host.start(of, "main", 1))[0]
        told = [reason.partition(" ")[0] for reason in host.reasons()]
        assert told == ["Pulled", "Pulling", "Pulled", "Created", "Started"]

    on_host(tmp_path, scenario)


def test_without_a_path_there_is_no_file(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        specs = specs_made(host)
        await host.start(pod(container("main", termination_message_path="")), "main")
        assert [mount["destination"] for mount in specs[0]["mounts"]] == ["/etc/hosts"]
        assert not list((host.pods_dir / UID).glob("*.termination-log"))

    on_host(tmp_path, scenario)


def test_a_file_that_cannot_be_made_stops_this_container_only(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        (host.pods_dir / UID / "a.0.termination-log").mkdir(parents=True)
        started, done = await host.start(pod(container("a", termination_message_path="/x"), "b"), "a")
        assert not started
        (failed,) = [r for r in done.results if r.error]
        assert (failed.error, failed.message.split(":")[0]) == ("CreateContainerConfigError", "termination log")
        assert (await host.start(pod("b"), "b"))[0]

    on_host(tmp_path, scenario)


def test_a_failed_start_is_none(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        started, done = await host.start(pod(container("main", args=("/nonexistent",))), "main")
        assert (started, [r.error for r in done.results if r.error]) == (False, ["RunContainerError"])

    on_host(tmp_path, scenario)


def test_what_podman_left_half_started_is_made_anew_as_the_same_attempt(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        specs = specs_made(host)
        create = host.podman.create_container

        def half_started(spec: SpecDict) -> str:
            id = create(spec)
            host.podman.container(id).is_leftover = len(specs) == 1
            return id

        host.podman.create_container = half_started  # type: ignore[method-assign]
        started, _ = await host.start(pod(container("main", termination_message_path="/x")), "main")
        assert started
        assert (len(specs), specs[0]) == (2, specs[1])
        assert [c.id for c in host.podman.running()] == list(host.running().values())

    on_host(tmp_path, scenario)


def test_labels_do_not_depend_on_the_kind(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        for found in ("init", "main", "debug"):
            await host.start(all_kinds(), found)
        made = {c.labels[labels.CONTAINER_NAME]: c.labels.keys() for c in host.podman.running()}
        assert made["init"] == made["main"] == made["debug"]

    on_host(tmp_path, scenario)


def with_hook(*command: str) -> Pod:
    return pod(container("main", lifecycle=Lifecycle(post_start=LifecycleHandler(exec=ExecAction(command=command)))))


def test_a_hook_belongs_to_the_start(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        started, done = await host.start(with_hook("true"), "main")
        assert started
        assert [r.error for r in done.results] == ["", ""]
        assert [execed.command for execed in host.podman.execs] == [("true",)]
        assert [e.reason for e in host.events] == ["Pulled", "Created", "Started"]

    on_host(tmp_path, scenario)


def test_a_failed_hook_is_a_failed_start_of_a_container_that_ran(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        started, done = await host.start(with_hook("false"), "main")
        assert not started
        assert [(r.target, r.error) for r in done.results if r.error] == [("main", "PostStartHookError")]
        assert [e.reason for e in host.events] == ["Pulled", "Created", "Started", "FailedPostStartHook", "Killing"]
        assert [e.message for e in host.events if e.type == "Warning"] == ["PostStartHook failed"]
        assert host.running() == {}
        newest = (await host.observe(UID)).newest("main")
        assert newest is not None
        assert newest.state is ContainerState.EXITED

    on_host(tmp_path, scenario)


def guarded(**context: Any) -> Pod:
    return pod(container("main", security_context=SecurityContext(**context)))


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (guarded(run_as_non_root=True), "container has runAsNonRoot and image will run as root"),
        (guarded(run_as_user=65_537), "runAsUser 65537: there is no such user in a rootless container"),
        (
            guarded(privileged=True, capabilities=Capabilities(drop=("KILL",))),
            "capabilities.drop: a privileged container",
        ),
    ],
    ids=["root", "an id that there is not", "rights that would not be dropped"],
)
def test_an_identity_that_cannot_be_given_is_told(tmp_path: Path, of: Pod, words: str) -> None:
    async def scenario(host: FakeHost) -> None:
        started, done = await host.start(of, "main")
        assert not started
        (result,) = [result for result in done.results if result.action == "StartContainer"]
        assert result.error == "CreateContainerConfigError"
        assert result.message.startswith(words)
        assert [f"{e.reason}: {e.message}" for e in host.events if e.reason == "Failed"] == [
            f"Failed: Error: {result.message}"
        ]

    on_host(tmp_path, scenario)


def test_podman_is_asked_about_ids_only_when_they_matter(tmp_path: Path) -> None:
    root, group = SecurityContext(run_as_user=0), SecurityContext(run_as_group=7)
    contexts = {"first": root, "root": root, "group": group}
    of = pod(*(container(name, security_context=context) for name, context in contexts.items()))

    async def scenario(host: FakeHost) -> None:
        made = specs_made(host)
        calls = [0]
        for name in contexts:
            await host.start(of, name)
            calls.append(host.runtime.counts().calls)
        assert calls[3] - calls[2] == calls[2] - calls[1] + 1, "which ids there are; the image has been looked at"
        assert [spec.get("user") for spec in made] == ["0", "0", "0:7"]

    on_host(tmp_path, scenario)


def test_an_image_that_is_gone_by_then_is_told(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        await host.start(pod(container("main")), "main")
        host.podman.images.clear()
        started, done = await host.start(guarded(run_as_non_root=True), "main", attempt=1)
        assert not started
        assert f'image "{IMAGE}" not found' in [result.message for result in done.results]

    on_host(tmp_path, scenario)


def test_an_image_is_looked_at_once_for_all_containers_that_must_not_run_as_root(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        host.podman.images[IMAGE] = msgspec.structs.replace(host.podman.images[IMAGE], user="1000")
        context = PodSecurityContext(run_as_non_root=True)
        await host.sync(pod("a", "b", "c", security_context=context))
        assert host.running().keys() == {"a", "b", "c"}
        assert host.runtime.calls.count("inspect_image") == 1

    on_host(tmp_path, scenario)
