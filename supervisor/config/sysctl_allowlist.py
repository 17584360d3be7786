"""Kernel parameters that a pod may set. Pure.

Mirrors pkg/kubelet/sysctl (safe_sysctls.go, allowlist.go) and IsValidSysctlPattern (pkg/apis/policy/validation).
Upstream asks for the kernel's version, because some of the safe ones belonged to no namespace before 4.15; Rootlet
needs 5.3 for its pidfds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.podresources.sysctls import SysctlNamespace, dotted, namespace_of

SYSCTL_FORBIDDEN: Final = "SysctlForbidden"
MAX_PATTERN_CHARS: Final = 253
SAFE_SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_notsent_lowat",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_slow_start_after_idle",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    }
)
"""A pod that sets one of these changes nothing for another."""

_SEGMENT: Final = r"[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?"
_PATTERN: Final = re.compile(rf"(?:{_SEGMENT}[./])*(?:[a-z0-9][-_a-z0-9]*)?[a-z0-9*]")


def pattern_problem(pattern: str) -> str | None:
    """Error of an item of ``allowedUnsafeSysctls``."""
    if len(pattern) > MAX_PATTERN_CHARS or not _PATTERN.fullmatch(pattern):
        return (
            f'sysctl "{pattern}" must have at most {MAX_PATTERN_CHARS} characters and match regex ^{_PATTERN.pattern}$'
        )
    name = dotted(pattern).partition("*")[0]
    return None if namespace_of(name) else f'the sysctls "{name}" are not known to be namespaced'


def forbidden_sysctl(pod: Pod, allowed_unsafe: Iterable[str]) -> str | None:
    """Reason why the pod may not run, in upstream's words; None when it may."""
    context = pod.spec.security_context
    names = [dotted(sysctl.name) for sysctl in context.sysctls] if context is not None else []
    patterns = [dotted(pattern) for pattern in allowed_unsafe] if names else []
    problems = (_problem(name, patterns, pod.spec) for name in names)
    return next((f"forbidden sysctl: {problem}" for problem in problems if problem), None)


def _problem(name: str, patterns: Iterable[str], spec: PodSpec) -> str | None:
    if name not in SAFE_SYSCTLS and not any(_covers(pattern, name) for pattern in patterns):
        return f'"{name}" not allowlisted'
    hosts = {SysctlNamespace.IPC: spec.host_ipc, SysctlNamespace.NET: spec.host_network}
    namespace = namespace_of(name)
    if namespace is not None and hosts.get(namespace):
        return f'"{name}" not allowed with host {namespace} enabled'
    return None


def _covers(pattern: str, name: str) -> bool:
    prefix, star, _ = pattern.partition("*")
    return name.startswith(prefix) if star else name == pattern
