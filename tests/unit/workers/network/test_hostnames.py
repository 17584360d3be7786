"""Names of a pod, beyond upstream's own cases."""

from __future__ import annotations

import pytest

from tests.support.pods import pod
from workers.network.hostnames import HostnameError, PodNames, kernel_hostname, pod_names


def test_without_a_cluster_domain_the_domain_has_no_dot_at_its_end() -> None:
    assert pod_names(pod(subdomain="team"), "") == PodNames("web", "team.default.svc")
    assert pod_names(pod(subdomain="team"), "cluster.test") == PodNames("web", "team.default.svc.cluster.test")


def test_the_kernels_name() -> None:
    assert kernel_hostname(pod(subdomain="team"), "") == "web"
    assert kernel_hostname(pod(subdomain="team", set_hostname_as_fqdn=True), "") == "web.team.default.svc"
    assert kernel_hostname(pod(set_hostname_as_fqdn=True), "") == "web", "it has no domain"
    override = pod(subdomain="team", hostname_override="a.b")
    assert kernel_hostname(override, "") == "a.b"


def test_a_name_that_the_kernel_cannot_hold() -> None:
    fits = pod(name="w" * 63, hostname="h" * 46, subdomain="team", set_hostname_as_fqdn=True)
    assert len(kernel_hostname(fits, "")) == 63
    with pytest.raises(HostnameError, match=r"is too long \(64 characters is the max, 65 characters requested\)"):
        kernel_hostname(pod(hostname="h" * 48, subdomain="team", set_hostname_as_fqdn=True), "")
    assert kernel_hostname(pod(name="w" * 70), "") == "w" * 63
