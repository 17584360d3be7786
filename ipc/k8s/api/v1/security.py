"""Security contexts of pods and containers."""

from typing import Literal

from ipc.k8s.api.v1.base import ApiStruct, Int64

ProcMountType = Literal["Default", "Unmasked"]
SeccompProfileType = Literal["Unconfined", "RuntimeDefault", "Localhost"]
AppArmorProfileType = Literal["Unconfined", "RuntimeDefault", "Localhost"]
SupplementalGroupsPolicy = Literal["Merge", "Strict"]
PodFSGroupChangePolicy = Literal["OnRootMismatch", "Always"]
PodSELinuxChangePolicy = Literal["Recursive", "MountOption"]


class Capabilities(ApiStruct, frozen=True, kw_only=True):
    """Linux capabilities without the CAP_ prefix; ALL stands for every one."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class SELinuxOptions(ApiStruct, frozen=True, kw_only=True):
    """SELinux labels."""

    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class WindowsSecurityContextOptions(ApiStruct, frozen=True, kw_only=True):
    """Windows only."""

    gmsa_credential_spec_name: str | None = None
    gmsa_credential_spec: str | None = None
    run_as_user_name: str | None = None
    host_process: bool | None = None


class SeccompProfile(ApiStruct, frozen=True, kw_only=True):
    """A seccomp profile; `localhost_profile` only with type Localhost."""

    type: SeccompProfileType
    localhost_profile: str | None = None


class AppArmorProfile(ApiStruct, frozen=True, kw_only=True):
    """An AppArmor profile; `localhost_profile` only with type Localhost."""

    type: AppArmorProfileType
    localhost_profile: str | None = None


class SecurityContext(ApiStruct, frozen=True, kw_only=True):
    """Security settings of one container; they override the pod's where both exist."""

    capabilities: Capabilities | None = None
    privileged: bool | None = None
    selinux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    read_only_root_filesystem: bool | None = None
    allow_privilege_escalation: bool | None = None
    proc_mount: ProcMountType | None = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None


class Sysctl(ApiStruct, frozen=True, kw_only=True):
    """A kernel parameter of the pod's namespaces."""

    name: str
    value: str


class PodSecurityContext(ApiStruct, frozen=True, kw_only=True):
    """Security settings for every container of the pod."""

    selinux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    supplemental_groups: tuple[Int64, ...] = ()
    supplemental_groups_policy: SupplementalGroupsPolicy | None = None
    fs_group: Int64 | None = None
    sysctls: tuple[Sysctl, ...] = ()
    fs_group_change_policy: PodFSGroupChangePolicy | None = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None
    selinux_change_policy: PodSELinuxChangePolicy | None = None
