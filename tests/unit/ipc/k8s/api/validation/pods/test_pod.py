"""Refusals about a pod's metadata, its spec and its volumes; containers have a file of their own."""

from typing import Any

import pytest

from ipc.k8s.api.decode import MAX_FIELD_ERRORS, decode_pod
from ipc.k8s.api.validation.metadata import MAX_ANNOTATIONS_BYTES
from ipc.k8s.api.validation.pods.pod import validate_pod
from tests.support.api_manifests import findings, manifest

DNS_LABEL = "must consist of lower case letters, digits and '-', and start and end with a letter or digit"
DNS_SUBDOMAIN = "must consist of lower case letters, digits, '-' and '.', and start and end with a letter or digit"
QUALIFIED = "must consist of letters, digits, '-', '_' and '.', and start and end with a letter or digit"
IP = "must be a valid IP address (e.g. 10.9.8.7 or 2001:db8::ffff)"
PATHS = "Required value: must specify a path for the credentials"


def errors(spec: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None) -> list[str]:
    return findings(manifest(spec=spec, metadata=metadata))


METADATA = [
    ("name", {"name": "Web"}, [f'metadata.name: Invalid value: "Web": {DNS_SUBDOMAIN}']),
    ("no name", {"name": ""}, ["metadata.name: Required value"]),
    ("generated name", {"name": None, "generateName": "web-"}, ["metadata.name: Required value"]),
    ("name with dots", {"name": "web.example.com"}, []),
    (
        "long name",
        {"name": "a" * 254},
        [f'metadata.name: Invalid value: "{"a" * 64}…": must be no more than 253 characters'],
    ),
    ("name with line feed", {"name": "web\n"}, [f'metadata.name: Invalid value: "web\\n": {DNS_SUBDOMAIN}']),
    ("namespace", {"namespace": "a.b"}, [f'metadata.namespace: Invalid value: "a.b": {DNS_LABEL}']),
    ("uuid", {"uid": "0d8a1f0e-2b1c-4c39-9e0b-8f6f4a1c1f55"}, []),
    ("hash as uid", {"uid": "9f86d081884c7d65"}, []),
    (
        "uid",
        {"uid": "../x"},
        [
            'metadata.uid: Invalid value: "../x": '
            "must consist of letters, digits and '-', and start and end with a letter "
            "or digit: it becomes part of labels and paths"
        ],
    ),
    (
        "generation",
        {"generation": -1},
        ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"],
    ),
    ("labels", {"labels": {"app.kubernetes.io/name": "web_1.x", "empty": ""}}, []),
    (
        "label key",
        {"labels": {"-a": "x"}},
        [f'metadata.labels[-a]: Invalid value: "-a": name part {QUALIFIED}'],
    ),
    (
        "label prefix",
        {"labels": {"A.io/a": "x"}},
        [f'metadata.labels[A.io/a]: Invalid value: "A.io/a": prefix part {DNS_SUBDOMAIN}'],
    ),
    (
        "empty label prefix",
        {"labels": {"/a": "x"}},
        [f'metadata.labels[/a]: Invalid value: "/a": prefix part {DNS_SUBDOMAIN}'],
    ),
    (
        "label value",
        {"labels": {"a": "x y"}},
        [f'metadata.labels[a]: Invalid value: "x y": must be empty or {QUALIFIED.removeprefix("must ")}'],
    ),
    (
        "long label value",
        {"labels": {"a": "x" * 64}},
        [f'metadata.labels[a]: Invalid value: "{"x" * 64}": must be no more than 63 characters'],
    ),
    ("annotations", {"annotations": {"Example.com/Any": "any text\n" * 100}}, []),
    (
        "annotation key",
        {"annotations": {"a b": ""}},
        [f'metadata.annotations[a b]: Invalid value: "a b": name part {QUALIFIED}'],
    ),
    ("annotations as large as they may be", {"annotations": {"a": "x" * (MAX_ANNOTATIONS_BYTES - 1)}}, []),
    (
        "annotations too large",
        {"annotations": {"a": "ü" * (MAX_ANNOTATIONS_BYTES // 2)}},
        [f"metadata.annotations: Too long: may not be more than {MAX_ANNOTATIONS_BYTES} bytes"],
    ),
    ("finalizer", {"finalizers": [""]}, ["metadata.finalizers[0]: Required value"]),
]


@pytest.mark.parametrize(("metadata", "expected"), [case[1:] for case in METADATA], ids=[case[0] for case in METADATA])
def test_metadata(metadata: dict[str, Any], expected: list[str]) -> None:
    assert errors(metadata=metadata) == expected


TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def required_nodes(*terms: dict[str, Any]) -> dict[str, Any]:
    nodes = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"nodeAffinity": nodes}


SPEC: list[tuple[str, dict[str, Any], list[str]]] = [
    ("minimal", {}, []),
    ("no containers", {"containers": []}, ["spec.containers: Required value: must hold at least one container"]),
    ("no grace", {"terminationGracePeriodSeconds": 0}, []),
    (
        "grace",
        {"terminationGracePeriodSeconds": -1},
        ["spec.terminationGracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0"],
    ),
    (
        "deadline",
        {"activeDeadlineSeconds": 0},
        ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
    ),
    (
        "long deadline",
        {"activeDeadlineSeconds": 2**31},
        ["spec.activeDeadlineSeconds: Invalid value: 2147483648: must be between 1 and 2147483647, inclusive"],
    ),
    ("hostname", {"hostname": "a.b"}, [f'spec.hostname: Invalid value: "a.b": {DNS_LABEL}']),
    ("subdomain", {"subdomain": "A"}, [f'spec.subdomain: Invalid value: "A": {DNS_LABEL}']),
    ("override", {"hostnameOverride": "a.b"}, []),
    ("empty override", {"hostnameOverride": ""}, ["spec.hostnameOverride: Required value"]),
    (
        "override too long",
        {"hostnameOverride": "a" * 65},
        [f'spec.hostnameOverride: Invalid value: "{"a" * 64}…": must be no more than 64 characters'],
    ),
    (
        "override and host network",
        {"hostnameOverride": "a", "hostNetwork": True, "setHostnameAsFQDN": True},
        [
            "spec.hostnameOverride: Forbidden: may not be set when hostNetwork is true",
            "spec.hostnameOverride: Forbidden: may not be set when setHostnameAsFQDN is true",
        ],
    ),
    ("aliases", {"hostAliases": [{"ip": "::1", "hostnames": ["a", "b.c"]}]}, []),
    ("leading zeros", {"hostAliases": [{"ip": "010.0.0.01"}], "dnsConfig": {"nameservers": ["192.000.002.001"]}}, []),
    (
        "bad aliases",
        {"hostAliases": [{"ip": "1.2.3", "hostnames": ["a_b"]}, {"ip": ""}]},
        [
            f'spec.hostAliases[0].ip: Invalid value: "1.2.3": {IP}',
            f'spec.hostAliases[0].hostnames[0]: Invalid value: "a_b": {DNS_SUBDOMAIN}',
            "spec.hostAliases[1].ip: Required value",
        ],
    ),
    (
        "dns",
        {
            "dnsPolicy": "None",
            "dnsConfig": {
                "nameservers": ["1.1.1.1"],
                "searches": [".", "a_b.c.", "d"],
                "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
            },
        },
        [],
    ),
    (
        "dns policy None",
        {"dnsPolicy": "None"},
        ["spec.dnsConfig.nameservers: Required value: must hold at least one when dnsPolicy is None"],
    ),
    (
        "dns limits",
        {"dnsConfig": {"nameservers": ["1.1.1.1"] * 4, "searches": ["a"] * 33, "options": [{}]}},
        [
            "spec.dnsConfig.nameservers: Too many: 4: must have at most 3 items",
            "spec.dnsConfig.searches: Too many: 33: must have at most 32 items",
            "spec.dnsConfig.options[0].name: Required value",
        ],
    ),
    (
        "dns names",
        {"dnsConfig": {"nameservers": ["fe80::1%eth0"], "searches": ["A"]}},
        [
            f'spec.dnsConfig.nameservers[0]: Invalid value: "fe80::1%eth0": {IP}',
            'spec.dnsConfig.searches[0]: Invalid value: "A": '
            "must consist of lower case letters, digits, '-', '_' and "
            "'.', and start and end with a letter or digit",
        ],
    ),
    (
        "dns search list length",
        {"dnsConfig": {"searches": [("a" * 63 + ".") * 3 + "b"] * 11}},
        [
            f'spec.dnsConfig.searches: Invalid value: "{"a" * 63}.…": '
            "must not have more than 2048 characters with the spaces between"
        ],
    ),
    ("shared processes", {"hostPID": True}, []),
    (
        "shared with host and pod",
        {"hostPID": True, "shareProcessNamespace": True},
        ["spec.shareProcessNamespace: Invalid value: True: may not be true together with hostPID"],
    ),
    (
        "own users, host namespaces",
        {"hostUsers": False, "hostNetwork": True, "hostPID": True, "hostIPC": True},
        [
            "spec.hostNetwork: Forbidden: may not be true when hostUsers is false",
            "spec.hostPID: Forbidden: may not be true when hostUsers is false",
            "spec.hostIPC: Forbidden: may not be true when hostUsers is false",
        ],
    ),
    (
        "security ids",
        {"securityContext": {"runAsUser": -1, "runAsGroup": 2**31, "fsGroup": -2, "supplementalGroups": [0, -3]}},
        [
            "spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            "spec.securityContext.runAsGroup: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive",
            "spec.securityContext.fsGroup: Invalid value: -2: must be between 0 and 2147483647, inclusive",
            "spec.securityContext.supplementalGroups[1]: Invalid value: -3: "
            "must be between 0 and 2147483647, inclusive",
        ],
    ),
    ("sysctl", {"securityContext": {"sysctls": [{"name": "net/ipv4/ip_forward", "value": "1"}]}}, []),
    (
        "sysctls",
        {
            "securityContext": {
                "sysctls": [
                    {"name": "kernel.shm", "value": "1"},
                    {"name": "kernel/shm", "value": "2"},
                    {"name": "Kernel", "value": "1"},
                    {"name": "", "value": ""},
                ]
            }
        },
        [
            'spec.securityContext.sysctls[1].name: Duplicate value: "kernel/shm"',
            'spec.securityContext.sysctls[2].name: Invalid value: "Kernel": '
            "must consist of lower case letters, digits, "
            "'-' and '_' in parts separated by '.' or '/'",
            "spec.securityContext.sysctls[3].name: Required value",
        ],
    ),
    (
        "sysctls of the host",
        {
            "hostNetwork": True,
            "hostIPC": True,
            "securityContext": {
                "sysctls": [
                    {"name": "net/ipv4/tcp_syncookies", "value": "1"},
                    {"name": "fs.mqueue.msg_max", "value": "9"},
                    {"name": "user.max_inotify_watches", "value": "9"},
                ]
            },
        },
        [
            'spec.securityContext.sysctls[0].name: Invalid value: "net/ipv4/tcp_syncookies": '
            "may not be specified when hostNetwork is true",
            'spec.securityContext.sysctls[1].name: Invalid value: "fs.mqueue.msg_max": '
            "may not be specified when hostIPC is true",
        ],
    ),
    (
        "profiles",
        {
            "securityContext": {
                "seccompProfile": {"type": "Localhost"},
                "appArmorProfile": {"type": "RuntimeDefault", "localhostProfile": "x"},
            }
        },
        [
            "spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when type is Localhost",
            'spec.securityContext.appArmorProfile.localhostProfile: Invalid value: "x": '
            "may only be set when type is Localhost",
        ],
    ),
    (
        "profile paths",
        {
            "securityContext": {
                "seccompProfile": {"type": "Localhost", "localhostProfile": "/etc/x"},
                "appArmorProfile": {"type": "Localhost", "localhostProfile": " x"},
            }
        },
        [
            'spec.securityContext.seccompProfile.localhostProfile: Invalid value: "/etc/x": must be a relative path',
            'spec.securityContext.appArmorProfile.localhostProfile: Invalid value: " x": '
            "must not be padded with whitespace",
        ],
    ),
    (
        "apparmor profile name",
        {"securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": "x" * 4096}}},
        [
            f'spec.securityContext.appArmorProfile.localhostProfile: Invalid value: "{"x" * 64}…": '
            "must be no more than 4095 characters"
        ],
    ),
    (
        "tolerations",
        {
            "tolerations": [
                {"operator": "Exists"},
                {"key": "a", "value": "b"},
                {"operator": "Equal"},
                {"key": "a", "operator": "Exists", "value": "b"},
                {"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 1},
            ]
        },
        [
            'spec.tolerations[2].operator: Invalid value: "Equal": must be Exists when key is empty',
            'spec.tolerations[3].value: Invalid value: "b": must be empty when operator is Exists',
            'spec.tolerations[4].effect: Invalid value: "NoSchedule": must be NoExecute when tolerationSeconds is set',
        ],
    ),
    ("node affinity", {"affinity": required_nodes({"matchExpressions": [{"key": "a", "operator": "Exists"}]})}, []),
    (
        "no node affinity",
        {"affinity": required_nodes()},
        [f"{TERMS}: Required value: must have at least one node selector term"],
    ),
    (
        "bad node affinity",
        {
            "affinity": required_nodes(
                {
                    "matchExpressions": [
                        {"key": "a", "operator": "In"},
                        {"key": "a", "operator": "Exists", "values": ["x"]},
                        {"key": "a", "operator": "Gt", "values": ["1", "2"]},
                        {"key": "!", "operator": "DoesNotExist"},
                    ],
                    "matchFields": [
                        {"key": "metadata.name", "operator": "Exists"},
                        {"key": "metadata.name", "operator": "NotIn", "values": ["a", "b"]},
                        {"key": "metadata.uid", "operator": "In", "values": ["a"]},
                    ],
                }
            )
        },
        [
            f"{TERMS}[0].matchExpressions[0].values: Required value: "
            "must be specified when `operator` is 'In' or 'NotIn'",
            f"{TERMS}[0].matchExpressions[1].values: Forbidden: "
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            f"{TERMS}[0].matchExpressions[2].values: Required value: "
            "must be specified single value when `operator` is 'Lt' or 'Gt'",
            f'{TERMS}[0].matchExpressions[3].key: Invalid value: "!": name part {QUALIFIED}',
            f'{TERMS}[0].matchFields[0].operator: Unsupported value: "Exists": supported values: "In", "NotIn"',
            f"{TERMS}[0].matchFields[1].values: Required value: "
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
            f'{TERMS}[0].matchFields[2].key: Invalid value: "metadata.uid": not a valid field selector key',
        ],
    ),
    (
        "references",
        {
            "nodeName": "A",
            "serviceAccountName": "B",
            "priorityClassName": "C",
            "runtimeClassName": "D",
            "imagePullSecrets": [{"name": "E"}],
            "nodeSelector": {"F!": "x"},
        },
        [
            f'spec.nodeName: Invalid value: "A": {DNS_SUBDOMAIN}',
            f'spec.nodeSelector[F!]: Invalid value: "F!": name part {QUALIFIED}',
            f'spec.serviceAccountName: Invalid value: "B": {DNS_SUBDOMAIN}',
            f'spec.priorityClassName: Invalid value: "C": {DNS_SUBDOMAIN}',
            f'spec.runtimeClassName: Invalid value: "D": {DNS_SUBDOMAIN}',
            f'spec.imagePullSecrets[0].name: Invalid value: "E": {DNS_SUBDOMAIN}',
        ],
    ),
    (
        "gates",
        {"readinessGates": [{"conditionType": "a b"}], "schedulingGates": [{"name": "g"}, {"name": "g"}]},
        [
            f'spec.readinessGates[0].conditionType: Invalid value: "a b": name part {QUALIFIED}',
            'spec.schedulingGates[1].name: Duplicate value: "g"',
        ],
    ),
    (
        "claims",
        {
            "resourceClaims": [
                {"name": "a", "resourceClaimName": "x"},
                {"name": "a", "resourceClaimName": "x", "resourceClaimTemplateName": ""},
                {"name": "b"},
            ]
        },
        [
            'spec.resourceClaims[1].name: Duplicate value: "a"',
            "spec.resourceClaims[1].resourceClaimTemplateName: Forbidden: "
            "may not be set together with resourceClaimName",
            "spec.resourceClaims[1].resourceClaimTemplateName: Required value",
            "spec.resourceClaims[2]: Required value: must specify resourceClaimName or resourceClaimTemplateName",
        ],
    ),
    (
        "pod resources",
        {"resources": {"requests": {"cpu": "x", "storage": 1}, "claims": [{"name": "a"}]}},
        [
            "spec.resources.claims: Forbidden: may only be set on containers",
            'spec.resources.requests[cpu]: Invalid value: "x": '
            "must be a number with an optional suffix such as m, k, M, "
            "Ki, Mi or e3",
            'spec.resources.requests[storage]: Unsupported value: "storage": supported values: "cpu", "memory", '
            '"hugepages-<size>"',
        ],
    ),
    (
        "overhead",
        {"overhead": {"cpu": "-1"}},
        ['spec.overhead[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
    ),
]


@pytest.mark.parametrize(("spec", "expected"), [case[1:] for case in SPEC], ids=[case[0] for case in SPEC])
def test_spec(spec: dict[str, Any], expected: list[str]) -> None:
    assert errors(spec) == expected


VOLUMES: list[tuple[str, list[dict[str, Any]], list[str]]] = [
    (
        "names",
        [{"name": "a"}, {"name": "a"}, {"name": "A"}, {"name": ""}, {"name": ""}],
        [
            'spec.volumes[1].name: Duplicate value: "a"',
            f'spec.volumes[2].name: Invalid value: "A": {DNS_LABEL}',
            "spec.volumes[3].name: Required value",
            "spec.volumes[4].name: Required value",
        ],
    ),
    (
        "two sources",
        [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/x"}, "secret": {"secretName": "s"}}],
        [
            "spec.volumes[0].emptyDir: Forbidden: may not be set together with hostPath",
            "spec.volumes[0].secret: Forbidden: may not be set together with hostPath",
        ],
    ),
    (
        "empty dir",
        [
            {"name": "a", "emptyDir": {"medium": "HugePages-2Mi", "sizeLimit": "1Gi"}},
            {"name": "b", "emptyDir": {"medium": "disk", "sizeLimit": "-1"}},
        ],
        [
            'spec.volumes[0].emptyDir.medium: Unsupported value: "HugePages-2Mi": supported values: "", "Memory"',
            'spec.volumes[1].emptyDir.medium: Unsupported value: "disk": supported values: "", "Memory"',
            'spec.volumes[1].emptyDir.sizeLimit: Invalid value: "-1": must be greater than or equal to 0',
        ],
    ),
    (
        "host path",
        [
            {"name": "a", "hostPath": {"path": "/x/..y", "type": "Directory"}},
            {"name": "b", "hostPath": {"path": "/x/../y"}},
            {"name": "c", "hostPath": {"path": ""}},
            {"name": "d", "hostPath": {"path": "x/y"}},
        ],
        [
            "spec.volumes[1].hostPath.path: Invalid value: \"/x/../y\": must not contain '..'",
            "spec.volumes[2].hostPath.path: Required value",
            'spec.volumes[3].hostPath.path: Invalid value: "x/y": must be an absolute path: '
            "there is no directory on the host that a relative one would begin at",
        ],
    ),
    (
        "secret and config map",
        [
            {
                "name": "a",
                "secret": {
                    "defaultMode": 0o1000,
                    "items": [{"key": "", "path": "/x", "mode": -1}, {"key": "k", "path": "..x"}],
                },
            },
            {"name": "b", "configMap": {"items": [{"key": "k", "path": "a/../b"}]}},
        ],
        [
            "spec.volumes[0].secret.secretName: Required value",
            "spec.volumes[0].secret.defaultMode: Invalid value: 512: must be between 0 and 511, inclusive",
            "spec.volumes[0].secret.items[0].key: Required value",
            'spec.volumes[0].secret.items[0].path: Invalid value: "/x": must be a relative path',
            "spec.volumes[0].secret.items[0].mode: Invalid value: -1: must be between 0 and 511, inclusive",
            "spec.volumes[0].secret.items[1].path: Invalid value: \"..x\": must not start with '..'",
            "spec.volumes[1].configMap.name: Required value",
            "spec.volumes[1].configMap.items[0].path: Invalid value: \"a/../b\": must not contain '..'",
        ],
    ),
    (
        "downward api",
        [
            {
                "name": "a",
                "downwardAPI": {
                    "items": [
                        {"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}},
                        {"path": "k", "fieldRef": {"fieldPath": "metadata.labels['a']"}},
                        {"path": "p", "fieldRef": {"fieldPath": "status.podIP"}},
                        {"path": "r", "resourceFieldRef": {"resource": "limits.cpu", "containerName": "main"}},
                        {"path": "s", "resourceFieldRef": {"resource": "limits.cpu"}},
                        {"path": "n"},
                    ]
                },
            }
        ],
        [
            'spec.volumes[0].downwardAPI.items[2].fieldRef.fieldPath: Unsupported value: "status.podIP": '
            "supported values: "
            '"metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations", '
            "\"metadata.labels['<key>']\", \"metadata.annotations['<key>']\"",
            "spec.volumes[0].downwardAPI.items[4].resourceFieldRef.containerName: Required value",
            "spec.volumes[0].downwardAPI.items[5]: Required value: must specify fieldRef or resourceFieldRef",
        ],
    ),
    (
        "projected",
        [
            {
                "name": "a",
                "projected": {
                    "sources": [
                        {},
                        {"secret": {"name": "s", "items": [{"key": "k", "path": "same"}]}, "configMap": {"name": "c"}},
                        {"serviceAccountToken": {"path": "same", "expirationSeconds": 599}},
                        {"clusterTrustBundle": {"path": "t"}},
                        {"podCertificate": {"signerName": "s", "keyType": "k"}},
                    ]
                },
            }
        ],
        [
            "spec.volumes[0].projected.sources[0]: Required value: must specify a projection source",
            "spec.volumes[0].projected.sources[1].configMap: Forbidden: may not be set together with secret",
            "spec.volumes[0].projected.sources[2].serviceAccountToken.expirationSeconds: Invalid value: 599: "
            "must be between 600 and 4294967296, inclusive",
            'spec.volumes[0].projected.sources[3].clusterTrustBundle: Invalid value: "": '
            "exactly one of name and signerName must be set",
            f"spec.volumes[0].projected.sources[4].podCertificate: {PATHS}",
            'spec.volumes[0].projected: Invalid value: "same": conflicting duplicate paths',
        ],
    ),
    (
        "others",
        [
            {"name": "a", "persistentVolumeClaim": {"claimName": ""}},
            {"name": "b", "ephemeral": {}},
            {"name": "c", "image": {}},
            {"name": "d", "gitRepo": {"repository": "", "directory": "../x"}},
            {"name": "e", "nfs": {"server": "", "path": ""}},
        ],
        [
            "spec.volumes[0].persistentVolumeClaim.claimName: Required value",
            "spec.volumes[1].ephemeral.volumeClaimTemplate: Required value",
            "spec.volumes[2].image.reference: Required value",
            "spec.volumes[3].gitRepo.repository: Required value",
            "spec.volumes[3].gitRepo.directory: Invalid value: \"../x\": must not start with '..'",
        ],
    ),
]


@pytest.mark.parametrize(("volumes", "expected"), [case[1:] for case in VOLUMES], ids=[case[0] for case in VOLUMES])
def test_volumes(volumes: list[dict[str, Any]], expected: list[str]) -> None:
    assert errors({"volumes": volumes}) == expected


def test_number_of_findings_is_bounded() -> None:
    volumes = [{"name": "A"}] * (10 * MAX_FIELD_ERRORS)
    assert len(validate_pod(decode_pod(manifest(spec={"volumes": volumes})))) == MAX_FIELD_ERRORS
