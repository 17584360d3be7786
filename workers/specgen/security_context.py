"""Security context of a container, as fields of libpod's SpecGenerator. Pure.

Mirrors determineEffectiveSecurityContext (pkg/kubelet/kuberuntime/security_context.go). What the sandbox is made with
Podman hands on to its members, where it counts more than what they say themselves: so nothing of a container's context
is the sandbox's, which runs under Podman's defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ipc.host.text.json_types import JsonObject
from ipc.k8s.api.podman_annotations import kept_id
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.security import Capabilities, SecurityContext, SELinuxOptions
from ipc.k8s.podresources.sysctls import dotted
from ipc.k8s.podresources.user_namespaces import has_own_ids, ids_of_pod
from workers.kubecontainer.config_error import ConfigError
from workers.specgen.effective_security import effective_security_context, pod_security_context
from workers.specgen.seccomp import SeccompSettings, seccomp_profile_path

MASKED_PATHS: Final = ("/proc/asound", "/proc/interrupts", "/sys/devices/virtual/powercap")
"""Paths that upstream masks (pkg/securitycontext/util.go, defaultMaskedPaths) and Podman 4.3 does not."""


def sandbox_security(pod: Pod) -> JsonObject:
    """Fields of a PodSpecGenerator. Sysctls by their names with dots, as upstream hands them to its runtime."""
    sysctls = {dotted(sysctl.name): sysctl.value for sysctl in pod_security_context(pod).sysctls}
    return {**({"sysctl": sysctls} if sysctls else {}), **_user_namespace(pod)}


def container_security(
    pod: Pod, container: Container, user: str = "", seccomp: SeccompSettings | None = None
) -> JsonObject:
    """Fields of a SpecGenerator. ``user`` is what `workers.specgen.container_user` has found; empty leaves it to the
    image."""
    context = effective_security_context(pod, container)
    fields: dict[str, object] = {
        "user": user,
        "groups": [str(group) for group in supplemental_groups(pod)],
        "seccomp_profile_path": seccomp_profile_path(context, seccomp or SeccompSettings()),
        "no_new_privileges": context.allow_privilege_escalation is False,
        # Without the tmpfs on /tmp, /run and /var/tmp that `podman run --read-only` adds: upstream has none.
        "read_only_filesystem": bool(context.read_only_root_filesystem),
        **_masks(context),
        "selinux_opts": _selinux(context.selinux_options),
        **_rights(context),
    }
    return {name: value for name, value in fields.items() if value}


def verify_rights(pod: Pod, container: Container) -> None:
    """Raises ConfigError for fields that Podman would ignore in silence."""
    context = effective_security_context(pod, container)
    if context.privileged and context.capabilities is not None and context.capabilities.drop:
        raise ConfigError("capabilities.drop: a privileged container of Podman's has all capabilities")


def supplemental_groups(pod: Pod) -> tuple[int, ...]:
    """fsGroup is one of them, so that the process may use its volumes."""
    context = pod_security_context(pod)
    own = () if context.fs_group is None else (context.fs_group,)
    return tuple(dict.fromkeys((*own, *context.supplemental_groups)))


def _user_namespace(pod: Pod) -> dict[str, object]:
    """Ids that no other such pod has at the time, chosen by Podman (``--userns=auto``), or all of the agent's user, who
    keeps their own (``--userns=keep-id``).

    The service takes the mode and the mapping apart from one another: with the mode alone it makes a pod that has no
    ids, in which no container starts (4.3.1).
    """
    if (kept := kept_id(pod)) is not None:
        return {"userns": {"nsmode": "keep-id", "value": str(kept)}}
    if not has_own_ids(pod):
        return {}
    size = ids_of_pod(pod.spec)
    return {
        "userns": {"nsmode": "auto", "value": f"size={size}"},
        "idmappings": {"AutoUserNs": True, "AutoUserNsOpts": {"Size": size}},
    }


def _masks(context: SecurityContext) -> dict[str, list[str]]:
    """Podman masks nothing of a privileged container by itself, and containerd nothing at all."""
    if context.privileged:
        return {}
    return {"unmask": ["ALL"]} if context.proc_mount == "Unmasked" else {"mask": list(MASKED_PATHS)}


def _rights(context: SecurityContext) -> Mapping[str, object]:
    """A privileged container has every capability, whatever is added."""
    if context.privileged:
        return {"privileged": True}
    return capability_changes(context.capabilities) if context.capabilities is not None else {}


def _selinux(options: SELinuxOptions | None) -> list[str]:
    """Without SELinux on the host Podman takes no notice of them, as containerd."""
    if options is None:
        return []
    parts = {"user": options.user, "role": options.role, "type": options.type, "level": options.level}
    return [f"{name}:{value}" for name, value in parts.items() if value]


ALL: Final = "ALL"
_KNOWN: Final = """
    AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER
    FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN NET_BIND_SERVICE
    NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYSLOG SYS_ADMIN SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE
    SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG WAKE_ALARM
"""
KNOWN: Final = frozenset(_KNOWN.split())
"""capabilities(7). Podman leaves out those that the kernel does not have."""


def capability_changes(capabilities: Capabilities) -> dict[str, list[str]]:
    """Fields ``cap_add`` and ``cap_drop`` of a SpecGenerator; a name that Podman does not know fails the create.

    As containerd does it (pkg/oci, WithCapabilities): ALL counts before single names, and what is both added and
    dropped is dropped; Podman refuses such a pair. The default ones are the runtime's, upstream too. Podman's are
    CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, NET_BIND_SERVICE, SETFCAP, SETGID, SETPCAP, SETUID and SYS_CHROOT, as far
    as its containers.conf does not say otherwise: nearly CRI-O's, and containerd's without AUDIT_WRITE, MKNOD and
    NET_RAW.
    """
    add, drop = _names(capabilities.add), _names(capabilities.drop)
    single, dropped = add - {ALL}, drop - {ALL}
    if ALL in drop:
        return _changes(single - dropped, {ALL})
    if ALL in add and dropped:
        # Spelled out: of ALL, Podman gives a user that is not root also what is dropped.
        return _changes((KNOWN | single) - dropped, dropped)
    return _changes({ALL} if ALL in add else single - dropped, dropped)


def _changes(add: Iterable[str], drop: Iterable[str]) -> dict[str, list[str]]:
    changes = {"cap_add": sorted(add), "cap_drop": sorted(drop)}
    return {name: names for name, names in changes.items() if names}


def _names(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.upper().removeprefix("CAP_") for name in names)
