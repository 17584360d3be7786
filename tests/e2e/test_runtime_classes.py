"""RuntimeClasses on real Podman: a copy of its own OCI runtime under another name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, container, pod
from tests.support.podman_service import podman
from workers.oci_runtimes import acts_on_runtime

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.slow]


def runtime_class(name: str, handler: str, **fields: Any) -> dict[str, Any]:
    api = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass"}
    return {**api, "metadata": {"name": name}, "handler": handler, **fields}


def runtime_of(agent: Agent, name: str) -> str:
    status = agent.pods()[name]["status"]["containerStatuses"][0]
    id = status["containerID"].partition("://")[2]
    return podman("inspect", "--format", "{{.OCIRuntime}}", id).strip()


@pytest.mark.parametrize("store", ["default", "transient"], indirect=True)
@pytest.mark.usefixtures("store")
def test_containers_run_with_the_runtime_of_their_class(new_agent: NewAgent, tmp_path: Path) -> None:
    """A pod waits for its class, with the kubelet's words; another service makes its containers, and nothing else."""
    own = Path(podman("info", "--format", "{{.Host.OCIRuntime.Path}}").strip())
    other = tmp_path / own.name
    shutil.copy(own, other)
    agent = new_agent(runtimes={"other": str(other)})
    agent.start()
    agent.write(pod("classy", container(script=STAY), runtimeClassName="sandboxed"))
    missing = 'Failed to create pod sandbox: RuntimeClass.node.k8s.io "sandboxed" not found'
    agent.until(lambda: agent.reasons("classy").get("FailedCreatePodSandBox") == missing, "it waits for its class")

    overhead = {"podFixed": {"cpu": "20m", "memory": "8Mi"}}
    stated = json.dumps(runtime_class("sandboxed", "other", overhead=overhead))
    assert agent.cli("apply", "-f", "-", stdin=stated).out == "runtimeclass/sandboxed created\n"
    agent.until_running(["classy"])
    assert runtime_of(agent, "classy") == str(other)
    assert agent.inside("classy", "echo inside").strip() == "inside"
    assert agent.pods()["classy"]["spec"]["overhead"] == overhead["podFixed"]
    if acts_on_runtime(podman("version", "--format", "{{.Client.Version}}").strip()):
        services = [each.name for each in Path(agent.socket).parent.iterdir() if each.name.startswith("oci-")]
        assert services == [], "Podman itself acts on a container's runtime"
    agent.run(pod("plain"))
    assert runtime_of(agent, "plain") != str(other)

    agent.inside("classy", "kill 1")
    agent.until(
        lambda: agent.pods()["classy"]["status"]["containerStatuses"][0]["restartCount"] == 1, "it is restarted"
    )
    agent.until_running(["classy"])
    assert runtime_of(agent, "classy") == str(other)
    assert agent.cli("get", "runtimeclass").out.split()[:5] == ["NAME", "HANDLER", "AGE", "sandboxed", "other"]
    assert "Overhead:  cpu: 20m, memory: 8Mi" in agent.cli("describe", "runtimeclass", "sandboxed").out

    changed = json.dumps(runtime_class("sandboxed", "kata"))
    assert "handler: RuntimeClass sandboxed: Forbidden" in agent.cli("apply", "-f", "-", stdin=changed).err
    agent.write(runtime_class("kata", "kata"), pod("none", runtimeClassName="kata"))
    none = 'Failed to create pod sandbox: no runtime for "kata" is configured'
    agent.until(lambda: agent.reasons("none").get("FailedCreatePodSandBox") == none, "nobody has such a runtime")
