"""Defaults against what Kubernetes documents and its defaults_test.go asserts."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from ipc.api.decode import decode_pod, encode_pod
from ipc.api.defaults import default_pod
from tests.harness.api_manifests import manifest

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
    assert result["spec"]["ephemeralContainers"] == [{**CONTAINER_DEFAULTS, "resources": {"limits": {"cpu": 1}}}]


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
        {"limits": {"cpu": 2, "memory": "2Gi"}},
        {"requests": {"cpu": "500m"}},
        {"limits": {"cpu": 2, "memory": "2Gi"}, "requests": {"cpu": "500m", "memory": "2Gi"}},
    ),
    "given requests win": (
        {"limits": {"cpu": 2}, "requests": {"cpu": 1}},
        {"requests": {"cpu": "500m"}},
        {"limits": {"cpu": 2}, "requests": {"cpu": 1}},
    ),
    "no limits, no defaults": ({"requests": {"cpu": 1}}, {"requests": {"memory": "1Gi"}}, {"requests": {"cpu": 1}}),
    "bad quantity stays": (
        {"limits": {"cpu": 1}},
        {"requests": {"cpu": "x"}},
        {"limits": {"cpu": 1}},
    ),
    "empty stays empty": ({}, {"requests": {"cpu": 1}}, {}),
    "huge pages of the containers": (
        {"limits": {"cpu": 1}},
        {"limits": {"hugepages-2Mi": "4Mi"}},
        {"limits": {"cpu": 1, "hugepages-2Mi": "4Mi"}, "requests": {"cpu": 1, "hugepages-2Mi": "4Mi"}},
    ),
}


@pytest.mark.parametrize(("pod", "container", "expected"), POD_RESOURCE_CASES.values(), ids=POD_RESOURCE_CASES)
def test_pod_resources(pod: dict[str, Any], container: dict[str, Any], expected: dict[str, Any]) -> None:
    result = defaulted(manifest(spec={"resources": pod}, container={"resources": container}))
    assert result["spec"]["resources"] == expected


def test_pod_requests_count_sidecars_beside_and_init_containers_before() -> None:
    init = [
        {"name": "sidecar", "image": "a:1", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
        {"name": "large", "image": "a:1", "resources": {"requests": {"cpu": "900m", "memory": 100}}},
    ]
    spec = {"resources": {"limits": {"cpu": 4}}, "initContainers": init}
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
