"""Fields of a manifest that no other file of end-to-end tests is about."""

from __future__ import annotations

import functools
import socket
from typing import Any

import pytest

from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, Json, container, pod
from tests.support.servers.local_servers import unused_port

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

UID = "5f3c1c5e-7d0a-4d55-9a55-000000000042"
ELSEWHERE = "127.0.0.2"


def connects(address: str, port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(1.0)
        return client.connect_ex((address, port)) == 0


def test_what_the_object_states_is_told(agent: Agent) -> None:
    """But for what a cluster has counted: that begins anew here."""
    manifest = pod("stated", container(), labels={"version": "1"})
    stated = {"uid": UID, "namespace": "elsewhere"}
    manifest["metadata"] |= {**stated, "generation": 7, "creationTimestamp": "2020-02-02T20:20:20Z"}
    for number in (1, 2):
        manifest["metadata"]["labels"] = {"version": str(number)}
        agent.write(manifest)
        agent.until(functools.partial(_is_of_generation, agent, number), f"generation {number}")
        told = _metadata(agent)
        assert {key: told[key] for key in stated} == stated
        assert told["labels"] == {"version": str(number)}
        assert told["creationTimestamp"] > "2026"
    assert agent.cli("get", "pod", "stated").code == 1, "in the default namespace there is none of that name"
    agent.remove("stated")


def _is_of_generation(agent: Agent, number: int) -> bool:
    return _metadata(agent).get("generation") == number


def _metadata(agent: Agent) -> Json:
    found = (each["metadata"] for each in agent.get("/api/v1/pods")["items"])
    return next((metadata for metadata in found if metadata["name"] == "stated"), {})


def _tells(agent: Agent, words: str) -> bool:
    return words in agent.log_text()


def test_another_kind_or_version_is_refused(agent: Agent) -> None:
    agent.write_file("kind.yaml", "apiVersion: v1\nkind: Pot\nmetadata: {name: x}\n")
    agent.write_file("version.yaml", "apiVersion: v2\nkind: Pod\nmetadata: {name: x}\nspec: {containers: []}\n")
    for file, field in (("kind.yaml", "kind"), ("version.yaml", "apiVersion")):
        start = f"{file}: document 1: {field}: "
        agent.until(functools.partial(_tells, agent, start), f"{file} is refused")
    for file in ("kind.yaml", "version.yaml"):
        (agent.manifests / file).unlink()


def test_the_working_directory(agent: Agent) -> None:
    agent.write(pod("directory", container(script=f"pwd; {STAY}", workingDir="/bin")))
    agent.until(lambda: agent.output("directory") == "/bin\n", "it works there")
    agent.remove("directory")


@pytest.mark.parametrize(
    ("name", "directory", "fields"),
    [
        ("missing", "/srv/a/b", {}),
        ("read-only", "/srv/a/b", {"securityContext": {"readOnlyRootFilesystem": True}}),
        ("another-user", "/srv/a", {"securityContext": {"runAsUser": 1234, "runAsGroup": 1234}}),
        ("in-a-volume", "/data/a/b", {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}),
        ("in-a-part", "/data/a/b", {"volumeMounts": [{"name": "data", "mountPath": "/data", "subPath": "part"}]}),
    ],
)
def test_a_working_directory_that_is_not_there_is_made(
    agent: Agent, name: str, directory: str, fields: dict[str, Any]
) -> None:
    made = container(script=f"pwd; {STAY}", workingDir=directory, **fields)
    agent.write(pod(name, made, volumes=[{"name": "data", "emptyDir": {}}]))
    agent.until(lambda: agent.output(name) == f"{directory}\n", "it works there")
    agent.remove(name)


def test_a_port_is_published_where_it_was_asked_for(agent: Agent) -> None:
    port = unused_port(address="")
    ports = [{"containerPort": 8080, "hostPort": port, "hostIP": ELSEWHERE}]
    agent.write(pod("published", container(script="exec httpd -f -p 8080", ports=ports)))
    agent.until_running(["published"])
    agent.until(lambda: connects(ELSEWHERE, port), "the port is published")
    assert not connects("127.0.0.1", port)
    agent.remove("published")


def test_the_node_of_a_manifest_is_overwritten(agent: Agent) -> None:
    agent.run(pod("from-elsewhere", nodeName="elsewhere"))
    assert agent.pods()["from-elsewhere"]["spec"]["nodeName"] == "e2e"
    agent.remove("from-elsewhere")


def test_a_pod_for_another_node_is_rejected(new_agent: NewAgent) -> None:
    agent = new_agent(nodeLabels={"disk": "ssd"})
    agent.start()

    def wants(operator: str, *values: str) -> Json:
        expression = {"key": "disk", "operator": operator, "values": list(values)}
        required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}

    agent.write(
        pod("selects", nodeSelector={"disk": "ssd", "kubernetes.io/os": "linux"}, affinity=wants("In", "ssd")),
        pod("selects-another", nodeSelector={"disk": "hdd"}),
        pod("wants-another", affinity=wants("NotIn", "ssd")),
    )
    agent.until_running(["selects"])
    for name in ("selects-another", "wants-another"):
        agent.until(functools.partial(_is_rejected, agent, name), f"{name} is rejected")
    agent.remove("selects", "selects-another", "wants-another")


def _is_rejected(agent: Agent, name: str) -> bool:
    status = agent.pods().get(name, {"status": {}})["status"]
    words = "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    found = (status.get("phase"), status.get("reason"), status.get("message"))
    return found == ("Failed", "NodeAffinity", words)
