"""Paths of resources."""

from __future__ import annotations

from workers.kubeclient import resources


def test_paths() -> None:
    assert resources.PODS.path() == "/api/v1/pods"
    assert resources.PODS.path("kube-system") == "/api/v1/namespaces/kube-system/pods"
    assert resources.PODS.path("a", "b", "status") == "/api/v1/namespaces/a/pods/b/status"
    assert resources.NODES.path(name="n1", subresource="status") == "/api/v1/nodes/n1/status"
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"
    assert resources.LEASES.path("kube-node-lease", "n1") == lease


def test_a_name_cannot_leave_its_place_in_the_path() -> None:
    assert resources.PODS.path("../x", "a/b?c") == "/api/v1/namespaces/..%2Fx/pods/a%2Fb%3Fc"


def test_api_version() -> None:
    assert resources.PODS.api_version == "v1"
    assert resources.LEASES.api_version == "coordination.k8s.io/v1"
