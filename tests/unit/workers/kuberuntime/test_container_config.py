"""Environment of a container when a sync makes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.volume import EmptyDirVolumeSource, Volume
from ipc.k8s.podobjects.config_objects import ConfigObjects
from ipc.k8s.podobjects.redaction import known_by, redacted
from tests.fakes.clock import simulate
from tests.support import pods
from tests.support.sync import FakeHost
from workers.kubecontainer.runtime import ErrorKind, InspectedContainer, RuntimeCallError, SpecDict

ADDRESS = "10.88.0.7"
HOST_IP = "192.0.2.1"
PASSWORD = "let me in"
OBJECTS = ConfigObjects(
    config_maps={"c": ConfigMap(data={"GREETING": "hello"})},
    secrets={"s": Secret(data={"PASSWORD": PASSWORD.encode()})},
)


def container(*env: Mapping[str, Any], name: str = "main", **fields: Any) -> Container:
    return msgspec.convert(
        {"name": name, "image": pods.IMAGE, "args": ["sleep", "1000"], "env": env, **fields}, Container
    )


def field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


class WatchedHost(FakeHost):
    """A host whose sandboxes have an address. Notes what is made and whose address is looked at."""

    def __init__(self, logs_dir: Path) -> None:
        self.made: list[SpecDict] = []
        self.observation_requests: list[str] = []
        super().__init__(logs_dir)
        self._host_ips = (HOST_IP,)
        self.next_worker()

    def next_worker(self) -> None:
        super().next_worker()
        create, inspect = self.runtime.create_container, self.runtime.inspect_container

        async def create_container(spec: SpecDict) -> str:
            self.made.append(spec)
            return await create(spec)

        async def inspect_container(id: str) -> InspectedContainer:
            found = await inspect(id)
            if found.is_infra:
                self.observation_requests.append(id)
            return msgspec.structs.replace(found, ips=(ADDRESS,)) if found.is_infra else found

        self.runtime.create_container = create_container  # type: ignore[method-assign]
        self.runtime.inspect_container = inspect_container  # type: ignore[method-assign]

    def environments(self) -> list[dict[str, str]]:
        return [dict(spec["env"]) for spec in self.made]


def on_host(tmp_path: Path, scenario: Callable[[WatchedHost], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(WatchedHost(tmp_path / "logs"))

    simulate(main)


def errors(done: Any) -> list[tuple[str, str]]:
    return [(result.error, result.message) for result in done.results if result.error]


def told(done: Any) -> list[tuple[str, str]]:
    """The errors as the master tells them."""
    known = known_by(OBJECTS.secrets.values())
    return [(error, redacted(message, known)) for error, message in errors(done)]


def test_the_address_of_a_sandbox_that_was_just_made(tmp_path: Path) -> None:
    of = pods.pod(container(field("IP", "status.podIP")), container(field("IPS", "status.podIPs"), name="other"))

    async def scenario(host: WatchedHost) -> None:
        done = await host.sync(of)
        assert (done.error, errors(done)) == ("", [])
        assert host.environments() == [{"IP": ADDRESS}, {"IPS": ADDRESS}]
        assert {spec["hostname"] for spec in host.made} == {"web"}

    on_host(tmp_path, scenario)


def test_the_address_of_a_sandbox_that_was_there(tmp_path: Path) -> None:
    """As it was seen: Podman is not asked again."""
    of = pods.pod(container(field("IP", "status.podIP")))

    async def scenario(host: WatchedHost) -> None:
        await host.sync(pods.pod(container()))
        host.made.clear()
        host.observation_requests.clear()
        view = await host.observe(pods.UID)
        sandboxes = tuple(msgspec.structs.replace(sandbox, ips=("10.88.0.8",)) for sandbox in view.sandboxes)
        await host.sync(of, view=msgspec.structs.replace(view, sandboxes=sandboxes))
        assert (host.environments(), host.observation_requests) == ([{"IP": "10.88.0.8"}], [])

    on_host(tmp_path, scenario)


def test_in_the_hosts_network_the_hosts_address_is_the_pods(tmp_path: Path) -> None:
    of = pods.pod(container(field("IP", "status.podIP"), field("IPS", "status.podIPs")), host_network=True)

    async def scenario(host: WatchedHost) -> None:
        await host.sync(of)
        assert host.environments() == [{"IP": HOST_IP, "IPS": HOST_IP}]
        assert "hostname" not in host.made[0], "nor a name of its own"
        assert host.observation_requests == []

    on_host(tmp_path, scenario)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMapRef": {"name": "c"}}, 'configmap "c" not found'),
        ({"secretRef": {"name": "s"}}, 'secret "s" not found'),
    ],
)
def test_a_container_waits_for_its_objects(tmp_path: Path, source: Mapping[str, Any], message: str) -> None:
    of = pods.pod(container(envFrom=[source]), container(name="other"))

    async def scenario(host: WatchedHost) -> None:
        done = await host.sync(of)
        assert errors(done) == [("CreateContainerConfigError", message)]
        assert host.running().keys() == {"other"}
        (failed,) = (event for event in host.events if event.reason == "Failed")
        assert (failed.type, failed.message) == ("Warning", f"Error: {message}")
        done = await host.sync(of, objects=OBJECTS)
        assert errors(done) == []
        assert host.running().keys() == {"main", "other"}

    on_host(tmp_path, scenario)


def test_a_container_that_only_has_variables_of_an_object_goes_on_when_that_changes(tmp_path: Path) -> None:
    """The hash covers what its manifest refers to, not what it found there: it sees the change when it starts again."""
    of = pods.pod(container(envFrom=[{"configMapRef": {"name": "c"}}]))
    changed = ConfigObjects(config_maps={"c": ConfigMap(data={"GREETING": "good bye"})})

    async def scenario(host: WatchedHost) -> None:
        await host.sync(of, objects=OBJECTS)
        before = host.running()
        assert (await host.sync(of, objects=changed)).changed is False
        assert (await host.sync(of)).changed is False, "nor when it is gone"
        assert host.running() == before
        host.podman.exit(before["main"], 1)
        await host.sync(of, objects=changed)
        assert host.environments() == [{"GREETING": "hello"}, {"GREETING": "good bye"}]

    on_host(tmp_path, scenario)


def test_a_secret_is_in_the_environment_and_nowhere_else(tmp_path: Path) -> None:
    secret = {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "PASSWORD"}}}
    of: Pod = pods.pod(container(secret))

    async def scenario(host: WatchedHost) -> None:
        done = await host.sync(of, objects=OBJECTS)
        assert host.environments() == [{"PASSWORD": PASSWORD}]
        elsewhere = [{key: value for key, value in spec.items() if key != "env"} for spec in host.made]
        assert PASSWORD not in repr((done, host.events, elsewhere, await host.observe(pods.UID)))

    on_host(tmp_path, scenario)


def test_a_secret_that_the_runtime_repeats_is_told_to_nobody(tmp_path: Path) -> None:
    """An error of the OCI runtime has the command's first word in it, which the master leaves out."""
    secret = {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "PASSWORD"}}}
    of = pods.pod(container(secret, command=["/bin/$(PASSWORD)"], args=[]))

    async def scenario(host: WatchedHost) -> None:
        start = host.runtime.start_container

        async def start_container(id: str) -> None:
            if not host.made:  # the sandbox's
                return await start(id)
            (word,) = host.made[-1]["entrypoint"]
            raise RuntimeCallError(ErrorKind.COMMAND, "start", f"crun: executable file `{word}` not found")

        host.runtime.start_container = start_container  # type: ignore[method-assign]
        done = await host.sync(of, objects=OBJECTS)
        assert told(done) == [("RunContainerError", "crun: executable file `/bin/<secret>` not found")]

    on_host(tmp_path, scenario)


def test_a_secret_in_a_path_is_told_to_nobody(tmp_path: Path) -> None:
    secret = {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "PASSWORD"}}}
    mount = {"name": "v", "mountPath": "/v", "subPathExpr": "/$(PASSWORD)"}
    of = pods.pod(
        container(secret, volumeMounts=[mount]), volumes=(Volume(name="v", empty_dir=EmptyDirVolumeSource()),)
    )

    async def scenario(host: WatchedHost) -> None:
        done = await host.sync(of, objects=OBJECTS)
        refused = "error SubPath `/<secret>` must not be an absolute path"
        assert told(done) == [("CreateContainerConfigError", refused)]

    on_host(tmp_path, scenario)
