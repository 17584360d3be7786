"""Gifts of Podman to a container's process: its environment, byte by byte, and its command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.container import Container
from ipc.k8s.kubecontainer.pod_status import ContainerState
from ipc.k8s.podobjects.config_objects import ConfigObjects
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.link.messages.pod_worker import SyncDone
from tests.contract.podman_host import POLITE, PodmanHost, errors
from tests.support.podman_service import IMAGE, podman

pytestmark = pytest.mark.podman

PASSWORD: Final = "pass word'\"\n$(GREETING)ä"
OBJECTS: Final = ConfigObjects(
    config_maps={"c": ConfigMap(data={"GREETING": "hello", "a.b-c": "dotted"})},
    secrets={"s": Secret(data={"password": PASSWORD.encode()})},
)
OF_PODMAN: Final = frozenset({"PATH", "TERM", "container", "HOSTNAME", "HOME"})
"""Podman 5 sets TERM for terminals only."""


def container(*env: Mapping[str, Any], **fields: Any) -> Container:
    given = {"name": "main", "image": IMAGE, "args": ["sh", "-c", POLITE], "env": env, **fields}
    return msgspec.convert(given, Container)


def value_from(name: str, **source: Any) -> dict[str, Any]:
    return {"name": name, "valueFrom": source}


def environ(pid: int) -> str:
    return Path("/proc", str(pid), "environ").read_bytes().decode()


async def environment(host: PodmanHost, of: Container, **request: Any) -> dict[str, str]:
    """Environment of the container's first process, once it says that it is ready."""
    done = await host.sync(host.pod(of), **request)
    assert (done.error, errors(done)) == ("", []), done.results
    await host.logged("main", 0, "ready")
    found = await host.until("main", ContainerState.RUNNING)
    words = environ(found.pid).split("\0")
    return dict(word.split("=", 1) for word in words if word)


async def test_values_and_names_arrive_as_they_are(host: PodmanHost) -> None:
    literals = {
        "1 odd name!": "x",
        "lower.case-and_1": " blanks ",
        "QUOTES": 'it\'s "so"',
        "LINES": "one\ntwo\n",
        "SHELL_WORDS": "$HOME ${PATH} `id` \\n *",
        "EMPTY": "",
        "ÜNICODE": "grüße 😀",
        "EQUALS": "a=b=c",
    }
    env = [{"name": name, "value": value} for name, value in literals.items()]
    found = await environment(host, container(*env))
    assert {name: value for name, value in found.items() if name not in OF_PODMAN} == literals
    assert found.keys() >= OF_PODMAN - {"TERM"}


async def test_every_source(host: PodmanHost) -> None:
    host.configure(
        "node",
        name="node-1",
        host_ips=lambda: ("192.0.2.1", "fd00::1"),
        resources=NodeResources(allocatable={"memory": "2Gi"}),
    )
    of = container(
        {"name": "GREETING", "value": "$(GREETING) again"},
        value_from("PASSWORD", secretKeyRef={"name": "s", "key": "password"}),
        value_from("POD", fieldRef={"fieldPath": "metadata.name"}),
        value_from("NODE", fieldRef={"fieldPath": "spec.nodeName"}),
        value_from("HOST", fieldRef={"fieldPath": "status.hostIP"}),
        value_from("HOSTS", fieldRef={"fieldPath": "status.hostIPs"}),
        value_from("MEMORY", resourceFieldRef={"resource": "limits.memory", "divisor": "1Mi"}),
        value_from("CPU", resourceFieldRef={"resource": "requests.cpu", "divisor": "1m"}),
        value_from("NOT_THERE", configMapKeyRef={"name": "c", "key": "x", "optional": True}),
        {"name": "ALL", "value": "$(POD) on $(NODE): $(NOT_THERE)"},
        envFrom=[{"configMapRef": {"name": "c"}}, {"prefix": "S_", "secretRef": {"name": "s"}}],
        resources={"requests": {"cpu": "0.5"}},
    )
    found = await environment(host, of, objects=OBJECTS)
    assert {name: value for name, value in found.items() if name not in OF_PODMAN} == {
        "GREETING": "hello again",
        "a.b-c": "dotted",
        "S_password": PASSWORD,
        "PASSWORD": PASSWORD,
        "POD": "web",
        "NODE": "node-1",
        "HOST": "192.0.2.1",
        "HOSTS": "192.0.2.1,fd00::1",
        "MEMORY": "2048",
        "CPU": "500",
        "ALL": "web on node-1: $(NOT_THERE)",
    }
    assert PASSWORD not in repr(host.events)
    shown = await host.containers()
    (row,) = msgspec.json.decode(podman("inspect", shown["main"].id))
    row["Config"]["Env"], said = [], PASSWORD.partition("'")[0]
    assert said not in msgspec.json.encode(row).decode(), "but for its environment Podman shows it nowhere"


async def test_commands_see_the_environment(host: PodmanHost) -> None:
    of = container(
        {"name": "WORDS", "value": "two words"},
        envFrom=[{"configMapRef": {"name": "c"}}],
        command=["sh", "-c", f'echo "$0|$1|$2|$3|$(GREETING)"; {POLITE}', "$(WORDS)"],
        args=["$(a.b-c)", "$$(WORDS)", "$(NONE)"],
    )
    await environment(host, of, objects=OBJECTS)
    assert "stdout F two words|dotted|$(WORDS)|$(NONE)|hello\n" in host.log("main", 0)


async def test_a_command_that_is_empty_runs_none_of_its_arguments(host: PodmanHost) -> None:
    of = container({"name": "EMPTY", "value": ""}, command=["$(EMPTY)"], args=["sh", "-c", "echo ran"])
    done: SyncDone = await host.sync(host.pod(of))
    assert errors(done) == ["RunContainerError"]
    assert "ran" not in host.log("main", 0)


async def test_an_error_does_not_tell_a_secret_in_the_command(host: PodmanHost) -> None:
    """The OCI runtime's message has it. What stays on disk and is observed has not; the master redacts the rest."""
    word = "hunter22"
    secret = value_from("WORD", secretKeyRef={"name": "s", "key": "word"})
    objects = ConfigObjects(secrets={"s": Secret(data={"word": word.encode()})})
    done = await host.sync(host.pod(container(secret, command=["/bin/$(WORD)"], args=[])), objects=objects)
    (failed,) = (result for result in done.results if result.error)
    assert failed.error == "RunContainerError"
    observed = repr(await host.observe(host.uid))
    assert "/bin/<secret>" in observed
    assert word not in observed


@pytest.fixture
def image_with_environment() -> Iterator[str]:
    name = "localhost/rootlet-test-environment:1"
    made = podman("create", IMAGE, "true").strip()
    changes = ("ENV=A=image", "ENV=B=image", "ENV=HOSTNAME=0.0.0.0", 'ENTRYPOINT=["sh","-c"]', 'CMD=["false"]')
    podman("commit", "--quiet", *(word for change in changes for word in ("--change", change)), made, name)
    podman("rm", made)
    yield name
    podman("rmi", "--force", name)


async def test_what_the_manifest_does_not_say_is_the_images(host: PodmanHost, image_with_environment: str) -> None:
    env = [{"name": "B", "value": "manifest"}, {"name": "C", "value": "$(A)"}]
    found = await environment(host, container(*env, image=image_with_environment, args=[POLITE]))
    assert (found["A"], found["B"], found["C"], found["PATH"]) == ("image", "manifest", "$(A)", "/bin")
    assert found["HOSTNAME"] == "0.0.0.0"


async def test_what_podman_adds_gives_way(host: PodmanHost) -> None:
    given = {"PATH": "/bin:/usr/bin", "TERM": "dumb", "HOME": "/srv", "container": "mine"}
    found = await environment(host, container(*({"name": name, "value": value} for name, value in given.items())))
    assert {name: found[name] for name in given} == given


@pytest.mark.parametrize(("env", "variable"), [((), "web"), (({"name": "HOSTNAME", "value": "::"},), "::")])
async def test_the_host_name_and_the_variable(host: PodmanHost, env: tuple[dict[str, str], ...], variable: str) -> None:
    """Podman's own idea of the variable wins over the manifest's where containers share a UTS namespace."""
    script = f"hostname; echo $(cat /etc/hostname); {POLITE}"
    found = await environment(host, container(*env, args=["sh", "-c", script]))
    assert found["HOSTNAME"] == variable
    assert [line.split(" ", 3)[3] for line in host.log("main", 0).splitlines()] == ["web", "web", "ready"]


async def test_a_container_without_its_objects_waits(host: PodmanHost) -> None:
    of = host.pod(container(envFrom=[{"secretRef": {"name": "s"}}]))
    done = await host.sync(of)
    assert [(r.error, r.message) for r in done.results if r.error] == [
        ("CreateContainerConfigError", 'secret "s" not found')
    ]
    assert await host.containers() == {}
    assert errors(await host.sync(of, objects=OBJECTS)) == []
    before = await host.until("main", ContainerState.RUNNING)
    changed = ConfigObjects(secrets={"s": Secret(data={"password": b"new"})})
    assert (await host.sync(of, objects=changed)).changed is False
    assert (await host.containers())["main"].id == before.id
