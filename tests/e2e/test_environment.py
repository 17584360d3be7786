"""Environments: literals, references, fields of the pod, and resources."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import psutil
import pytest

from ipc.k8s.api.quantity import parse_quantity
from tests.e2e.agent import Agent, Json
from tests.e2e.manifests import STAY, container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

END: Final = "that was all"
TELL: Final = f"env; echo '{END}'; {STAY}"
OF_PODMAN: Final = frozenset({"PATH", "TERM", "container", "HOSTNAME", "HOME", "SHLVL", "PWD"})
"""Variables that Podman and the shell add."""


def literal(name: str, value: str) -> Json:
    return {"name": name, "value": value}


def field(name: str, path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def resource(name: str, resource: str, divisor: str = "0", **more: Any) -> Json:
    return {"name": name, "valueFrom": {"resourceFieldRef": {"resource": resource, "divisor": divisor, **more}}}


def told(agent: Agent, name: str, container: str = "main") -> dict[str, str]:
    """The environment that the container has printed."""
    log: list[str] = []

    def has_told() -> bool:
        log[:] = agent.output(name, container).splitlines()
        return END in log

    agent.until(has_told, f"{container} of {name} has told its environment")
    return dict(line.split("=", 1) for line in log[: log.index(END)])


def own(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in OF_PODMAN}


def printed(agent: Agent, name: str) -> dict[str, str]:
    """The environment of a container that is ``env`` itself: a shell passes on no names that are none of its own."""
    agent.until(lambda: agent.row(name)[2:3] == ["Completed"], f"{name} has come to its end")
    return own(dict(line.split("=", 1) for line in agent.cli("logs", name).out.splitlines()))


def test_values_and_references(agent: Agent) -> None:
    env = [
        literal("A", "a"),
        literal("B", "$(A)b $(LATER) $$(A) $(NONE)"),
        literal("LATER", "later"),
        literal("A", "$(A)a"),
        literal("1 odd name!", 'it\'s "odd"'),
        literal("EMPTY", ""),
    ]
    agent.write(pod("literals", container(command=["env"], env=env), restartPolicy="Never"))
    assert printed(agent, "literals") == {
        "A": "aa",
        "B": "ab $(LATER) $(A) $(NONE)",
        "LATER": "later",
        "1 odd name!": 'it\'s "odd"',
        "EMPTY": "",
    }


def test_commands_and_arguments_see_them(agent: Agent) -> None:
    says = container(
        command=["sh", "-c", 'echo "$0|$1|$2|$(WORDS)"', "$(WORDS)"],
        args=["$(OF)", "$$(OF)"],
        env=[literal("WORDS", "two words"), field("OF", "metadata.name")],
    )
    agent.write(pod("words", says, restartPolicy="Never"))
    agent.until(lambda: agent.row("words")[2:3] == ["Completed"], "it has come to its end")
    assert agent.cli("logs", "words").out == "two words|words|$(OF)|two words\n"


def test_fields_of_the_pod(agent: Agent) -> None:
    paths = {
        "NAME": "metadata.name",
        "NAMESPACE": "metadata.namespace",
        "POD_UID": "metadata.uid",
        "LABEL": "metadata.labels['app.kubernetes.io/name']",
        "ANNOTATION": "metadata.annotations['example.org/Note']",
        "NO_LABEL": "metadata.labels['none']",
        "NODE": "spec.nodeName",
        "ACCOUNT": "spec.serviceAccountName",
        "HOST_IP": "status.hostIP",
        "HOST_IPS": "status.hostIPs",
        "POD_IP": "status.podIP",
        "POD_IPS": "status.podIPs",
    }
    env = [field(name, path) for name, path in paths.items()]
    manifest = pod("fields", container(script=TELL, env=env), serviceAccountName="builder")
    manifest["metadata"] |= {
        "namespace": "shop",
        "labels": {"app.kubernetes.io/name": "till"},
        "annotations": {"example.org/Note": "a 'quoted' note"},
    }
    agent.run(manifest)
    seen = agent.pods()["fields"]
    assert own(told(agent, "fields")) == {
        "NAME": "fields",
        "NAMESPACE": "shop",
        "POD_UID": seen["metadata"]["uid"],
        "LABEL": "till",
        "ANNOTATION": "a 'quoted' note",
        "NO_LABEL": "",
        "NODE": "e2e",
        "ACCOUNT": "builder",
        "HOST_IP": seen["status"]["hostIP"],
        "HOST_IPS": ",".join(each["ip"] for each in seen["status"]["hostIPs"]),
        "POD_IP": seen["status"].get("podIP", ""),
        "POD_IPS": ",".join(ip["ip"] for ip in seen["status"].get("podIPs", ())),
    }


def test_the_address_in_the_hosts_network(agent: Agent) -> None:
    env = [field("POD_IP", "status.podIP"), field("HOST_IP", "status.hostIP")]
    agent.run(pod("host-address", container(script=TELL, env=env), hostNetwork=True))
    found = told(agent, "host-address")
    assert found["POD_IP"] == found["HOST_IP"] == agent.pods()["host-address"]["status"]["podIP"]


def test_resources(agent: Agent) -> None:
    env = [
        resource("LIMIT", "limits.cpu", "1m"),
        resource("CPUS", "limits.cpu"),
        resource("REQUEST", "requests.memory", "1Mi"),
        resource("OTHER", "limits.memory", "1Mi", containerName="other"),
    ]
    given = {"limits": {"cpu": "1500m"}, "requests": {"memory": "64.5Mi"}}
    of_node = [
        resource("CPU", "limits.cpu"),
        resource("MEMORY", "limits.memory", "1Ki"),
        resource("STORAGE", "limits.ephemeral-storage"),
        resource("REQUEST", "requests.cpu"),
    ]
    agent.run(
        pod(
            "resources",
            container(script=TELL, env=env, resources=given),
            container("other", resources={"limits": {"memory": "100Mi"}}),
            container("of-node", script=TELL, env=of_node),
        )
    )
    assert own(told(agent, "resources")) == {"LIMIT": "1500", "CPUS": "2", "REQUEST": "65", "OTHER": "100"}
    found = own(told(agent, "resources", "of-node"))
    assert found["CPU"] == str(len(os.sched_getaffinity(agent.process.pid)))
    assert found["MEMORY"] == str(-(-psutil.virtual_memory().total // parse_quantity("1Ki")))
    assert int(found["STORAGE"]) == psutil.disk_usage(str(agent.state)).total
    assert found["REQUEST"] == "0"


@pytest.mark.parametrize(
    ("variable", "path", "what"),
    [
        (field("A", "status.phase"), "fieldRef.fieldPath", 'Unsupported value: "status.phase"'),
        (resource("A", "limits.memory", "1m"), "resourceFieldRef.divisor", 'Unsupported value: "1m"'),
        ({"name": "A=B"}, "", 'Invalid value: "A=B"'),
    ],
    ids=["field", "divisor", "name"],
)
def test_what_is_wrong_is_refused_with_its_place(agent: Agent, variable: Json, path: str, what: str) -> None:
    agent.write(pod("refused", container(env=[literal("FINE", "f"), variable])))
    place = f"spec.containers[0].env[1].{f'valueFrom.{path}' if path else 'name'}: {what}"
    agent.until(lambda: any(place in event["message"] for event in agent.events()), place)
    assert "refused" not in agent.pods()
    agent.remove("refused")
