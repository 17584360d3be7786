"""Addresses of a sandbox that are the pod's; what upstream's own cases leave out."""

from __future__ import annotations

from ipc.k8s.network.pod_ips import sort_pod_ips


def test_the_nodes_family_comes_first() -> None:
    assert sort_pod_ips(["10.0.0.1", "fd01::1"], "fd00::1") == ("fd01::1", "10.0.0.1")
    assert sort_pod_ips(["fd01::1", "10.0.0.1"], "10.0.0.9") == ("10.0.0.1", "fd01::1")


def test_what_is_no_address_is_left_out() -> None:
    assert sort_pod_ips(["", "nonsense", "fd01::1"]) == ("fd01::1",)
    assert sort_pod_ips([], "nonsense") == ()
