"""What is refused about containers: names, ports, environment, mounts, resources, probes, hooks, rights, restarts."""

from typing import Any

import pytest

from ipc.api.decode import decode_pod
from ipc.api.defaults import default_pod
from ipc.api.validation.pod import validate_pod
from tests.harness.api_manifests import manifest

MAIN = "spec.containers[0]"
DNS_LABEL = "must consist of lower case letters, digits and '-', and start and end with a letter or digit"
PORT_RANGE = "must be between 1 and 65535, inclusive"
ENV_NAME = "must consist of printable ASCII characters other than '='"
NUMBER = "must be a number with an optional suffix such as m, k, M, Ki, Mi or e3"
RESOURCE = "must be cpu, memory, ephemeral-storage, hugepages-<size>, or carry a domain of its own"
QUALIFIED = "must consist of letters, digits, '-', '_' and '.', and start and end with a letter or digit"
BYTE_DIVISORS = ", ".join(
    f'"1{unit}"' for unit in ("", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
)
FIELD_PATHS = ", ".join(
    f'"{path}"'
    for path in (
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
        "metadata.labels['<key>']",
        "metadata.annotations['<key>']",
    )
)
EXEC = {"exec": {"command": ["true"]}}
PORT_NAME = (
    "must consist of lower case letters, digits and single '-', hold at least one letter, "
    "and start and end with a letter or digit"
)


def errors(obj: dict[str, Any]) -> list[str]:
    """The findings for a manifest; the same before and after defaulting."""
    plain = decode_pod(obj)
    defaulted = [str(error) for error in validate_pod(default_pod(plain))]
    assert [str(error) for error in validate_pod(plain)] == defaulted
    return defaulted


def named(*names: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": name, "image": "a:1", **fields} for name in names]


def file_key(volume: str) -> dict[str, Any]:
    return {"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": volume, "path": "a/b.env", "key": "K"}}}


CONTAINER: list[tuple[str, dict[str, Any], list[str]]] = [
    ("name", {"name": "Main"}, [f'{MAIN}.name: Invalid value: "Main": {DNS_LABEL}']),
    ("empty name", {"name": ""}, [f"{MAIN}.name: Required value"]),
    ("no image", {"image": None}, [f"{MAIN}.image: Required value"]),
    (
        "padded image",
        {"image": " a"},
        [f'{MAIN}.image: Invalid value: " a": must not have leading or trailing whitespace'],
    ),
    (
        "ports",
        {
            "ports": [
                {"containerPort": 80, "name": "http"},
                {"containerPort": 81, "name": "http"},
                {"containerPort": 0},
                {"containerPort": 65536, "hostPort": -1},
                {"containerPort": 1, "hostPort": 65536, "hostIP": "host"},
            ]
        },
        [
            f'{MAIN}.ports[1].name: Duplicate value: "http"',
            f"{MAIN}.ports[2].containerPort: Invalid value: 0: {PORT_RANGE}",
            f"{MAIN}.ports[3].containerPort: Invalid value: 65536: {PORT_RANGE}",
            f"{MAIN}.ports[3].hostPort: Invalid value: -1: must be between 0 and 65535, inclusive",
            f"{MAIN}.ports[4].hostPort: Invalid value: 65536: must be between 0 and 65535, inclusive",
            f'{MAIN}.ports[4].hostIP: Invalid value: "host": '
            "must be a valid IP address (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ],
    ),
    *(
        (
            f"port name {name}",
            {"ports": [{"containerPort": 80, "name": name}]},
            [f'{MAIN}.ports[0].name: Invalid value: "{name}": {PORT_NAME}'],
        )
        for name in ("80", "a--b", "-a", "a-", "HTTP", "a_b")
    ),
    (
        "port name too long",
        {"ports": [{"containerPort": 80, "name": "a" * 16}]},
        [f'{MAIN}.ports[0].name: Invalid value: "{"a" * 16}": must be no more than 15 characters'],
    ),
    (
        "environment",
        {
            "env": [
                {"name": "lower.case-and_1", "value": ""},
                {"name": "1 odd name!", "value": "x"},
                {"name": "A", "value": "first"},
                {"name": "A", "value": "last counts"},
                {"name": ""},
                {"name": "A=B"},
                {"name": "Ü"},
                {"name": "A\n"},
            ]
        },
        [
            f"{MAIN}.env[4].name: Required value",
            f'{MAIN}.env[5].name: Invalid value: "A=B": {ENV_NAME}',
            f'{MAIN}.env[6].name: Invalid value: "Ü": {ENV_NAME}',
            f'{MAIN}.env[7].name: Invalid value: "A\\n": {ENV_NAME}',
        ],
    ),
    (
        "value sources",
        {
            "env": [
                {"name": "A", "valueFrom": {}},
                {"name": "B", "value": "x", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
                {
                    "name": "C",
                    "valueFrom": {
                        "fieldRef": {"fieldPath": "metadata.name"},
                        "secretKeyRef": {"name": "s", "key": "k"},
                    },
                },
            ]
        },
        [
            f"{MAIN}.env[0].valueFrom: Required value: must specify one source of the value",
            f"{MAIN}.env[1].valueFrom: Forbidden: may not be set together with a value that is not empty",
            f"{MAIN}.env[2].valueFrom.secretKeyRef: Forbidden: may not be set together with fieldRef",
        ],
    ),
    (
        "value references",
        {
            "env": [
                {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['a/b']"}}},
                {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "status.podIPs"}}},
                {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "", "apiVersion": "v2"}}},
                {"name": "D", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
                {"name": "E", "valueFrom": {"resourceFieldRef": {"resource": "limits.gpu"}}},
                {"name": "F", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1m"}}},
                {"name": "G", "valueFrom": {"secretKeyRef": {"key": ".."}}},
                {"name": "I", "valueFrom": {"resourceFieldRef": {"resource": ""}}},
                {"name": "H", "valueFrom": {"fileKeyRef": {"volumeName": "", "path": "/p", "key": "k"}}},
            ]
        },
        [
            f'{MAIN}.env[2].valueFrom.fieldRef.apiVersion: Unsupported value: "v2": supported values: "v1"',
            f"{MAIN}.env[2].valueFrom.fieldRef.fieldPath: Required value",
            f'{MAIN}.env[4].valueFrom.resourceFieldRef.resource: Invalid value: "limits.gpu": '
            "must be limits or requests, '.', and cpu, memory, ephemeral-storage or hugepages-<size>",
            f'{MAIN}.env[5].valueFrom.resourceFieldRef.divisor: Unsupported value: "1m": supported values: '
            + BYTE_DIVISORS,
            f"{MAIN}.env[6].valueFrom.secretKeyRef.name: Required value",
            f'{MAIN}.env[6].valueFrom.secretKeyRef.key: Invalid value: "..": '
            "must consist of letters, digits, '-', '_' "
            "and '.', and be neither '.' nor start with '..'",
            f"{MAIN}.env[7].valueFrom.resourceFieldRef.resource: Required value",
            f'{MAIN}.env[8].valueFrom.fileKeyRef.path: Invalid value: "/p": must be a relative path',
            f"{MAIN}.env[8].valueFrom.fileKeyRef.volumeName: Required value",
        ],
    ),
    (
        "fields of the pod",
        {
            "env": [
                {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": path}}}
                for path in (
                    "metadata.labels['app.kubernetes.io/name']",
                    "metadata.annotations['Upper/case']",
                    "metadata.labels['Upper/case']",
                    "metadata.labels['a b']",
                    "metadata.labels['']",
                    "metadata.labels",
                    "metadata.name['a']",
                    "spec.host",
                    "status.phase",
                )
            ]
        },
        [
            f"{MAIN}.env[2].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.labels['Upper/case']\": "
            "the key's prefix part must consist of lower case letters, digits, '-' and '.', "
            "and start and end with a letter or digit",
            f"{MAIN}.env[3].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.labels['a b']\": "
            f"the key's name part {QUALIFIED}",
            f"{MAIN}.env[4].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.labels['']\": "
            f"the key's name part {QUALIFIED}",
            *(
                f'{MAIN}.env[{index}].valueFrom.fieldRef.fieldPath: Unsupported value: "{path}": '
                f"supported values: {FIELD_PATHS}"
                for index, path in ((5, "metadata.labels"), (6, "metadata.name['a']"), (8, "status.phase"))
            ),
        ],
    ),
    (
        "units of resources",
        {
            "env": [
                {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": resource, "divisor": divisor}}}
                for resource, divisor in (
                    ("limits.cpu", 1),
                    ("limits.cpu", "1000m"),
                    ("requests.cpu", "0"),
                    ("limits.memory", "1024Ki"),
                    ("limits.hugepages-2Mi", "1Mi"),
                    ("requests.ephemeral-storage", "1000"),
                    ("limits.cpu", "1k"),
                    ("limits.memory", "1024"),
                    ("limits.memory", "x"),
                )
            ]
        },
        [
            f'{MAIN}.env[6].valueFrom.resourceFieldRef.divisor: Unsupported value: "1k": supported values: "1", "1m"',
            f'{MAIN}.env[7].valueFrom.resourceFieldRef.divisor: Unsupported value: "1024": '
            f"supported values: {BYTE_DIVISORS}",
            f'{MAIN}.env[8].valueFrom.resourceFieldRef.divisor: Invalid value: "x": {NUMBER}',
        ],
    ),
    (
        "environment from objects",
        {
            "envFrom": [
                {"prefix": "P_", "secretRef": {"name": "s"}},
                {"prefix": "="},
                {"configMapRef": {}, "secretRef": {"name": "s"}},
            ]
        },
        [
            f'{MAIN}.envFrom[1].prefix: Invalid value: "=": {ENV_NAME}',
            f"{MAIN}.envFrom[1]: Required value: must specify configMapRef or secretRef",
            f"{MAIN}.envFrom[2].secretRef: Forbidden: may not be set together with configMapRef",
            f"{MAIN}.envFrom[2].configMapRef.name: Required value",
        ],
    ),
    (
        "resources",
        {
            "resources": {
                "limits": {"cpu": "1", "memory": "-1", "example.com/gpu": "1.5", "hugepages-2Mi": "2Mi"},
                "requests": {"cpu": "1001m", "hugepages-2Mi": "1Mi", "example.com/nic": 1, "disk": 1, "a b": 1},
            }
        },
        [
            f'{MAIN}.resources.limits[memory]: Invalid value: "-1": must be greater than or equal to 0',
            f'{MAIN}.resources.limits[example.com/gpu]: Invalid value: "1.5": must be an integer',
            f'{MAIN}.resources.requests[a b]: Invalid value: "a b": name part {QUALIFIED}',
            f'{MAIN}.resources.requests[cpu]: Invalid value: "1001m": must be less than or equal to the cpu limit',
            f'{MAIN}.resources.requests[hugepages-2Mi]: Invalid value: "1Mi": '
            "must be equal to the hugepages-2Mi limit: it cannot be overcommitted",
            f"{MAIN}.resources.requests[example.com/nic]: Invalid value: 1: "
            "must be equal to the example.com/nic limit: it cannot be overcommitted",
            f'{MAIN}.resources.requests[disk]: Invalid value: "disk": {RESOURCE}',
            f'{MAIN}.resources.requests[a b]: Invalid value: "a b": {RESOURCE}',
        ],
    ),
    (
        "amounts in other words",
        {"resources": {"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": 1073741824}}},
        [],
    ),
    (
        "quantities",
        {"resources": {"limits": {"cpu": "1x"}}},
        [f'{MAIN}.resources.limits[cpu]: Invalid value: "1x": {NUMBER}'],
    ),
    (
        "unknown claim",
        {"resources": {"claims": [{"name": "gpu"}, {"name": "gpu"}, {"name": ""}]}},
        [
            f'{MAIN}.resources.claims[1]: Duplicate value: "gpu/"',
            f'{MAIN}.resources.claims[0].name: Not found: "gpu"',
            f'{MAIN}.resources.claims[1].name: Not found: "gpu"',
            f"{MAIN}.resources.claims[2].name: Required value",
        ],
    ),
    (
        "resize policy",
        {
            "resizePolicy": [
                {"resourceName": "cpu", "restartPolicy": "NotRequired"},
                {"resourceName": "cpu", "restartPolicy": "NotRequired"},
                {"resourceName": "disk", "restartPolicy": "RestartContainer"},
            ]
        },
        [
            f'{MAIN}.resizePolicy[1].resourceName: Duplicate value: "cpu"',
            f'{MAIN}.resizePolicy[2].resourceName: Unsupported value: "disk": supported values: "cpu", "memory"',
        ],
    ),
    (
        "probe handlers",
        {
            "livenessProbe": {},
            "readinessProbe": {**EXEC, "grpc": {"port": 0}},
            "startupProbe": {"exec": {}},
        },
        [
            f"{MAIN}.livenessProbe: Required value: must specify a handler: exec, httpGet, tcpSocket or grpc",
            f"{MAIN}.startupProbe.exec.command: Required value",
            f"{MAIN}.readinessProbe.grpc: Forbidden: may not be set together with exec",
            f"{MAIN}.readinessProbe.grpc.port: Invalid value: 0: {PORT_RANGE}",
        ],
    ),
    (
        "probe numbers",
        {
            "livenessProbe": {
                **EXEC,
                "initialDelaySeconds": -1,
                "timeoutSeconds": -1,
                "periodSeconds": -1,
                "successThreshold": 2,
                "failureThreshold": -1,
                "terminationGracePeriodSeconds": 0,
            },
            "startupProbe": {**EXEC, "successThreshold": 3},
            "readinessProbe": {**EXEC, "successThreshold": 3, "terminationGracePeriodSeconds": 1},
        },
        [
            *(
                f"{MAIN}.livenessProbe.{name}: Invalid value: -1: must be greater than or equal to 0"
                for name in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "failureThreshold")
            ),
            f"{MAIN}.livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than or equal to 1",
            f"{MAIN}.livenessProbe.successThreshold: Invalid value: 2: must be 1",
            f"{MAIN}.startupProbe.successThreshold: Invalid value: 3: must be 1",
            f"{MAIN}.readinessProbe.terminationGracePeriodSeconds: Forbidden: "
            "may not be set: a failed readiness probe stops nothing",
        ],
    ),
    (
        "probe ports and headers",
        {
            "livenessProbe": {"httpGet": {"port": "http", "httpHeaders": [{"name": "X-A", "value": ""}]}},
            "startupProbe": {"httpGet": {"port": 0, "httpHeaders": [{"name": "X A", "value": ""}]}},
            "readinessProbe": {"tcpSocket": {"port": "80"}},
        },
        [
            f"{MAIN}.startupProbe.httpGet.port: Invalid value: 0: {PORT_RANGE}",
            f'{MAIN}.startupProbe.httpGet.httpHeaders[0].name: Invalid value: "X A": '
            "must consist of letters, digits and '-'",
            f'{MAIN}.readinessProbe.tcpSocket.port: Invalid value: "80": {PORT_NAME}',
        ],
    ),
    (
        "hooks",
        {
            "lifecycle": {
                "postStart": {},
                "preStop": {"sleep": {"seconds": 31}, "tcpSocket": {"port": ""}},
                "stopSignal": "SIGTERM",
            }
        },
        [
            f"{MAIN}.lifecycle.postStart: Required value: must specify a handler: exec, httpGet, tcpSocket or sleep",
            f"{MAIN}.lifecycle.preStop.sleep: Forbidden: may not be set together with tcpSocket",
            f"{MAIN}.lifecycle.preStop.tcpSocket.port: Required value",
            f"{MAIN}.lifecycle.preStop.sleep.seconds: Invalid value: 31: "
            "must be between 0 and the pod's terminationGracePeriodSeconds (30), inclusive",
            f"{MAIN}.lifecycle.stopSignal: Forbidden: may only be set together with spec.os.name",
        ],
    ),
    ("sleep", {"lifecycle": {"preStop": {"sleep": {"seconds": 30}}, "postStart": {"sleep": {"seconds": 0}}}}, []),
    (
        "rights",
        {
            "securityContext": {
                "runAsUser": -1,
                "runAsGroup": 2**31,
                "procMount": "Unmasked",
                "privileged": True,
                "allowPrivilegeEscalation": False,
                "capabilities": {"add": ["CAP_SYS_ADMIN"]},
            }
        },
        [
            f"{MAIN}.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            f"{MAIN}.securityContext.runAsGroup: Invalid value: 2147483648: "
            "must be between 0 and 2147483647, inclusive",
            f'{MAIN}.securityContext.procMount: Invalid value: "Unmasked": needs hostUsers to be false',
            f'{MAIN}.securityContext: Invalid value: "allowPrivilegeEscalation": '
            "may not be false when privileged is true",
            f'{MAIN}.securityContext: Invalid value: "allowPrivilegeEscalation": '
            "may not be false when capabilities.add holds CAP_SYS_ADMIN",
        ],
    ),
    ("no rights", {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}, []),
    ("restart policy", {"restartPolicy": "Never"}, []),
    (
        "restart rules",
        {
            "restartPolicy": "Never",
            "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}],
        },
        [],
    ),
    (
        "bad restart rules",
        {
            "restartPolicyRules": [
                {},
                {"action": "Restart", "exitCodes": {}},
                {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [1] * 256}},
            ]
        },
        [
            f"{MAIN}.restartPolicy: Required value: must be set together with restartPolicyRules",
            f"{MAIN}.restartPolicyRules[0].action: Required value",
            f"{MAIN}.restartPolicyRules[0].exitCodes: Required value",
            f"{MAIN}.restartPolicyRules[1].exitCodes.operator: Required value",
            f"{MAIN}.restartPolicyRules[1].exitCodes.values: Required value: must hold at least one exit code",
            f"{MAIN}.restartPolicyRules[2].exitCodes.values: Too many: 256: must have at most 255 items",
        ],
    ),
    (
        "too many restart rules",
        {
            "restartPolicy": "Never",
            "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}] * 21,
        },
        [f"{MAIN}.restartPolicyRules: Too many: 21: must have at most 20 items"],
    ),
]


@pytest.mark.parametrize(
    ("container", "expected"), [case[1:] for case in CONTAINER], ids=[case[0] for case in CONTAINER]
)
def test_container(container: dict[str, Any], expected: list[str]) -> None:
    assert errors(manifest(container=container)) == expected


PVC = {"name": "disk", "persistentVolumeClaim": {"claimName": "c"}}
MOUNTS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("fine", {"volumeMounts": [{"name": "data", "mountPath": "/a", "subPath": "x/y"}]}, []),
    (
        "missing volumes",
        {
            "volumeMounts": [{"name": "gone", "mountPath": "/a"}, {"name": "", "mountPath": "/b"}],
            "volumeDevices": [{"name": "gone", "devicePath": "/dev/x"}],
        },
        [
            f'{MAIN}.volumeMounts[0].name: Not found: "gone"',
            f"{MAIN}.volumeMounts[1].name: Required value",
            f'{MAIN}.volumeDevices[0].name: Not found: "gone"',
            f'{MAIN}.volumeDevices[0].name: Invalid value: "gone": is already mounted in volumeMounts',
        ],
    ),
    (
        "paths",
        {
            "volumeMounts": [
                {"name": "data", "mountPath": "/a"},
                {"name": "data", "mountPath": "/a"},
                {"name": "data", "mountPath": ""},
                {"name": "data", "mountPath": "/b", "subPath": "/x"},
                {"name": "data", "mountPath": "/c", "subPathExpr": "$(A)/.."},
                {"name": "data", "mountPath": "/d", "subPath": "x", "subPathExpr": "y"},
            ]
        },
        [
            f'{MAIN}.volumeMounts[1].mountPath: Duplicate value: "/a"',
            f"{MAIN}.volumeMounts[2].mountPath: Required value",
            f'{MAIN}.volumeMounts[3].subPath: Invalid value: "/x": must be a relative path',
            f"{MAIN}.volumeMounts[4].subPathExpr: Invalid value: \"$(A)/..\": must not contain '..'",
            f"{MAIN}.volumeMounts[5].subPathExpr: Forbidden: may not be set together with subPath",
        ],
    ),
    (
        "propagation",
        {
            "volumeMounts": [
                {"name": "data", "mountPath": "/a", "mountPropagation": "Bidirectional"},
                {"name": "data", "mountPath": "/b", "recursiveReadOnly": "Enabled"},
                {
                    "name": "data",
                    "mountPath": "/c",
                    "readOnly": True,
                    "recursiveReadOnly": "IfPossible",
                    "mountPropagation": "HostToContainer",
                },
                {"name": "data", "mountPath": "/d", "recursiveReadOnly": "Disabled"},
            ]
        },
        [
            f"{MAIN}.volumeMounts[0].mountPropagation: Forbidden: Bidirectional needs a privileged container",
            f"{MAIN}.volumeMounts[1].recursiveReadOnly: Forbidden: may only be set when readOnly is true",
            f"{MAIN}.volumeMounts[2].recursiveReadOnly: Forbidden: "
            "may only be set when mountPropagation is None or not set",
        ],
    ),
    (
        "privileged propagation",
        {
            "securityContext": {"privileged": True},
            "volumeMounts": [{"name": "data", "mountPath": "/a", "mountPropagation": "Bidirectional"}],
        },
        [],
    ),
    ("device", {"volumeDevices": [{"name": "disk", "devicePath": "/dev/x"}]}, []),
    (
        "devices",
        {
            "volumeMounts": [{"name": "data", "mountPath": "/dev/x"}],
            "volumeDevices": [
                {"name": "disk", "devicePath": "/dev/x"},
                {"name": "disk", "devicePath": "/dev/x"},
                {"name": "plain", "devicePath": "/dev/../y"},
            ],
        },
        [
            f'{MAIN}.volumeDevices[1].name: Duplicate value: "disk"',
            f'{MAIN}.volumeDevices[1].devicePath: Duplicate value: "/dev/x"',
            f'{MAIN}.volumeDevices[0].devicePath: Invalid value: "/dev/x": is already a mountPath in volumeMounts',
            f'{MAIN}.volumeDevices[1].devicePath: Invalid value: "/dev/x": is already a mountPath in volumeMounts',
            f"{MAIN}.volumeDevices[2].devicePath: Invalid value: \"/dev/../y\": must not contain '..'",
            f'{MAIN}.volumeDevices[2].name: Invalid value: "plain": '
            "only a persistentVolumeClaim or ephemeral volume is a block device",
        ],
    ),
]


@pytest.mark.parametrize(("container", "expected"), [case[1:] for case in MOUNTS], ids=[case[0] for case in MOUNTS])
def test_mounts(container: dict[str, Any], expected: list[str]) -> None:
    main = {"name": "main", "image": "a:1", **container}
    volumes = [{"name": "data"}, {"name": "plain"}, PVC]
    assert errors(manifest(spec={"volumes": volumes, "containers": [main]})) == expected


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
    assert errors(manifest(spec=spec)) == expected
