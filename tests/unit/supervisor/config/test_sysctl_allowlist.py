"""Kernel parameters that pods may set (cases of pkg/kubelet/sysctl/allowlist_test.go among them)."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.k8s.api.v1.pod import Pod
from supervisor.admission.node_usage import NodeUsage
from supervisor.admission.predicates import Admitted, Rejected, admit
from supervisor.config.settings import Settings
from supervisor.config.sysctl_allowlist import SAFE_SYSCTLS, pattern_problem
from tests.support.manifests import pod

UNSAFE = ("kernel.msg*", "kernel.sem", "net/core/*", "net.b*", "net.ipv4.conf.eth0/1.rp_filter")


def with_sysctls(*names: str, **spec: Any) -> Pod:
    return pod(securityContext={"sysctls": [{"name": name, "value": "1"} for name in names]}, **spec)


def verdict(of: Pod, unsafe: tuple[str, ...] = ()) -> Admitted | Rejected:
    return admit(of, NodeUsage(), Settings(node_name="node-1", allowed_unsafe_sysctls=unsafe))


@pytest.mark.parametrize(
    "name",
    [
        *sorted(SAFE_SYSCTLS),
        "net/ipv4/tcp_syncookies",
        "net.ipv4.tcp_slow_start_after_idle",
        "net.ipv4.tcp_notsent_lowat",
    ],
)
def test_safe_ones_are_admitted(name: str) -> None:
    assert isinstance(verdict(with_sysctls(name)), Admitted)


@pytest.mark.parametrize(
    "name",
    ["kernel.msgmax", "kernel/msgmni", "kernel.sem", "net.core.somaxconn", "net.b", "net/ipv4/conf/eth0.1/rp_filter"],
)
def test_others_only_by_configuration(name: str) -> None:
    assert isinstance(verdict(with_sysctls(name), UNSAFE), Admitted)
    rejected = verdict(with_sysctls("kernel.shm_rmid_forced", name))
    assert isinstance(rejected, Rejected)
    assert rejected.reason == "SysctlForbidden"


@pytest.mark.parametrize(
    ("name", "shown"),
    [("vm.swappiness", "vm.swappiness"), ("net/a", "net.a"), ("kernel.semx", "kernel.semx")],
)
def test_the_words_are_upstreams(name: str, shown: str) -> None:
    message = f'forbidden sysctl: "{shown}" not allowlisted'
    assert verdict(with_sysctls(name), UNSAFE) == Rejected("SysctlForbidden", message)


@pytest.mark.parametrize(
    ("name", "spec", "namespace"),
    [
        ("net.ipv4.tcp_rmem", {"hostNetwork": True}, "Net"),
        ("net.core.somaxconn", {"hostNetwork": True}, "Net"),
        ("kernel.shm_rmid_forced", {"hostIPC": True}, "IPC"),
        ("kernel.msgmax", {"hostIPC": True}, "IPC"),
    ],
)
def test_a_namespace_of_the_host_keeps_its_parameters(name: str, spec: dict[str, Any], namespace: str) -> None:
    message = f'forbidden sysctl: "{name}" not allowed with host {namespace} enabled'
    assert verdict(with_sysctls(name, **spec), UNSAFE) == Rejected("SysctlForbidden", message)


@pytest.mark.parametrize("pattern", ["kernel.shm*", "kernel.msgmax", "net.*", "net/ipv4/*", "fs.mqueue.*", "user.a_b"])
def test_patterns_of_namespaces(pattern: str) -> None:
    assert pattern_problem(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("kernel.*", "are not known to be namespaced"),
        ("net*", "are not known to be namespaced"),
        ("vm.swappiness", "are not known to be namespaced"),
        ("*", "are not known to be namespaced"),
        ("net.**", "must have at most 253 characters and match regex"),
        ("net.*.a", "must have at most 253 characters and match regex"),
        ("Net.a", "must have at most 253 characters and match regex"),
        ("", "must have at most 253 characters and match regex"),
        ("net." + "a" * 250, "must have at most 253 characters and match regex"),
    ],
)
def test_other_patterns_are_refused(pattern: str, words: str) -> None:
    assert words in (pattern_problem(pattern) or "")


@pytest.mark.parametrize(
    "asked",
    [
        {"securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}},
        {"containers": [{"name": "a", "securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}}]},
        {"initContainers": [{"name": "a", "securityContext": {"appArmorProfile": {"type": "Localhost"}}}]},
        {"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/main": "runtime/default"}}},
    ],
)
def test_an_apparmor_profile_is_rejected(asked: dict[str, Any]) -> None:
    message = "Cannot enforce AppArmor: AppArmor is not supported on rootless containers"
    assert verdict(pod(**asked)) == Rejected("AppArmor", message)


@pytest.mark.parametrize(
    "asked",
    [
        {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}},
        {"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}}},
    ],
)
def test_none_is_admitted(asked: dict[str, Any]) -> None:
    assert isinstance(verdict(pod(**asked)), Admitted)
