"""Refusals about containers: names, ports, environment, resources, probes, hooks, rights, restarts."""

from typing import Any

import pytest

from tests.support.api_manifests import findings, manifest

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
                "limits": {"cpu": "1", "memory": "-1", "example.com/gpu": "1500m", "hugepages-2Mi": "2Mi"},
                "requests": {"cpu": "1001m", "hugepages-2Mi": "1Mi", "example.com/nic": "1", "disk": "1", "a b": "1"},
            }
        },
        [
            f'{MAIN}.resources.limits[memory]: Invalid value: "-1": must be greater than or equal to 0',
            f'{MAIN}.resources.limits[example.com/gpu]: Invalid value: "1500m": must be an integer',
            f'{MAIN}.resources.requests[a b]: Invalid value: "a b": name part {QUALIFIED}',
            f'{MAIN}.resources.requests[cpu]: Invalid value: "1001m": must be less than or equal to the cpu limit',
            f'{MAIN}.resources.requests[hugepages-2Mi]: Invalid value: "1Mi": '
            "must be equal to the hugepages-2Mi limit: it cannot be overcommitted",
            f'{MAIN}.resources.requests[example.com/nic]: Invalid value: "1": '
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
    assert findings(manifest(container=container)) == expected
