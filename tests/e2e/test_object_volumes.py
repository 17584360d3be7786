"""Volumes of ConfigMaps, Secrets and pod fields: what containers see, when a pod waits, what changes while it runs."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agent import Agent, Json, container_status, restart_count
from tests.e2e.manifests import STAY, config_map, container, pod, secret

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

PLANTED = "planted-5ecret-of-a-volume"
GROUP = 4321


def of_config_map(name: str, **source: Any) -> Json:
    """A volume named ``c``."""
    return {"name": "c", "configMap": {"name": name, **source}}


def of_secret(name: str, **source: Any) -> Json:
    """A volume named ``s``."""
    return {"name": "s", "secret": {"secretName": name, **source}}


def mounting(name: str, *volumes: Json, labels: dict[str, str] | None = None, **mounts: Json) -> Json:
    """Each volume at ``/NAME``; ``mounts`` are further ones, by volume."""
    places = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    more = [{"name": volume, **mount} for volume, mount in mounts.items()]
    return pod(name, container(volumeMounts=[*places, *more]), volumes=list(volumes), labels=labels)


def directory(agent: Agent, name: str, kind: str, volume: str) -> Path:
    """A volume's, on the host."""
    root = agent.state if kind == "configmap" else agent.memory
    uid: str = agent.pods()[name]["metadata"]["uid"]
    return root / "pods" / uid / "volumes" / f"kubernetes.io~{kind}" / volume


@pytest.fixture(scope="module")
def seeing(agent: Agent) -> Agent:
    """An agent with a pod that sees a volume of each kind."""
    item = {"path": "inner/b", "mode": 0o400}
    sources = [
        {"configMap": {"name": "objects-map", "items": [{"key": "a", "path": "of-map"}]}},
        {"secret": {"name": "objects-secret", "items": [{"key": "password", "path": "of-secret", "mode": 0o440}]}},
        {"downwardAPI": {"items": [{"path": "of-pod", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]
    fields = [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}, "mode": 0o404},
    ]
    volumes = [
        of_config_map("objects-map", items=[{"key": "a", "path": "a"}, {"key": "b", **item}], defaultMode=0o604),
        of_secret("objects-secret", defaultMode=0o400),
        {"name": "d", "downwardAPI": {"items": fields, "defaultMode": 0o640}},
        {"name": "p", "projected": {"sources": sources, "defaultMode": 0o600}},
    ]
    agent.write(config_map("objects-map", a="1", b="2", unseen="3"), secret("objects-secret", password=PLANTED))
    agent.run(mounting("seeing", *volumes, labels={"x": "1", "a": "2"}))
    return agent


@pytest.mark.parametrize(
    ("path", "mode", "text"),
    [
        ("/c/a", "-rw----r--", "1"),
        ("/c/inner/b", "-r--------", "2"),
        ("/s/password", "-r--------", PLANTED),
        ("/d/labels", "-rw-r-----", 'a="2"\nx="1"'),
        ("/d/name", "-r-----r--", "seeing"),
        ("/p/of-map", "-rw-------", "1"),
        ("/p/of-secret", "-r--r-----", PLANTED),
        ("/p/of-pod", "-rw-------", "default"),
    ],
)
def test_what_a_container_sees(seeing: Agent, path: str, mode: str, text: str) -> None:
    said = seeing.inside("seeing", f"ls -lL {path}; cat {path}; echo; echo x >{path}; ls {Path(path).parent}")
    about, _, rest = said.partition("\n")
    content, _, errors = rest.partition("\nsh: ")
    assert about.startswith(mode)
    assert content == text
    assert "Read-only file system" in errors
    assert "unseen" not in errors


def test_a_secret_is_in_memory_only(seeing: Agent) -> None:
    of_secret = directory(seeing, "seeing", "secret", "s")
    assert (of_secret / "password").read_text() == PLANTED
    assert [stat.S_IMODE(above.stat().st_mode) for above in of_secret.parents[:4]] == [0o700] * 4
    for root in (seeing.state, seeing.directory):
        found = [path for path in root.rglob("*") if path.is_file() and PLANTED.encode() in path.read_bytes()]
        assert [path for path in found if path.parent != seeing.manifests] == []
    assert PLANTED not in str(seeing.get("/api/v1/pods")) + str(seeing.events()) + seeing.describe("seeing")


def test_a_pod_waits_until_its_objects_are_there(agent: Agent) -> None:
    agent.write(mounting("waits", of_config_map("late-map"), of_secret("late-secret")))
    told = {
        'MountVolume.SetUp failed for volume "c" : configmap "late-map" not found',
        'MountVolume.SetUp failed for volume "s" : secret "late-secret" not found',
    }
    agent.until(lambda: told <= set(agent.messages("waits", "FailedMount")), "it is told what is missing")
    shown = agent.pods()["waits"]
    assert shown["status"]["phase"] == "Pending"
    assert container_status(shown)["state"]["waiting"]["reason"] == "ContainerCreating"
    agent.write(config_map("late-map", a="1"), secret("late-secret", password=PLANTED))
    agent.until_ready(["waits"])
    assert agent.inside("waits", "cat /c/a /s/password") == f"1{PLANTED}"


def test_what_is_optional_is_not_waited_for(agent: Agent) -> None:
    item = [{"key": "none", "path": "none"}]
    agent.write(config_map("there", a="1"))
    volumes = (
        of_config_map("there", optional=True, items=item),
        of_secret("nowhere", optional=True),
    )
    agent.run(mounting("optional", *volumes))
    assert agent.inside("optional", "ls /c /s; echo done") == "/c:\n\n/s:\ndone"


def test_changes_reach_a_running_pod(agent: Agent) -> None:
    def wanted(**labels: str) -> Json:
        fields = {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}
        volumes = (of_config_map("changing"), of_secret("changing-secret"), {"name": "d", "downwardAPI": fields})
        part = {"mountPath": "/part", "subPath": "a"}
        return mounting("changed", *volumes, labels=labels, c=part)

    def sees(text: str) -> None:
        script = "cat /c/a; ls /c; cat /s/password /d/labels"
        agent.until(lambda: agent.inside("changed", script) == text, f"it sees {text!r}")

    agent.write(config_map("changing", a="old", gone="x"), secret("changing-secret", password="first"))
    agent.run(wanted(tier="one"))
    sees('olda\ngone\nfirsttier="one"')
    before = agent.eye.running("changed")
    agent.write(config_map("changing", a="new", come="x"), secret("changing-secret", password="second"))
    agent.write(wanted(tier="two"))
    sees('newa\ncome\nsecondtier="two"')
    assert agent.inside("changed", "cat /part") == "old", "a part of a volume is what it was"
    agent.remove("changing", "changing-secret")
    told = 'MountVolume.SetUp failed for volume "c" : configmap "changing" not found'
    agent.until(lambda: told in agent.messages("changed", "FailedMount"), "it is told that the map is gone")
    sees('newa\ncome\nsecondtier="two"')
    assert agent.eye.running("changed") == before
    assert restart_count(agent.pods()["changed"]) == 0


def test_the_group_owns_what_is_written_before_it_is_seen(agent: Agent) -> None:
    """A file that the group could not read for a moment would be a gap for a container of another user."""
    watch = "while :; do ls -lnL /s/password; done >/tmp/seen 2>&1"
    wanted = mounting("group", of_secret("of-group", defaultMode=0o400))
    wanted["spec"]["securityContext"] = {"fsGroup": GROUP}
    wanted["spec"]["containers"][0]["command"][-1] = f"mkdir -p /tmp; {watch} & {STAY}"
    agent.write(secret("of-group", password=PLANTED))
    agent.run(wanted)
    for number in range(3):
        agent.write(secret("of-group", password=PLANTED + "!" * number))
        size = len(PLANTED) + number
        agent.until(lambda: f" {size} " in agent.inside("group", "ls -lnL /s/password"), "it is written")  # noqa: B023
    seen = agent.inside("group", "cat /tmp/seen").splitlines()
    assert len(seen) > 3
    assert {(line.split()[0], line.split()[3]) for line in seen} == {("-r--r-----", str(GROUP))}


def test_volumes_go_with_their_pod(agent: Agent) -> None:
    agent.write(config_map("goes-map", a="1"), secret("goes-secret", a=PLANTED))
    agent.run(mounting("goes", of_config_map("goes-map"), of_secret("goes-secret")))
    volumes = [directory(agent, "goes", "configmap", "c"), directory(agent, "goes", "secret", "s")]
    assert all((volume / "a").exists() for volume in volumes)
    agent.remove("goes")
    agent.until_gone(["goes"])
    assert not any(volume.parents[2].exists() for volume in volumes)


@pytest.mark.parametrize(
    ("source", "fields", "why"),
    [
        ("serviceAccountToken", {"path": "token"}, "no API server"),
        ("clusterTrustBundle", {"name": "bundle", "path": "bundle"}, "no API server"),
        ("podCertificate", {"signerName": "a/b", "keyType": "ED25519", "keyPath": "key"}, "nobody here asks for"),
    ],
)
def test_what_only_a_cluster_has_is_refused_in_words(agent: Agent, source: str, fields: Json, why: str) -> None:
    name = f"refused-{source.lower()}"
    agent.write(mounting(name, {"name": "p", "projected": {"sources": [{source: fields}]}}))
    told = f"spec.volumes[0].projected.sources[0].{source}"

    def is_told() -> bool:
        return any(told in event["message"] and why in event["message"] for event in agent.events())

    agent.until(is_told, "it is told why")
    assert name not in agent.pods()
    agent.remove(name)
