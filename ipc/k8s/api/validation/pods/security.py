"""Security contexts.

Source: pkg/apis/core/validation ValidateSecurityContext, validatePodSpecSecurityContext, validateSeccompProfileField,
validateAppArmorProfileField, validateSysctls.
"""

from typing import Final

from ipc.k8s.api.errors import duplicate, forbidden, invalid, required
from ipc.k8s.api.v1.pod import PodSpec
from ipc.k8s.api.v1.security import AppArmorProfile, PodSecurityContext, SeccompProfile, SecurityContext
from ipc.k8s.api.validation.checks import MAX_INT32, Errors, in_range, indexed, well_formed
from ipc.k8s.api.validation.names import SYSCTL, relative_path_problem
from ipc.k8s.podresources.sysctls import SysctlNamespace, dotted, namespace_of

MAX_APPARMOR_PROFILE_CHARS: Final = 4095


def validate_security_context(context: SecurityContext, host_users: bool, path: str) -> Errors:
    """The context of one container; `host_users` is false in a pod with a user namespace of its own."""
    yield from in_range(f"{path}.runAsUser", context.run_as_user, 0, MAX_INT32)
    yield from in_range(f"{path}.runAsGroup", context.run_as_group, 0, MAX_INT32)
    yield from _profiles(context, path)
    if context.proc_mount == "Unmasked" and host_users:
        yield invalid(f"{path}.procMount", context.proc_mount, "needs hostUsers to be false")
    if context.allow_privilege_escalation is not False:
        return
    if context.privileged:
        yield invalid(path, "allowPrivilegeEscalation", "may not be false when privileged is true")
    added = context.capabilities.add if context.capabilities else ()
    if "CAP_SYS_ADMIN" in added:
        yield invalid(path, "allowPrivilegeEscalation", "may not be false when capabilities.add holds CAP_SYS_ADMIN")


def validate_pod_security_context(context: PodSecurityContext, path: str) -> Errors:
    """The context of the pod."""
    yield from in_range(f"{path}.runAsUser", context.run_as_user, 0, MAX_INT32)
    yield from in_range(f"{path}.runAsGroup", context.run_as_group, 0, MAX_INT32)
    yield from in_range(f"{path}.fsGroup", context.fs_group, 0, MAX_INT32)
    for below, group in indexed(f"{path}.supplementalGroups", context.supplemental_groups):
        yield from in_range(below, group, 0, MAX_INT32)
    yield from _profiles(context, path)
    yield from _sysctls(context, f"{path}.sysctls")


def _profiles(context: SecurityContext | PodSecurityContext, path: str) -> Errors:
    if context.seccomp_profile is not None:
        yield from _localhost_profile(context.seccomp_profile, f"{path}.seccompProfile")
    if context.app_armor_profile is not None:
        yield from _localhost_profile(context.app_armor_profile, f"{path}.appArmorProfile")


def _localhost_profile(profile: SeccompProfile | AppArmorProfile, path: str) -> Errors:
    below = f"{path}.localhostProfile"
    name = profile.localhost_profile
    if profile.type != "Localhost":
        if name is not None:
            yield invalid(below, name, "may only be set when type is Localhost")
    elif not name:
        yield required(below, "must be set when type is Localhost")
    elif isinstance(profile, SeccompProfile):
        if problem := relative_path_problem(name):
            yield invalid(below, name, problem)
    elif name != name.strip():
        yield invalid(below, name, "must not be padded with whitespace")
    elif len(name) > MAX_APPARMOR_PROFILE_CHARS:
        yield invalid(below, name, f"must be no more than {MAX_APPARMOR_PROFILE_CHARS} characters")


def _sysctls(context: PodSecurityContext, path: str) -> Errors:
    seen: set[str] = set()
    for below, sysctl in indexed(path, context.sysctls):
        yield from well_formed(f"{below}.name", sysctl.name, SYSCTL.problem)
        # a.b and a/b are one parameter.
        name = sysctl.name.replace("/", ".")
        if name in seen:
            yield duplicate(f"{below}.name", sysctl.name)
        seen.add(name)


def validate_host_sysctls(spec: PodSpec, path: str) -> Errors:
    """Parameters of a namespace that the pod shares with the host would be the host's (ValidateHostSysctl)."""
    hosts = {SysctlNamespace.NET: ("hostNetwork", spec.host_network), SysctlNamespace.IPC: ("hostIPC", spec.host_ipc)}
    sysctls = spec.security_context.sysctls if spec.security_context is not None else ()
    for below, sysctl in indexed(f"{path}.securityContext.sysctls", sysctls):
        namespace = namespace_of(dotted(sysctl.name))
        field, shared = hosts.get(namespace, ("", False)) if namespace is not None else ("", False)
        if shared:
            yield invalid(f"{below}.name", sysctl.name, f"may not be specified when {field} is true")


def validate_host_namespaces(spec: PodSpec, path: str) -> Errors:
    """Combinations of the host's namespaces that may be shared."""
    if spec.host_pid and spec.share_process_namespace:
        yield invalid(f"{path}.shareProcessNamespace", True, "may not be true together with hostPID")
    if spec.host_users is not False:
        return
    host = {"hostNetwork": spec.host_network, "hostPID": spec.host_pid, "hostIPC": spec.host_ipc}
    for name in (name for name, shared in host.items() if shared):
        yield forbidden(f"{path}.{name}", "may not be true when hostUsers is false")
