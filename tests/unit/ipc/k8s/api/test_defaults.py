"""Defaults against what Kubernetes documents and its defaults_test.go asserts."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from ipc.k8s.api.decode import (
    decode_persistent_volume,
    decode_persistent_volume_claim,
    decode_pod,
    decode_runtime_class,
    encode_pod,
)
from ipc.k8s.api.defaults import (
    default_persistent_volume,
    default_persistent_volume_claim,
    default_pod,
    default_runtime_class,
)
from tests.support.api_manifests import manifest

POD_DEFAULTS = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "terminationGracePeriodSeconds": 30,
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
}
CONTAINER_DEFAULTS = {
    "name": "main",
    "image": "busybox:1.36",
    "imagePullPolicy": "IfNotPresent",
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "resources": {},
}
PROBE_DEFAULTS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
MODE = 0o644


def defaulted(obj: Mapping[str, object]) -> Any:
    return json.loads(encode_pod(default_pod(decode_pod(obj))))


def test_minimal_pod() -> None:
    assert defaulted(manifest()) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {**POD_DEFAULTS, "containers": [CONTAINER_DEFAULTS]},
        "status": {},
    }


def test_what_is_given_is_kept() -> None:
    spec = {
        "restartPolicy": "Never",
        "dnsPolicy": "None",
        "terminationGracePeriodSeconds": 0,
        "securityContext": {"runAsUser": 0},
        "schedulerName": "mine",
        "enableServiceLinks": False,
    }
    container = {
        **CONTAINER_DEFAULTS,
        "imagePullPolicy": "Never",
        "terminationMessagePath": "/log",
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    result = defaulted(manifest(spec={**spec, "containers": [container]}, metadata={"namespace": "prod"}))
    assert result["spec"] == {**spec, "containers": [container]}
    assert result["metadata"]["namespace"] == "prod"


CONTAINER_CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "port": ({"ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 80, "protocol": "TCP"}]}),
    "udp port": (
        {"ports": [{"containerPort": 53, "protocol": "UDP"}]},
        {"ports": [{"containerPort": 53, "protocol": "UDP"}]},
    ),
    "latest": ({"image": "busybox:latest"}, {"image": "busybox:latest", "imagePullPolicy": "Always"}),
    "no tag": ({"image": "busybox"}, {"image": "busybox", "imagePullPolicy": "Always"}),
    "http probe": (
        {"livenessProbe": {"httpGet": {"port": 80}}},
        {"livenessProbe": {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, **PROBE_DEFAULTS}},
    ),
    "grpc probe": (
        {"readinessProbe": {"grpc": {"port": 80}, "periodSeconds": 3}},
        {"readinessProbe": {"grpc": {"port": 80, "service": ""}, **PROBE_DEFAULTS, "periodSeconds": 3}},
    ),
    "exec probe": (
        {"startupProbe": {"exec": {"command": ["x"]}, "failureThreshold": 30}},
        {"startupProbe": {"exec": {"command": ["x"]}, **PROBE_DEFAULTS, "failureThreshold": 30}},
    ),
    "http hook": (
        {"lifecycle": {"preStop": {"httpGet": {"port": "web"}}}},
        {"lifecycle": {"preStop": {"httpGet": {"port": "web", "path": "/", "scheme": "HTTP"}}}},
    ),
    "field reference": (
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}]},
    ),
    "file key": (
        {"env": [{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}}]},
        {
            "env": [
                {
                    "name": "A",
                    "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k", "optional": False}},
                }
            ]
        },
    ),
    "requests from limits": (
        {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}},
        {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}}},
    ),
    "finer than milli": (
        {"resources": {"requests": {"cpu": "100.5m"}}},
        {"resources": {"requests": {"cpu": "101m"}}},
    ),
    "bad quantity stays": ({"resources": {"requests": {"cpu": "x"}}}, {"resources": {"requests": {"cpu": "x"}}}),
}


@pytest.mark.parametrize(("given", "expected"), CONTAINER_CASES.values(), ids=CONTAINER_CASES)
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_container(kind: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    result = defaulted(manifest(spec={kind: [{"name": "main", "image": "busybox:1.36", **given}]}))
    assert result["spec"][kind] == [{**CONTAINER_DEFAULTS, **expected}]


def test_ephemeral_container_gets_no_requests() -> None:
    ephemeral = {"name": "main", "image": "busybox:1.36", "resources": {"limits": {"cpu": 1}}}
    result = defaulted(manifest(spec={"ephemeralContainers": [ephemeral]}))
    assert result["spec"]["ephemeralContainers"] == [{**CONTAINER_DEFAULTS, "resources": {"limits": {"cpu": "1"}}}]


VOLUME_CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no source": ({}, {"emptyDir": {}}),
    "empty source": ({"emptyDir": None}, {"emptyDir": {}}),
    "secret": ({"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": MODE}}),
    "mode 0 is a mode": ({"secret": {"defaultMode": 0}}, {"secret": {"defaultMode": 0}}),
    "config map": ({"configMap": {"name": "c"}}, {"configMap": {"name": "c", "defaultMode": MODE}}),
    "downward api": ({"downwardAPI": {}}, {"downwardAPI": {"defaultMode": MODE}}),
    "projected": (
        {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {
            "projected": {
                "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                "defaultMode": MODE,
            }
        },
    ),
    "host path": ({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}),
    "image": ({"image": {"reference": "a:1"}}, {"image": {"reference": "a:1", "pullPolicy": "IfNotPresent"}}),
    "image latest": ({"image": {"reference": "a"}}, {"image": {"reference": "a", "pullPolicy": "Always"}}),
    "iscsi": (
        {"iscsi": {"targetPortal": "p", "iqn": "q", "lun": 0}},
        {"iscsi": {"targetPortal": "p", "iqn": "q", "lun": 0, "iscsiInterface": "default"}},
    ),
    "rbd": (
        {"rbd": {"monitors": [], "image": "i"}},
        {"rbd": {"monitors": [], "image": "i", "pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}},
    ),
    "azure disk": (
        {"azureDisk": {"diskName": "d", "diskURI": "u"}},
        {
            "azureDisk": {
                "diskName": "d",
                "diskURI": "u",
                "cachingMode": "ReadWrite",
                "fsType": "ext4",
                "readOnly": False,
                "kind": "Shared",
            }
        },
    ),
    "ephemeral claim": (
        {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"ephemeral": {"volumeClaimTemplate": {"metadata": {}, "spec": {"resources": {}, "volumeMode": "Filesystem"}}}},
    ),
}


@pytest.mark.parametrize(("given", "expected"), VOLUME_CASES.values(), ids=VOLUME_CASES)
def test_volume(given: dict[str, Any], expected: dict[str, Any]) -> None:
    result = defaulted(manifest(spec={"volumes": [{"name": "v", **given}]}))
    assert result["spec"]["volumes"] == [{"name": "v", **expected}]


def test_host_network_takes_the_same_port_of_the_host() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081}]
    result = defaulted(manifest(spec={"hostNetwork": True}, container={"ports": ports}))
    assert [port["hostPort"] for port in result["spec"]["containers"][0]["ports"]] == [80, 8081]


@pytest.mark.parametrize("given", [{"serviceAccountName": "robot"}, {"serviceAccount": "robot"}])
def test_both_names_of_the_service_account(given: dict[str, str]) -> None:
    spec = defaulted(manifest(spec=given))["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("robot", "robot")


POD_RESOURCE_CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "requests of the containers": (
        {"limits": {"cpu": "2", "memory": "2Gi"}},
        {"requests": {"cpu": "500m"}},
        {"limits": {"cpu": "2", "memory": "2Gi"}, "requests": {"cpu": "500m", "memory": "2Gi"}},
    ),
    "given requests win": (
        {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}},
        {"requests": {"cpu": "500m"}},
        {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}},
    ),
    "no limits, no defaults": ({"requests": {"cpu": "1"}}, {"requests": {"memory": "1Gi"}}, {"requests": {"cpu": "1"}}),
    "bad quantity stays": (
        {"limits": {"cpu": "1"}},
        {"requests": {"cpu": "x"}},
        {"limits": {"cpu": "1"}},
    ),
    "empty stays empty": ({}, {"requests": {"cpu": "1"}}, {}),
    "huge pages of the containers": (
        {"limits": {"cpu": "1"}},
        {"limits": {"hugepages-2Mi": "4Mi"}},
        {"limits": {"cpu": "1", "hugepages-2Mi": "4Mi"}, "requests": {"cpu": "1", "hugepages-2Mi": "4Mi"}},
    ),
}


def test_every_quantity_is_a_text_in_canonical_form() -> None:
    """As resource.Quantity writes it: the notation stays, the largest suffix that loses nothing is taken."""
    amounts = {
        "cpu": 1,
        "memory": "1024Mi",
        "ephemeral-storage": "1500M",
        "example.com/disk": "2e3",
        "example.com/x": 3,
    }
    written = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1500M", "example.com/disk": "2e3"}
    written["example.com/x"] = "3"
    selector = {"resource": "limits.cpu", "containerName": "main", "divisor": 1}
    spec = {
        "overhead": {"cpu": "1000m", "memory": 1048576},
        "resources": {"limits": {"cpu": 2, "memory": "2048Mi"}},
        "volumes": [
            {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1024Ki"}},
            {
                "name": "claim",
                "ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": 1024.5}}}}},
            },
            {"name": "pod", "downwardAPI": {"items": [{"path": "cpu", "resourceFieldRef": selector}]}},
        ],
        "ephemeralContainers": [{"name": "debug", "image": "busybox:1.36", "resources": {"limits": {"cpu": "1000m"}}}],
    }
    container = {
        "resources": {"limits": amounts, "requests": amounts},
        "env": [{"name": "CPU", "valueFrom": {"resourceFieldRef": {**selector, "divisor": "0.001"}}}],
    }
    result = defaulted(manifest(spec=spec, container=container))["spec"]
    main, debug = result["containers"][0], result["ephemeralContainers"][0]
    assert main["resources"] == {"limits": written, "requests": written}
    assert main["env"][0]["valueFrom"]["resourceFieldRef"]["divisor"] == "1m"
    assert debug["resources"]["limits"] == {"cpu": "1"}
    assert result["overhead"] == {"cpu": "1", "memory": "1048576"}
    assert result["resources"]["limits"] == {"cpu": "2", "memory": "2Gi"}
    memory, claim, pod = result["volumes"]
    assert memory["emptyDir"]["sizeLimit"] == "1Mi"
    storage = claim["ephemeral"]["volumeClaimTemplate"]["spec"]["resources"]["requests"]["storage"]
    assert storage == "1024500m"
    assert pod["downwardAPI"]["items"][0]["resourceFieldRef"]["divisor"] == "1"


def test_a_class_has_its_overhead_in_canonical_form() -> None:
    overhead = {"podFixed": {"cpu": 1, "memory": "1024Ki"}}
    found = decode_runtime_class(
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "a"}, "handler": "a"}
        | {"overhead": overhead}
    )
    stated = default_runtime_class(found).overhead
    assert stated is not None
    assert stated.pod_fixed == {"cpu": "1", "memory": "1Mi"}


def test_a_volume_and_a_claim_have_canonical_capacities() -> None:
    volume = decode_persistent_volume(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "disk"},
            "spec": {"capacity": {"storage": "1024Mi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/srv"}},
        }
    )
    assert default_persistent_volume(volume).spec.capacity == {"storage": "1Gi"}
    claim = decode_persistent_volume_claim(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": 1073741824}}},
        }
    )
    assert default_persistent_volume_claim(claim).spec.resources.requests == {"storage": "1073741824"}


@pytest.mark.parametrize(("pod", "container", "expected"), POD_RESOURCE_CASES.values(), ids=POD_RESOURCE_CASES)
def test_pod_resources(pod: dict[str, Any], container: dict[str, Any], expected: dict[str, Any]) -> None:
    result = defaulted(manifest(spec={"resources": pod}, container={"resources": container}))
    assert result["spec"]["resources"] == expected


def test_pod_requests_count_sidecars_beside_and_init_containers_before() -> None:
    init = [
        {"name": "sidecar", "image": "a:1", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
        {"name": "large", "image": "a:1", "resources": {"requests": {"cpu": "900m", "memory": 100}}},
    ]
    spec = {"resources": {"limits": {"cpu": "4"}}, "initContainers": init}
    result = defaulted(manifest(spec=spec, container={"resources": {"requests": {"cpu": "500m", "memory": 300}}}))
    # The largest step is 100m + 900m; at run time it is 500m + 100m. For memory the regular container is larger.
    assert result["spec"]["resources"]["requests"] == {"cpu": "1", "memory": "300"}


def test_addresses_lose_leading_zeros() -> None:
    spec = {
        "hostAliases": [{"ip": "010.000.0.01", "hostnames": ["a"]}],
        "dnsConfig": {"nameservers": ["192.0.02.010", "::1"]},
    }
    port = {"containerPort": 80, "hostPort": 80, "hostIP": "127.000.000.001"}
    made = defaulted(manifest(spec=spec, container={"ports": [port]}))["spec"]
    assert made["hostAliases"][0]["ip"] == "10.0.0.1"
    assert made["dnsConfig"]["nameservers"] == ["192.0.2.10", "::1"]
    assert made["containers"][0]["ports"][0]["hostIP"] == "127.0.0.1"
