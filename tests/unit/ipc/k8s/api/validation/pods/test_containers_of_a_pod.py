"""Refusals about the containers of a pod beside one another: names, ports, and what only some kinds may have."""

from typing import Any

import pytest

from tests.support.api_manifests import findings, manifest

MAIN = "spec.containers[0]"
PVC = {"name": "disk", "persistentVolumeClaim": {"claimName": "c"}}
EXEC = {"exec": {"command": ["true"]}}


def named(*names: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": name, "image": "a:1", **fields} for name in names]


def file_key(volume: str) -> dict[str, Any]:
    return {"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": volume, "path": "a/b.env", "key": "K"}}}


SPEC: list[tuple[str, dict[str, Any], list[str]]] = [
    (
        "names across all kinds",
        {
            "containers": named("a", "b", "a"),
            "initContainers": named("b", "c"),
            "ephemeralContainers": named("c", "d"),
        },
        [
            'spec.containers[2].name: Duplicate value: "a"',
            'spec.initContainers[0].name: Duplicate value: "b"',
            'spec.ephemeralContainers[0].name: Duplicate value: "c"',
        ],
    ),
    (
        "host ports across containers",
        {
            "containers": [
                *named("a", ports=[{"containerPort": 1, "hostPort": 80}, {"containerPort": 2, "hostPort": 80}]),
                *named(
                    "b",
                    ports=[
                        {"containerPort": 1, "hostPort": 80, "protocol": "UDP"},
                        {"containerPort": 1, "hostPort": 80, "hostIP": "127.0.0.1"},
                        {"containerPort": 1, "hostPort": 80, "hostIP": "127.0.0.1", "protocol": "TCP"},
                    ],
                ),
            ],
            "initContainers": named("c", ports=[{"containerPort": 1, "hostPort": 80}]),
        },
        [
            'spec.containers[0].ports[1].hostPort: Duplicate value: "80/TCP"',
            'spec.containers[1].ports[2].hostPort: Duplicate value: "127.0.0.1:80/TCP"',
        ],
    ),
    (
        "host network takes equal ports",
        {
            "hostNetwork": True,
            "containers": named("a", ports=[{"containerPort": 1}, {"containerPort": 2, "hostPort": 3}]),
        },
        ["spec.containers[0].ports[1].hostPort: Invalid value: 3: must equal containerPort when hostNetwork is true"],
    ),
    (
        "probes of init containers",
        {"initContainers": named("i", livenessProbe=EXEC, lifecycle={})},
        [
            "spec.initContainers[0].lifecycle: Forbidden: may only be set on an init container that always restarts",
            "spec.initContainers[0].livenessProbe: Forbidden: "
            "may only be set on an init container that always restarts",
        ],
    ),
    (
        "probes of sidecars",
        {
            "initContainers": named(
                "i",
                restartPolicy="Always",
                livenessProbe={},
                restartPolicyRules=[{"action": "Restart"}],
            )
        },
        [
            "spec.initContainers[0].livenessProbe: Required value: must specify a handler: "
            "exec, httpGet, tcpSocket or grpc",
            "spec.initContainers[0].restartPolicyRules[0].exitCodes: Required value",
        ],
    ),
    (
        "restart rules of sidecars",
        {
            "initContainers": named(
                "i",
                restartPolicy="Always",
                restartPolicyRules=[
                    {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [88]}}
                ],
            )
        },
        [],
    ),
    (
        "ephemeral containers",
        {
            "ephemeralContainers": [
                *named("e", targetContainerName="main"),
                *named("f", targetContainerName="gone", ports=[{"containerPort": 1}], resources={"limits": {"cpu": 1}}),
            ]
        },
        [
            "spec.ephemeralContainers[1].ports: Forbidden: may not be set on an ephemeral container",
            "spec.ephemeralContainers[1].resources: Forbidden: may not be set on an ephemeral container",
            'spec.ephemeralContainers[1].targetContainerName: Not found: "gone"',
        ],
    ),
    (
        "files of variables",
        {
            "volumes": [
                {"name": "empty", "emptyDir": {}},
                {"name": "plain"},
                {"name": "host", "hostPath": {"path": "/"}},
            ],
            "initContainers": named("init", env=[file_key("plain"), file_key("host")]),
            "containers": named("main", env=[file_key("empty"), file_key("missing")]),
        },
        [
            f'{MAIN}.env[1].valueFrom.fileKeyRef.volumeName: Not found: "missing"',
            'spec.initContainers[0].env[1].valueFrom.fileKeyRef.volumeName: Invalid value: "host": '
            "must be the name of an emptyDir volume",
        ],
    ),
    (
        "parts of volumes in ephemeral containers",
        {
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": named("main", volumeMounts=[{"name": "v", "mountPath": "/a", "subPath": "a"}]),
            "ephemeralContainers": named(
                "e",
                volumeMounts=[
                    {"name": "v", "mountPath": "/a"},
                    {"name": "v", "mountPath": "/b", "subPath": "b"},
                    {"name": "v", "mountPath": "/c", "subPathExpr": "$(C)"},
                ],
            ),
        },
        [
            "spec.ephemeralContainers[0].volumeMounts[1].subPath: Forbidden: may not be set on an ephemeral container",
            "spec.ephemeralContainers[0].volumeMounts[2].subPathExpr: Forbidden: "
            "may not be set on an ephemeral container",
        ],
    ),
    (
        "a target that is no regular or init container",
        {
            "initContainers": named("i", restartPolicy="OnFailure"),
            "ephemeralContainers": [*named("e", targetContainerName="i"), *named("f", targetContainerName="e")],
        },
        ['spec.ephemeralContainers[1].targetContainerName: Not found: "e"'],
    ),
    (
        "stop signal",
        {
            "os": {"name": "linux"},
            "containers": [
                *named("a", lifecycle={"stopSignal": "SIGRTMIN+3"}),
                *named("b", lifecycle={"stopSignal": "TERM"}),
            ],
        },
        [
            'spec.containers[1].lifecycle.stopSignal: Unsupported value: "TERM": supported values: '
            '"SIGTERM", "SIGINT", '
            '"SIGRTMIN+3", "…"'
        ],
    ),
    (
        "sleep within no grace at all",
        {
            "terminationGracePeriodSeconds": 0,
            "containers": named("a", lifecycle={"preStop": {"sleep": {"seconds": 1}}}),
        },
        [
            "spec.containers[0].lifecycle.preStop.sleep.seconds: Invalid value: 1: "
            "must be between 0 and the pod's terminationGracePeriodSeconds (0), inclusive"
        ],
    ),
    (
        "resize that restarts an init container",
        {
            "initContainers": [
                *named("once", resizePolicy=[{"resourceName": "memory", "restartPolicy": "RestartContainer"}]),
                *named(
                    "sidecar",
                    restartPolicy="Always",
                    resizePolicy=[{"resourceName": "memory", "restartPolicy": "RestartContainer"}],
                ),
            ],
            "containers": named("a"),
        },
        [
            'spec.initContainers[0].resizePolicy[0].restartPolicy: Unsupported value: "RestartContainer": '
            'supported values: "NotRequired"'
        ],
    ),
    (
        "resize that restarts a pod that never restarts",
        {
            "restartPolicy": "Never",
            "containers": named("a", resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]),
        },
        [
            'spec.containers[0].resizePolicy[0].restartPolicy: Unsupported value: "RestartContainer": '
            'supported values: "NotRequired"'
        ],
    ),
    (
        "known claim",
        {
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}],
            "containers": named("a", resources={"claims": [{"name": "gpu", "request": "one"}]}),
        },
        [],
    ),
    (
        "user namespace",
        {"hostUsers": False, "containers": named("a", securityContext={"procMount": "Unmasked"})},
        [],
    ),
    (
        "block device in a user namespace",
        {
            "hostUsers": False,
            "volumes": [PVC],
            "containers": named("a", volumeDevices=[{"name": "disk", "devicePath": "/dev/x"}]),
        },
        ["spec.containers[0].volumeDevices: Forbidden: may not be set when hostUsers is false"],
    ),
]


@pytest.mark.parametrize(("spec", "expected"), [case[1:] for case in SPEC], ids=[case[0] for case in SPEC])
def test_containers_of_a_pod(spec: dict[str, Any], expected: list[str]) -> None:
    assert findings(manifest(spec=spec)) == expected
