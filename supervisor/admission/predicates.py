"""Whether a pod may run here. Pure.

The checks, their order, reasons and words follow pkg/kubelet/lifecycle/predicate.go and the scheduler filters that it
calls; the first rejection wins. Taints are those of the cluster's Node, held against the cluster's pods: others are
static ones, to which a kubelet does not hold them either. A field that must not be ignored never comes here: the
manifest was refused when it was decoded (see `sources.decode`), with `spec.os.name` as one of them, and the pod of a
cluster when it was read, but for that one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from ipc.k8s.api.annotations import is_api_pod
from ipc.k8s.api.pod_containers import every_container
from ipc.k8s.api.support.warnings import field_warnings
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.k8s.scheduling.node_affinity import matches_node
from ipc.k8s.scheduling.priority import SYSTEM_CLASSES
from ipc.k8s.scheduling.tolerations import tolerates_all
from supervisor.admission.host_ports import host_ports
from supervisor.admission.node_labels import HOST_OS, OS_LABEL, node_labels
from supervisor.admission.node_usage import NodeUsage
from supervisor.admission.old_annotations import dead_annotations
from supervisor.admission.resource_fit import Shortage, fractions, shortages, unenforced, unprovided
from supervisor.config.settings import Settings
from supervisor.config.sysctl_allowlist import SYSCTL_FORBIDDEN, forbidden_sysctl
from supervisor.protocol.manifests import pod_key

UNKNOWN_NODE: Final = NodeResources()
UNEXPECTED_ADMISSION_ERROR: Final = "UnexpectedAdmissionError"
"""Reason of a rejection that nobody decided on (pkg/kubelet/lifecycle/predicate.go)."""
HOST_PORT_FORBIDDEN: Final = "HostPortForbidden"
"""Reason of our own: the kubelet may publish every port."""


class Admitted(msgspec.Struct, frozen=True):
    """The pod may run. Each warning names a field that is set and not acted on: one Warning event."""

    warnings: tuple[str, ...] = ()


class Rejected(msgspec.Struct, frozen=True):
    """The pod fails with this reason, for good: phase Failed, ``Pod was rejected: <message>`` (upstream: rejectPod)."""

    reason: str
    message: str


Check = Callable[[Pod, NodeUsage, Settings, NodeResources], Rejected | None]


def admit(pod: Pod, others: NodeUsage, settings: Settings, node: NodeResources = UNKNOWN_NODE) -> Admitted | Rejected:
    """Decide on one pod, given what the other active ones (admitted and not terminated) have."""
    return rejection(pod, others, settings, node) or admitted(pod, node)


def rejection(pod: Pod, others: NodeUsage, settings: Settings, node: NodeResources) -> Rejected | None:
    """The first reason that speaks against a pod; None for one that is admitted."""
    return next((found for check in _CHECKS if (found := check(pod, others, settings, node))), None)


class Verdict(msgspec.Struct, frozen=True):
    """All that speaks against a pod, in the order of the checks."""

    rejections: tuple[Rejected, ...]
    """Reasons that no other pod can mend by its end."""
    shortages: tuple[Shortage, ...]


def verdict(pod: Pod, others: NodeUsage, settings: Settings, node: NodeResources) -> Verdict:
    """Everything that speaks against a critical pod which was rejected: preemption can mend the shortages."""
    checks = (check for check in _CHECKS if check is not _room)
    found = (check(pod, others, settings, node) for check in checks)
    return Verdict(
        rejections=tuple(rejected for rejected in found if rejected is not None),
        shortages=tuple(shortages(pod, others, node, settings.max_pods)),
    )


def admitted(pod: Pod, node: NodeResources) -> Admitted:
    """The admission of a pod against which nothing speaks, with its warnings."""
    warnings = (
        field_warnings(pod),
        _unknown_class(pod),
        dead_annotations(pod),
        unenforced(pod, node),
        unprovided(pod, node),
        fractions(pod),
    )
    return Admitted(tuple(itertools.chain(*warnings)))


def _os_label(pod: Pod, others: NodeUsage, settings: Settings, node: NodeResources) -> Rejected | None:
    if pod.metadata.labels.get(OS_LABEL, HOST_OS) == HOST_OS:
        return None
    message = f"Failed to admit pod as the `{OS_LABEL}` label doesn't match node label"
    return Rejected("PodOSSelectorNodeLabelDoesNotMatch", message)


def _os_field(pod: Pod, others: NodeUsage, settings: Settings, node: NodeResources) -> Rejected | None:
    if pod.spec.os is None or pod.spec.os.name == HOST_OS:
        return None
    return Rejected("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")


def _node_affinity(pod: Pod, others: NodeUsage, settings: Settings, node: NodeResources) -> Rejected | None:
    """Pods of a cluster that has not told of its Node yet, after a restart without it, are where its scheduler put
    them."""
    if is_api_pod(pod) and node.labels is None:
        return None
    if matches_node(pod.spec, node_labels(settings, node), settings.node_name):
        return None
    return _predicate_failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")


def _taints(pod: Pod, others: NodeUsage, settings: Settings, node: NodeResources) -> Rejected | None:
    if not is_api_pod(pod) or tolerates_all(pod.spec.tolerations, node.no_execute):
        return None
    return _predicate_failed("TaintToleration", "node(s) had taints that the pod didn't tolerate")


def _ports(pod: Pod, others: NodeUsage, settings: Settings, node: NodeResources) -> Rejected | None:
    for wanted in host_ports(pod):
        if found := others.holder(wanted):
            holder, port = found
            where = f"{port} is held by {'/'.join(pod_key(holder))}"
            why = f"node(s) didn't have free ports for the requested pod ports ({where})"
            return _predicate_failed("NodePorts", why)
    return None


def _forbidden_ports(pod: Pod, others: NodeUsage, settings: Settings, node: NodeResources) -> Rejected | None:
    """Rejection for a port that no rootless Podman can publish. In the host's network a container that listens there
    fails as well."""
    lowest_port = node.unprivileged_port_start
    for port in host_ports(pod):
        if port.port < lowest_port:
            why = f"ports below {lowest_port} (net.ipv4.ip_unprivileged_port_start) are not this user's to give"
            return Rejected(HOST_PORT_FORBIDDEN, f"host port {port} cannot be had: {why}")
        if port.protocol == "SCTP" and not pod.spec.host_network:
            return Rejected(HOST_PORT_FORBIDDEN, f"host port {port} cannot be had: rootless Podman forwards no SCTP")
    return None


def _sysctls(pod: Pod, others: NodeUsage, settings: Settings, node: NodeResources) -> Rejected | None:
    message = forbidden_sysctl(pod, settings.allowed_unsafe_sysctls)
    return Rejected(SYSCTL_FORBIDDEN, message) if message else None


def _apparmor(pod: Pod, others: NodeUsage, settings: Settings, node: NodeResources) -> Rejected | None:
    message = apparmor_problem(pod)
    return Rejected(APPARMOR, message) if message else None


def _unknown_class(pod: Pod) -> tuple[str, ...]:
    """Warning of a class that no document states: an API server would refuse the pod, a kubelet takes it as it is."""
    name = pod.spec.priority_class_name
    if not name or pod.spec.priority is not None or name in SYSTEM_CLASSES:
        return ()
    return (f"spec.priorityClassName: no PriorityClass with name {name} was found: its priority is 0",)


def _room(pod: Pod, others: NodeUsage, settings: Settings, node: NodeResources) -> Rejected | None:
    """The number of pods, then resources."""
    first = next(shortages(pod, others, node, settings.max_pods), None)
    return Rejected(first.reason, first.message) if first is not None else None


def _predicate_failed(predicate: str, why: str) -> Rejected:
    return Rejected(predicate, f"Predicate {predicate} failed: {why}")


_CHECKS: Final[tuple[Check, ...]] = (
    _sysctls,
    _os_label,
    _os_field,
    _room,
    _node_affinity,
    _ports,
    _taints,
    _apparmor,
    _forbidden_ports,
)


APPARMOR: Final = "AppArmor"
"""The reason of such a rejection."""
ANNOTATION_PREFIX: Final = "container.apparmor.security.beta.kubernetes.io/"
"""How a profile was named before there was a field; followed by the container's name."""


def apparmor_problem(pod: Pod) -> str | None:
    """Why a pod may not run that asks for an AppArmor profile, which no rootless container can have; None when it may.

    Mirrors Validate and isRequired (pkg/security/apparmor): any profile but Unconfined, wherever it is named, needs a
    host that enforces it. Podman takes no profile from a user that is not root, also where the kernel has AppArmor and
    the profile is loaded: *apparmor profile "x" specified, but Apparmor is not enabled on this system* (measured; its
    source: containers/common, pkg/apparmor, IsEnabled).
    """
    if all(profile.lower() == "unconfined" for profile in _profiles(pod)):
        return None
    return "Cannot enforce AppArmor: AppArmor is not supported on rootless containers"


def _profiles(pod: Pod) -> Iterator[str]:
    contexts = (pod.spec.security_context, *(found.container.security_context for found in every_container(pod.spec)))
    for context in contexts:
        if context is not None and context.app_armor_profile is not None:
            yield context.app_armor_profile.type
    for key, value in pod.metadata.annotations.items():
        if key.startswith(ANNOTATION_PREFIX):
            yield value
