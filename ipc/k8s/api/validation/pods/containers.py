"""Regular, init and ephemeral containers.

Source: pkg/apis/core/validation validateContainerCommon, validateContainers, validateInitContainers,
validateEphemeralContainers, validateContainerRestartPolicy, validateContainerOnlyForPod.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from ipc.k8s.api.defaults import DEFAULT_TERMINATION_GRACE_PERIOD_SECONDS
from ipc.k8s.api.errors import forbidden, invalid, not_found, required, too_many
from ipc.k8s.api.schema import struct_fields
from ipc.k8s.api.v1.container import Container, ContainerRestartRule, EphemeralContainer
from ipc.k8s.api.v1.pod import PodSpec
from ipc.k8s.api.v1.volume import Volume
from ipc.k8s.api.validation.checks import Errors, indexed, unique, well_formed
from ipc.k8s.api.validation.names import DNS_LABEL
from ipc.k8s.api.validation.pods.env import validate_env
from ipc.k8s.api.validation.pods.mounts import validate_mounts
from ipc.k8s.api.validation.pods.network import validate_host_ports, validate_ports
from ipc.k8s.api.validation.pods.probes import validate_lifecycle, validate_probes
from ipc.k8s.api.validation.pods.security import validate_security_context
from ipc.k8s.api.validation.resources import (
    validate_container_resources,
    validate_init_resize_policy,
    validate_resize_policy,
)

MAX_RESTART_RULES: Final = 20
MAX_RESTART_RULE_EXIT_CODES: Final = 255
_HOOKS_AND_PROBES: Final = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_NOT_FOR_EPHEMERAL: Final = (
    *_HOOKS_AND_PROBES,
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
)


class _Pod(msgspec.Struct, frozen=True):
    """Parts of a pod that the checks of its containers need."""

    spec: PodSpec
    volumes: Mapping[str, Volume]
    claims: frozenset[str]


def all_containers(spec: PodSpec, path: str) -> Iterator[tuple[str, Container]]:
    """Every container of a pod with its path: regular, init, ephemeral."""
    yield from indexed(f"{path}.containers", spec.containers)
    yield from indexed(f"{path}.initContainers", spec.init_containers)
    yield from indexed(f"{path}.ephemeralContainers", spec.ephemeral_containers)


def validate_containers(spec: PodSpec, path: str) -> Errors:
    """All containers of a pod, and what must be unique among them."""
    volumes = {volume.name: volume for volume in spec.volumes}
    pod = _Pod(spec, volumes, frozenset(claim.name for claim in spec.resource_claims))
    if not spec.containers:
        yield required(f"{path}.containers", "must hold at least one container")
    yield from unique((f"{below}.name", container.name) for below, container in all_containers(spec, path))
    for below, container in indexed(f"{path}.containers", spec.containers):
        yield from _container(container, pod, below)
        yield from _hooks_and_probes(container, pod, below)
        yield from _restart_rules(container, below)
    for below, container in indexed(f"{path}.initContainers", spec.init_containers):
        yield from _container(container, pod, below)
        yield from _init_container(container, pod, below)
    for below, ephemeral in indexed(f"{path}.ephemeralContainers", spec.ephemeral_containers):
        yield from _container(ephemeral, pod, below)
        yield from _ephemeral_container(ephemeral, pod, below)
    yield from validate_host_ports(indexed(f"{path}.containers", spec.containers))
    yield from validate_host_ports(indexed(f"{path}.initContainers", spec.init_containers))


def _container(container: Container, pod: _Pod, path: str) -> Errors:
    spec = pod.spec
    yield from well_formed(f"{path}.name", container.name, DNS_LABEL.problem)
    if not container.image:
        yield required(f"{path}.image")
    elif container.image != container.image.strip():
        yield invalid(f"{path}.image", container.image, "must not have leading or trailing whitespace")
    yield from validate_ports(container.ports, spec.host_network, f"{path}.ports")
    yield from validate_env(container, pod.volumes, path)
    yield from validate_mounts(container, pod.volumes, path)
    yield from validate_container_resources(container.resources, pod.claims, f"{path}.resources")
    yield from validate_resize_policy(container, spec.restart_policy, f"{path}.resizePolicy")
    if container.security_context is not None:
        host_users = spec.host_users is not False
        yield from validate_security_context(container.security_context, host_users, f"{path}.securityContext")
    if container.volume_devices and spec.host_users is False:
        yield forbidden(f"{path}.volumeDevices", "may not be set when hostUsers is false")


def _hooks_and_probes(container: Container, pod: _Pod, path: str) -> Errors:
    yield from validate_probes(container, path)
    if container.lifecycle is not None:
        grace_period_s = pod.spec.termination_grace_period_seconds
        if grace_period_s is None:
            grace_period_s = DEFAULT_TERMINATION_GRACE_PERIOD_SECONDS
        os_name = pod.spec.os.name if pod.spec.os else ""
        yield from validate_lifecycle(container.lifecycle, grace_period_s, os_name, f"{path}.lifecycle")


def _init_container(container: Container, pod: _Pod, path: str) -> Errors:
    if container.restart_policy == "Always":
        yield from _hooks_and_probes(container, pod, path)
    else:
        why = "may only be set on an init container that always restarts"
        yield from _not_set(container, _HOOKS_AND_PROBES, why, path)
        if pod.spec.restart_policy != "Never":  # of such a pod it is said for every container
            yield from validate_init_resize_policy(container, f"{path}.resizePolicy")
    yield from _restart_rules(container, path)


def _ephemeral_container(container: EphemeralContainer, pod: _Pod, path: str) -> Errors:
    yield from _not_set(container, _NOT_FOR_EPHEMERAL, "may not be set on an ephemeral container", path)
    for below, mount in indexed(f"{path}.volumeMounts", container.volume_mounts):
        yield from _not_set(mount, ("subPath", "subPathExpr"), "may not be set on an ephemeral container", below)
    target = container.target_container_name
    if target and target not in {other.name for other in (*pod.spec.containers, *pod.spec.init_containers)}:
        yield not_found(f"{path}.targetContainerName", target)


def _not_set(struct: msgspec.Struct, names: tuple[str, ...], detail: str, path: str) -> Errors:
    fields = struct_fields(type(struct))
    for name in names:
        if getattr(struct, fields[name].attribute) != fields[name].default:
            yield forbidden(f"{path}.{name}", detail)


def _restart_rules(container: Container, path: str) -> Errors:
    rules = f"{path}.restartPolicyRules"
    if container.restart_policy_rules and container.restart_policy is None:
        yield required(f"{path}.restartPolicy", "must be set together with restartPolicyRules")
    if len(container.restart_policy_rules) > MAX_RESTART_RULES:
        yield too_many(rules, len(container.restart_policy_rules), MAX_RESTART_RULES)
    for below, rule in indexed(rules, container.restart_policy_rules):
        yield from _restart_rule(rule, below)


def _restart_rule(rule: ContainerRestartRule, path: str) -> Errors:
    if not rule.action:
        yield required(f"{path}.action")
    if rule.exit_codes is None:
        yield required(f"{path}.exitCodes")
        return
    if not rule.exit_codes.operator:
        yield required(f"{path}.exitCodes.operator")
    if not rule.exit_codes.values:
        yield required(f"{path}.exitCodes.values", "must hold at least one exit code")
    if len(rule.exit_codes.values) > MAX_RESTART_RULE_EXIT_CODES:
        yield too_many(f"{path}.exitCodes.values", len(rule.exit_codes.values), MAX_RESTART_RULE_EXIT_CODES)
