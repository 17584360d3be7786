"""Limits of what a pod may take of the disk: who takes more is ended, and stays ended."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.agent import Agent, Json
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, container, pod
from tests.support.variants import seldom

pytestmark = [pytest.mark.e2e, pytest.mark.podman]


@pytest.fixture(scope="module")
def agent(new_shared_agent: NewAgent) -> Agent:
    """One that comes round to every pod each second or two."""
    agent = new_shared_agent(syncFrequency="1s")
    agent.start()
    return agent


def fills(path: str, mib: int, **fields: Any) -> Json:
    """Writes once, then stays."""
    return container(script=f"dd if=/dev/zero of={path} bs=1M count={mib} 2>/dev/null; echo wrote; {STAY}", **fields)


def limited(limit: str) -> Json:
    return {"limits": {"ephemeral-storage": limit}}


def until_evicted(agent: Agent, name: str, message: str) -> Json:
    def status_now() -> Json:
        found: Json = agent.pods().get(name, {}).get("status", {})
        return found

    agent.until(lambda: status_now().get("phase") == "Failed", f"{name} has failed", 60)
    status = status_now()
    assert (status["reason"], status["message"]) == ("Evicted", message)
    return status


def test_an_empty_dir_beyond_its_size_ends_its_pod_for_good(agent: Agent) -> None:
    volumes = [{"name": "cache", "emptyDir": {"sizeLimit": "3Mi"}}]
    mounts = [{"name": "cache", "mountPath": "/cache"}]
    agent.write(pod("greedy", fills("/cache/file", 5, volumeMounts=mounts), volumes=volumes))
    agent.run(pod("modest", fills("/cache/file", 2, volumeMounts=mounts), volumes=volumes))
    message = 'Usage of EmptyDir volume "cache" exceeds the limit "3Mi". '
    until_evicted(agent, "greedy", message)
    [event] = [event for event in agent.events("greedy") if event["reason"] == "Evicted"]
    assert (event["type"], event["message"], event["count"]) == ("Warning", message, 1)
    agent.until(lambda: not agent.eye.containers("greedy"), "its containers are gone, with what they wrote")
    [directory] = [path for path in (agent.state / "pods").iterdir() if (path / "evicted").exists()]
    agent.until(lambda: not list(directory.glob("volumes/**/file")), "its volume is gone")
    agent.restart()
    until_evicted(agent, "greedy", message)
    agent.until_running(["modest"])
    assert agent.output("modest") == "wrote\n"
    assert not agent.eye.containers("greedy")
    agent.remove("greedy", "modest")
    agent.until_gone(["greedy", "modest"])
    assert not directory.exists()
    agent.run(pod("greedy"))
    agent.remove("greedy")


def test_files_that_only_the_containers_user_may_see_count_too(agent: Agent) -> None:
    script = f"mkdir -m 700 /cache/own; dd if=/dev/zero of=/cache/own/file bs=1M count=5 2>/dev/null; {STAY}"
    mine = container(
        script=script,
        volumeMounts=[{"name": "cache", "mountPath": "/cache"}],
        securityContext={"runAsUser": 1234},
    )
    agent.write(pod("hidden", mine, volumes=[{"name": "cache", "emptyDir": {"sizeLimit": "3Mi"}}]))
    until_evicted(agent, "hidden", 'Usage of EmptyDir volume "cache" exceeds the limit "3Mi". ')
    agent.remove("hidden")


def test_directories_within_one_another_hide_nothing(agent: Agent) -> None:
    deep = "i=0; while [ $i -lt 150 ]; do mkdir d; cd d; i=$((i+1)); done"
    script = f"cd /cache; {deep}; dd if=/dev/zero of=file bs=1M count=5 2>/dev/null; {STAY}"
    main = container(script=script, volumeMounts=[{"name": "cache", "mountPath": "/cache"}])
    agent.write(pod("deep", main, volumes=[{"name": "cache", "emptyDir": {"sizeLimit": "3Mi"}}]))
    until_evicted(agent, "deep", 'Usage of EmptyDir volume "cache" exceeds the limit "3Mi". ')
    agent.until(lambda: not agent.eye.containers("deep"), "its containers are gone")
    [directory] = [path for path in (agent.state / "pods").iterdir() if (path / "evicted").exists()]
    agent.until(lambda: not (directory / "volumes").exists(), "so is its volume")
    agent.remove("deep")


@pytest.mark.parametrize("what", ["layer", "log"])
def test_a_container_beyond_its_limit_ends_its_pod(agent: Agent, what: str) -> None:
    name = f"large-{what}"
    main = fills("/file", 5, resources=limited("3Mi"))
    if what == "log":
        main = container(script=f"head -c 4000000 /dev/zero | tr '\\0' x; {STAY}", resources=limited("3Mi"))
    agent.write(pod(name, main, container("other", resources=limited("100Mi"))))
    until_evicted(agent, name, 'Container main exceeded its local ephemeral storage limit "3Mi". ')
    agent.remove(name)


def test_what_a_pod_takes_in_all_counts_for_its_containers_together(agent: Agent) -> None:
    mounts = [{"name": "scratch", "mountPath": "/scratch"}]
    main = fills("/scratch/file", 5, volumeMounts=mounts, resources=limited("2Mi"))
    agent.write(pod("together", main, container("other", resources=limited("2Mi")), volumes=[{"name": "scratch"}]))
    until_evicted(agent, "together", "Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. ")
    agent.remove("together")


@pytest.mark.parametrize(
    "path", ["/etc/hosts", *map(seldom, ("/etc/hostname", "/etc/resolv.conf", "/dev/termination-log"))]
)
def test_what_is_written_into_a_file_that_was_given_counts(agent: Agent, path: str) -> None:
    name = path.strip("/").replace("/", "-").replace(".", "-")
    agent.run(pod(f"calm-{name}", container(script=f"echo >> {path}; {STAY}", resources=limited("3Mi"))))
    agent.write(pod(name, fills(path, 5, resources=limited("3Mi"))))
    until_evicted(agent, name, "Pod ephemeral local storage usage exceeds the total limit of containers 3Mi. ")
    agent.until_running([f"calm-{name}"])
    agent.remove(name, f"calm-{name}")


def holds(path: str, mib: int, **fields: Any) -> Json:
    """Fills a file that it has removed before, and stays."""
    script = f"exec 3>{path}; rm {path}; dd if=/dev/zero bs=1M count={mib} 2>/dev/null >&3; echo wrote; {STAY}"
    return container(script=script, **fields)


@pytest.mark.parametrize(("where", "user"), [("layer", 0), ("volume", 0), ("volume", 1234)])
def test_a_file_that_was_removed_while_it_is_open_counts(agent: Agent, where: str, user: int) -> None:
    """For the container or the volume that it lies in, whoever its process is. What lies in memory, on the host or
    within the limit does not."""
    name = f"gone-{where}-{user}"
    scratch = {"name": "scratch", "emptyDir": {"sizeLimit": "20Mi"}}
    memory = {"name": "memory", "emptyDir": {"medium": "Memory"}}
    mounts = [{"name": "scratch", "mountPath": "/scratch"}, {"name": "memory", "mountPath": "/memory"}]
    given = {
        "volumeMounts": mounts,
        "resources": limited("20Mi" if where == "layer" else "100Mi"),
        "securityContext": {"runAsUser": user},
    }
    path = "/file" if where == "layer" else "/scratch/file"
    calm = [holds("/memory/file", 30, **given), holds(path, 10, **given)]
    agent.run(
        *(pod(f"{name}-calm-{n}", each, volumes=[scratch, memory]) for n, each in enumerate(calm)),
    )
    agent.write(pod(name, holds(path, 30, **given), volumes=[scratch, memory]))
    words = {
        "layer": "Pod ephemeral local storage usage exceeds the total limit of containers 20Mi. ",
        "volume": 'Usage of EmptyDir volume "scratch" exceeds the limit "20Mi". ',
    }
    until_evicted(agent, name, words[where])
    neighbours = [f"{name}-calm-{n}" for n in range(len(calm))]
    agent.until_running(neighbours)
    assert all(agent.pods()[neighbour]["status"]["phase"] == "Running" for neighbour in neighbours)
    agent.remove(name, *neighbours)
