"""fsGroup: to whom volumes belong, as containers see it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.e2e.agent import Agent, restart_count
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.volumes import claim, empty_dir, host_path, mount, mounting, pod_directory, unshare
from tests.podman_service import podman, remove_by_force

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

GROUP = 2000
NUMBERS = itertools.count()


@pytest.fixture
def disk(agent: Agent) -> Iterator[str]:
    """A volume of Podman's with something in it, and a link that leads out of it."""
    name = f"{agent.instance}-owned-{next(NUMBERS)}"
    podman("volume", "create", "--opt", "o=uid=0", name)
    place = podman("volume", "inspect", "--format", "{{.Mountpoint}}", name).strip()
    unshare(
        "sh", "-c", f"mkdir {place}/in; echo x > {place}/in/file; chmod 600 {place}/in/file; ln -s /etc {place}/link"
    )
    yield name
    remove_by_force("volume", name)


def test_volumes_belong_to_the_group(agent: Agent, disk: str) -> None:
    sees = [
        mount("data", "/data"),
        mount("memory", "/memory"),
        mount("disk", "/disk"),
        mount("new", "/new"),
        mount("written", "/written"),
    ]
    new = f"{disk}-new"
    written = {"items": [{"path": "name", "mode": 0o400, "fieldRef": {"fieldPath": "metadata.name"}}]}
    volumes = [
        empty_dir("data"),
        empty_dir("memory", medium="Memory"),
        claim("disk", disk),
        claim("new", new),
        {"name": "written", "downwardAPI": written},
    ]
    once = f"if busybox test -e /data/once; then {STAY}; fi; mkdir /data/once; busybox chgrp 0 /data; exit 1"
    agent.write(
        pod(
            "owned",
            container(volumeMounts=sees),
            container("again", once, volumeMounts=sees),
            volumes=volumes,
            securityContext={"fsGroup": GROUP},
        )
    )
    agent.until_running(["owned"])
    agent.until(lambda: restart_count(agent.pods()["owned"], "again") == 1, "it runs a second time")
    says = agent.inside(
        "owned",
        "busybox stat -L -c '%n %g %a' /written/name /memory /new /disk /disk/in /disk/in/file /data/once",
    )
    assert says.split("\n") == [
        f"/written/name {GROUP} 440",
        f"/memory {GROUP} 3777",
        f"/new {GROUP} 2775",
        f"/disk {GROUP} 2775",
        f"/disk/in {GROUP} 2775",
        f"/disk/in/file {GROUP} 660",
        f"/data/once {GROUP} 2755",
    ]
    assert agent.inside("owned", "busybox stat -c %g /data") == "0", "what a container has changed stays changed"
    agent.remove("owned")
    agent.until_gone(["owned"])
    podman("volume", "rm", new)


def test_a_claim_is_changed_by_policy(agent: Agent, disk: str) -> None:
    place = podman("volume", "inspect", "--format", "{{.Mountpoint}}", disk).strip()
    unshare("sh", "-c", f"chgrp {GROUP} {place}; chmod 2775 {place}")
    for name, policy, group in (("by-root", "OnRootMismatch", 0), ("always", "Always", GROUP)):
        context = {"fsGroup": GROUP, "fsGroupChangePolicy": policy}
        agent.run(mounting(name, [claim("disk", disk)], mount("disk", "/disk"), securityContext=context))
        assert agent.inside(name, "busybox stat -c %g /disk/in/file") == str(group)
        agent.remove(name)
        agent.until_gone([name])


def test_a_group_that_is_not_mapped_keeps_the_pod_waiting(agent: Agent) -> None:
    agent.write(mounting("far", [empty_dir("data")], mount("data", "/data"), securityContext={"fsGroup": 4_000_000}))
    agent.until(lambda: bool(agent.messages("far", "FailedMount")), "it waits for its volume")
    (words, *_) = agent.messages("far", "FailedMount")
    assert words.startswith('MountVolume.SetUp failed for volume "data" : applyFSGroup failed for vol data: ')
    assert "Invalid argument" in words
    agent.remove("far")


def test_a_host_path_stays_the_users(agent: Agent) -> None:
    agent.run(
        mounting(
            "users",
            [host_path("data", agent.directory / "manifests"), empty_dir("own")],
            mount("data", "/data"),
            mount("own", "/own"),
            securityContext={"fsGroup": GROUP},
        )
    )
    assert agent.inside("users", "busybox stat -c %g /data /own").split() == ["0", str(GROUP)]
    directory = pod_directory(agent, "users")
    agent.remove("users")
    agent.until_gone(["users"])
    agent.until(lambda: not directory.exists(), "its directory is gone")
