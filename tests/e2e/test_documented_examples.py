"""Demands of the documentation's examples that no other file is about (docs/examples.md), written anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.agent import Agent
from tests.e2e.manifests import Json, container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

NO_EFFECT: Final = "these fields speak to a cluster, and have no effect on a single host"
WITH_A_DEVICE: Final = pod(
    "refused",
    container(resources={"claims": [{"name": "card"}]}),
    resourceClaims=[{"name": "card", "resourceClaimName": "one-card"}],
)
CLAIM: Final = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "one-card"}}
AS_SOMEBODY: Final = {"windowsOptions": {"runAsUserName": "somebody"}}
RELATIVE: Final = {"name": "data", "hostPath": {"path": "C:\\data"}}
TOLERATION: Final = {"key": "level", "operator": "Gt", "value": "900", "effect": "NoSchedule"}
TERM: Final = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "shop"}}}
SPREAD: Final = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **TERM}
PREFERRED: Final = {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
FLOW_STYLE: Final = """\
---
{
  apiVersion: "v1", # every key without quotes, every text in them
  kind: "Pod",
  metadata: {
    name: "flow",
  },
  spec: {
    terminationGracePeriodSeconds: 1,
    restartPolicy: "Never",
    containers: [{
      name: "main",
      image: "%s",
      imagePullPolicy: "Never",
      command: [
        "sh",
        "-c",
        "\\
          echo 'one'\\n\\
          echo \\"two\\"\\n\\
        ",
      ],
    }],
  },
}
"""


def apply(agent: Agent, directory: Path, *documents: Json) -> tuple[int, str]:
    """Exit code of `apply`, and what it complains of, without the file's directory."""
    file = directory / "example.yaml"
    file.write_text("\n---\n".join(map(json.dumps, documents)))
    done = agent.cli("apply", "-f", str(file))
    return done.code, done.err.replace(f"{directory}/", "")


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        (
            [CLAIM, WITH_A_DEVICE],
            [
                'document 1: kind: ResourceClaim "one-card" is not supported here; a manifest holds Pod, ',
                "document 2: spec.containers[0].resources.claims: not supported: the devices would be missing",
                "document 2: spec.resourceClaims: not supported: the devices would be missing",
            ],
        ),
        (
            [pod("refused", container(securityContext=AS_SOMEBODY), securityContext=AS_SOMEBODY)],
            [
                "spec.containers[0].securityContext.windowsOptions: not supported: only Linux containers run here",
                "spec.securityContext.windowsOptions: not supported: only Linux containers run here",
            ],
        ),
        (
            [pod("refused", container(), volumes=[RELATIVE])],
            ['spec.volumes[0].hostPath.path: Invalid value: "C:\\data": must be an absolute path'],
        ),
        (
            [pod("refused", container(), volumes=[{"name": "data", "emptyDir": {"mode": 0o1777}}])],
            ["spec.volumes[0].emptyDir.mode: not supported: it is alpha in Kubernetes 1.37"],
        ),
        (
            [pod("refused", container(securityContext={"cgroupOptions": {"mountMode": "ReadWrite"}}))],
            ["spec.containers[0].securityContext.cgroupOptions: unknown field"],
        ),
        (
            [pod("refused", container(), resources={"limits": {"pids": "64"}})],
            ['spec.resources.limits[pids]: Unsupported value: "pids": supported values: "cpu", "memory", "hugepages-'],
        ),
    ],
    ids=["devices", "windows-user", "windows-path", "mode-of-empty-dir", "cgroup-options", "pids-of-pod"],
)
def test_what_cannot_be_honoured_is_refused_in_words(
    agent: Agent, tmp_path: Path, documents: list[Json], words: list[str]
) -> None:
    code, told = apply(agent, tmp_path, *documents)
    assert code == 1
    assert [each for each in words if each not in told] == [], told
    assert "nothing of example.yaml was applied" in told
    assert "refused" not in agent.pods()


@pytest.mark.parametrize(
    ("name", "fields", "warning"),
    [
        ("tolerates", {"tolerations": [TOLERATION]}, f"spec.tolerations: {NO_EFFECT}"),
        ("spreads", {"topologySpreadConstraints": [SPREAD]}, f"spec.topologySpreadConstraints: {NO_EFFECT}"),
        ("another-scheduler", {"schedulerName": "mine"}, f"spec.schedulerName: {NO_EFFECT}"),
        (
            "near",
            {
                "affinity": {
                    "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]},
                    "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [PREFERRED]},
                }
            },
            "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution, spec.affinity.podAffinity: "
            + NO_EFFECT,
        ),
        (
            "important",
            {"priorityClassName": "highest"},
            "spec.priorityClassName: no PriorityClass with name highest was found: its priority is 0",
        ),
    ],
)
def test_what_only_a_scheduler_reads_is_warned_of_and_the_pod_runs(
    agent: Agent, tmp_path: Path, name: str, fields: Json, warning: str
) -> None:
    assert apply(agent, tmp_path, pod(name, container(), **fields)) == (0, f"Warning: {warning}\n")
    agent.until_ready([name])
    assert agent.messages(name, "UnsupportedField") == [warning]
    assert agent.cli("delete", "pod", name).code == 0


def test_a_resource_that_nothing_provides_is_warned_of_and_the_pod_runs(agent: Agent, tmp_path: Path) -> None:
    """As a kubelet's admission, which removes what its node has never heard of."""
    asks = {"limits": {"example.com/oven": 2}, "requests": {"example.com/oven": 2}}
    code, told = apply(agent, tmp_path, pod("baker", container(resources=asks)))
    assert code == 0
    nothing = "nothing on this host provides it: it is not counted, and no container gets any"
    assert told == f"Warning: resources: example.com/oven: {nothing}\n"
    agent.until_ready(["baker"])
    assert agent.cli("delete", "pod", "baker").code == 0


def test_a_manifest_in_flow_style_with_comments_and_trailing_commas(agent: Agent) -> None:
    """As `kubectl get -o kyaml` writes it."""
    image = container()["image"]
    agent.write_file("flow.yaml", FLOW_STYLE % image)
    agent.until(lambda: agent.row("flow")[2:3] == ["Completed"], "it has ended")
    assert agent.output("flow") == "one\ntwo\n"
    agent.remove("flow")


def test_a_container_of_the_pod_reaches_another_ones_files_by_its_process(agent: Agent) -> None:
    """With one process namespace, CAP_SYS_PTRACE and a terminal: how somebody looks into an image without a shell."""
    serves = container(script="echo inside >/served; exec sleep 765432")
    looks = {"securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}, "stdin": True, "tty": True}
    agent.run(pod("looked-into", serves, container("shell", "exec sh", **looks), shareProcessNamespace=True))
    found = agent.inside("looked-into", "cat /proc/$(pidof sleep)/root/served", "shell")
    assert found == "inside"
    agent.remove("looked-into")


def test_one_claim_is_mounted_twice_by_parts_of_it(agent: Agent, tmp_path: Path) -> None:
    claim = {"name": "site", "persistentVolumeClaim": {"claimName": f"{agent.instance}-site"}}
    mounts = [{"name": "site", "mountPath": f"/srv/{part}", "subPath": part} for part in ("pages", "conf")]
    volume_claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"{agent.instance}-site"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    wants = pod("parts", container(volumeMounts=mounts), volumes=[claim])
    assert apply(agent, tmp_path, volume_claim, wants) == (0, "")
    agent.until_ready(["parts"])
    assert agent.inside("parts", "echo 1 >/srv/pages/a; ls /srv/pages /srv/conf") == "/srv/conf:\n\n/srv/pages:\na"
    assert agent.cli("delete", "pod", "parts").code == 0
    assert agent.cli("delete", "persistentvolumeclaim", f"{agent.instance}-site").code == 0
