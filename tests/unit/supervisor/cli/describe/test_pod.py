"""Descriptions of pods. Layout and wording were compared with what kubectl 1.32 prints for the same objects."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ipc.host.clock import rfc3339
from supervisor.cli.describe.pod import describe_pod

NOW = 1_700_000_000.0

RICH: dict[str, Any] = {
    "metadata": {
        "name": "rich",
        "namespace": "default",
        "labels": {"tier": "y", "app": "x"},
        "annotations": {"short": "v", "long": "z" * 200, "multi": "a\nb"},
    },
    "spec": {
        "nodeName": "node-1",
        "tolerations": [
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            {"operator": "Exists"},
            {"key": "b", "value": "c", "effect": "NoSchedule"},
        ],
        "containers": [
            {
                "name": "app",
                "image": "busybox:1",
                "command": ["sh"],
                "args": ["-c", "x\ny"],
                "ports": [
                    {"containerPort": 80, "name": "http"},
                    {"containerPort": 81, "hostPort": 81, "protocol": "UDP"},
                ],
                "resources": {"limits": {"memory": "64Mi", "cpu": "1"}, "requests": {"cpu": "100m"}},
                "livenessProbe": {"httpGet": {"path": "/h", "port": 80}},
                "readinessProbe": {"exec": {"command": ["cat", "/x"]}, "initialDelaySeconds": 3},
                "startupProbe": {"grpc": {"port": 90}},
                "env": [
                    {"name": "A", "value": "1\n2"},
                    {"name": "LONGER_NAME", "value": "x"},
                    {"name": "P", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                    {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": True}}},
                ],
                "envFrom": [{"configMapRef": {"name": "cm"}}, {"prefix": "X_", "secretRef": {"name": "sec"}}],
                "volumeMounts": [
                    {"name": "d", "mountPath": "/d"},
                    {"name": "c", "mountPath": "/c", "readOnly": True, "subPath": "s"},
                ],
            }
        ],
        "volumes": [
            {"name": "d", "emptyDir": {}},
            {"name": "c", "configMap": {"name": "cm", "optional": True}},
            {"name": "p", "projected": {"sources": [{"secret": {"name": "s"}}, {"downwardAPI": {}}]}},
        ],
    },
    "status": {
        "phase": "Running",
        "qosClass": "Burstable",
        "hostIP": "1.2.3.4",
        "podIP": "10.0.0.1",
        "podIPs": [{"ip": "10.0.0.1"}],
        "conditions": [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "False"}],
        "containerStatuses": [
            {
                "name": "app",
                "ready": False,
                "restartCount": 2,
                "containerID": "podman://abc",
                "imageID": "sha256:x",
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {
                    "terminated": {"exitCode": 137, "signal": 0, "reason": "Error", "finishedAt": rfc3339(NOW)}
                },
            }
        ],
    },
}


def description(found: Any, **details: Any) -> list[str]:
    return describe_pod(found, {"source": "file", "sentence": "", "nextTry": {}} | details, [], NOW).splitlines()


def test_description_of_a_rich_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    text = "\n".join(description(RICH, nextTry={"app": "in 20s", "sidecar": "when app runs"}))
    for expected in (
        "QoS Class:        Burstable\nNode-Selectors:   <none>\nTolerations:      op=Exists\n",
        "Labels:       app=x\n              tier=y\nAnnotations:  long:\n                " + "z" * 138 + "...\n",
        "              multi:\n                a\n                b\n              short: v\nStatus:       Running\n",
        "IPs:\n  IP:  10.0.0.1\nContainers:\n  app:\n    Container ID:  podman://abc\n",
        "    Ports:         80/TCP (http), 81/UDP\n    Host Ports:    0/TCP (http), 81/UDP\n    Command:\n      sh\n",
        "    Args:\n      -c\n      x\n      y\n    State:          Waiting\n      Reason:       CrashLoopBackOff\n",
        "    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    137\n",
        "    Limits:\n      cpu:     1\n      memory:  64Mi\n    Requests:\n      cpu:      100m\n",
        "    Liveness:   http-get http://:80/h delay=0s timeout=1s period=10s #success=1 #failure=3\n",
        "    Readiness:  exec [cat /x] delay=3s ",
        "    Startup:    grpc <pod>:90  delay=0s ",
        "      A:            1\n                    2\n      LONGER_NAME:  x\n",
        "      P:            rich (v1:metadata.name)\n",
        "      S:            <set to the key 'k' in secret 's'>      Optional: false\n",
        "      C:            <set to the key 'k' of config map 'c'>  Optional: true\n",
        "      cm   ConfigMap                Optional: false\n      sec  Secret with prefix 'X_'  Optional: false\n",
        '    Mounts:\n      /c from c (ro,path="s")\n      /d from d (rw)\n',
        "Conditions:\n  Type          Status\n  Initialized   True \n  Ready         False \n",
        "  d:\n    Type:       EmptyDir (a temporary directory that shares a pod's lifetime)\n    Medium:     \n"
        "    SizeLimit:  <unset>\n  c:\n    Type:      ConfigMap (a volume populated by a ConfigMap)\n",
        "Tolerations:      op=Exists\n                  a:NoExecute op=Exists for 300s\n",
        "Worker:           <none>\nSandbox:          <none>\nLast Sync:        <none>\nNext Try:\n"
        "  app:      in 20s\n  sidecar:  when app runs\n",
    ):
        assert expected in text, expected
    assert text.endswith("Events:     <none>")


@pytest.mark.parametrize(
    ("step", "line"),
    [
        ({"reason": "Paused", "message": "it is paused"}, "Waits For:    Paused: it is paused"),
        (
            {"reason": "NextSync", "message": "no work", "until": "2023-11-14T22:14:20Z"},
            "Waits For:    NextSync: no work, until Tue, 14 Nov 2023 22:14:20 +0000",
        ),
        ({"reason": "", "message": "nothing: a sync goes to its worker now"}, "Waits For:    nothing: a sync goes"),
    ],
)
def test_what_a_pod_waits_for(step: dict[str, str], line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    found = [" ".join(shown.split()) for shown in description(LIFE, nextStep=step)]
    assert any(shown.startswith(" ".join(line.split())) for shown in found)
    assert not any(shown.startswith("Waits For") for shown in description(LIFE, nextStep=None))


LIFE: dict[str, Any] = {
    "metadata": {"name": "life", "ownerReferences": [{"kind": "Job", "name": "j", "controller": True}]},
    "spec": {
        "resources": {"limits": {"cpu": "2"}},
        "initContainers": [
            {"name": "setup", "image": "busybox"},
            {"name": "proxy", "image": "busybox", "restartPolicy": "Always", "env": [{"name": "A", "value": "1"}]},
        ],
        "containers": [
            {
                "name": "app",
                "restartPolicy": "Never",
                "restartPolicyRules": [
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [42, 43]}},
                    {"action": "RestartAllContainers", "exitCodes": {"operator": "NotIn", "values": [0]}},
                ],
                "livenessProbe": {"tcpSocket": {"port": 80}},
                "lifecycle": {
                    "postStart": {"exec": {"command": ["sh", "-c", "echo up"]}},
                    "preStop": {"sleep": {"seconds": 5}},
                    "stopSignal": "SIGUSR1",
                },
            }
        ],
        "ephemeralContainers": [{"name": "debug", "image": "busybox", "targetContainerName": "app"}],
    },
    "status": {
        "phase": "Pending",
        "initContainerStatuses": [
            {
                "name": "setup",
                "containerID": "podman://1",
                "restartCount": 2,
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}},
                "lastState": {"terminated": {"exitCode": 137, "signal": 9, "reason": "Error", "message": "no luck"}},
            },
            {"name": "proxy", "containerID": "podman://2", "ready": True, "state": {"running": {}}},
        ],
        "containerStatuses": [
            {"name": "app", "state": {"waiting": {"reason": "CreateContainerConfigError", "message": "no such user"}}}
        ],
        "ephemeralContainerStatuses": [{"name": "debug", "containerID": "podman://3", "state": {"running": {}}}],
    },
}


def test_description_of_every_kind_of_container() -> None:
    sandbox = {"id": "abc", "attempt": 1, "state": "ready"}
    lines = description(LIFE, worker="pods-1", sandbox=sandbox, nextTry={"setup": "soon"})
    found = (re.sub(r"(?<=\S) {2,}", "  ", line) for line in lines)
    # In this order; how cells line up is another test's.
    for expected in (
        "Controlled By:  Job/j",
        "Resources:",
        "  Limits:",
        "    cpu:  2",
        "Init Containers:",
        "  setup:",
        "    Container ID:  podman://1",
        "    State:  Waiting",
        "      Reason:  CrashLoopBackOff",
        "      Message:  back-off 20s",
        "    Last State:  Terminated",
        "      Reason:  Error",
        "      Message:  no luck",
        "      Exit Code:  137",
        "      Signal:  9",
        "    Restart Count:  2",
        "  proxy:",
        "    Container ID:  podman://2",
        "    Ready:  True",
        "    Restart Policy:  Always",
        "    Environment:",
        "      A:  1",
        "Containers:",
        "  app:",
        "      Reason:  CreateContainerConfigError",
        "      Message:  no such user",
        "    Restart Policy:  Never",
        "    Restart Rules:",
        "      Restart on exit code 42, 43",
        "      RestartAllContainers on every exit code but 0",
        "    Liveness:  tcp-socket :80 delay=0s timeout=1s period=10s #success=1 #failure=3",
        "    Post Start:  exec [sh -c echo up]",
        "    Pre Stop:  sleep 5s",
        "    Stop Signal:  SIGUSR1",
        "Ephemeral Containers:",
        "  debug:",
        "    Container ID:  podman://3",
        "Source:  file",
        "Worker:  pods-1",
        "Sandbox:  abc (attempt 1, ready)",
        "Next Try:",
        "  setup:  soon",
    ):
        assert expected in found, "\n".join([expected, *lines])


def test_description_of_a_pod_without_a_status() -> None:
    lines = description({"metadata": {"name": "x"}, "spec": {"containers": [{"name": "app"}]}})
    assert "Node:         <none>" in lines
    assert "    Port:         <none>" in lines
    assert not any("Restart Count" in line for line in lines)


def test_description_of_a_pod_on_its_way_out() -> None:
    meta = {"name": "x", "deletionTimestamp": rfc3339(NOW - 3), "deletionGracePeriodSeconds": 30}
    lines = description({"metadata": meta})
    assert "Status:                    Terminating (lasts 3s)" in lines
    assert "Termination Grace Period:  30s" in lines


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}, "1500 (limits.cpu)"),
        ({"resourceFieldRef": {"resource": "limits.cpu"}}, "2 (limits.cpu)"),
        ({"resourceFieldRef": {"resource": "limits.memory"}}, "node allocatable (limits.memory)"),
        ({"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}}, "0 (requests.memory)"),
        (
            {"fileKeyRef": {"volumeName": "v", "path": "a.env", "key": "K", "optional": True}},
            "<set to the key 'K' in file 'a.env' of volume 'v'>  Optional: true",
        ),
    ],
)
def test_what_stands_for_a_value(source: dict[str, Any], told: str) -> None:
    app = {"name": "app", "resources": {"limits": {"cpu": "1.5"}}, "env": [{"name": "A", "valueFrom": source}]}
    lines = description({"metadata": {"name": "p"}, "spec": {"containers": [app]}, "status": {}})
    assert f"      A:  {told}" in [re.sub(r"(?<=\S) {2,}", "  ", line) for line in lines]
