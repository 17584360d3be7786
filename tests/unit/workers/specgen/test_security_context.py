"""Security contexts in libpod's words."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.security import (
    Capabilities,
    PodSecurityContext,
    SeccompProfile,
    SecurityContext,
    SELinuxOptions,
    Sysctl,
)
from tests.support.pods import container, pod
from workers.kubecontainer.config_error import ConfigError
from workers.specgen.seccomp import SeccompSettings
from workers.specgen.security_context import container_security, sandbox_security, verify_rights

PROFILES = SeccompSettings(default=False, profiles_dir="/state/seccomp")
RUNTIME_DEFAULT = SeccompProfile(type="RuntimeDefault")
UNCONFINED = SeccompProfile(type="Unconfined")
LOCALHOST = SeccompProfile(type="Localhost", localhost_profile="fine/audit.json")


def security(own: dict[str, Any] | None = None, seccomp: SeccompSettings | None = None, **shared: Any) -> Any:
    main = container("main", security_context=SecurityContext(**own) if own is not None else None)
    made = pod(main, security_context=PodSecurityContext(**shared) if shared else None)
    found = container_security(made, main, seccomp=seccomp)
    return {name: value for name, value in found.items() if name != "mask"}


def test_without_a_context_podman_decides() -> None:
    assert security() == {}
    assert security({}, run_as_non_root=True) == {}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({"allow_privilege_escalation": False}, {"no_new_privileges": True}),
        ({"allow_privilege_escalation": True}, {}),
        ({"read_only_root_filesystem": True}, {"read_only_filesystem": True}),
        ({"read_only_root_filesystem": False}, {}),
        ({"proc_mount": "Unmasked"}, {"unmask": ["ALL"]}),
        ({"proc_mount": "Default"}, {}),
        ({"capabilities": Capabilities(drop=("ALL",))}, {"cap_drop": ["ALL"]}),
        ({"privileged": True}, {"privileged": True, "seccomp_profile_path": "unconfined"}),
        (
            {"privileged": True, "capabilities": Capabilities(add=("NET_RAW",)), "seccomp_profile": RUNTIME_DEFAULT},
            {"privileged": True, "seccomp_profile_path": "unconfined"},
        ),
        (
            {"selinux_options": SELinuxOptions(type="spc_t", level="s0:c1")},
            {"selinux_opts": ["type:spc_t", "level:s0:c1"]},
        ),
    ],
)
def test_each_setting_of_a_container(own: dict[str, Any], expected: dict[str, Any]) -> None:
    assert security(own) == expected


@pytest.mark.parametrize(
    ("own", "shared", "default", "path"),
    [
        (None, None, True, None),
        (None, None, False, "unconfined"),
        (None, UNCONFINED, True, "unconfined"),
        (RUNTIME_DEFAULT, UNCONFINED, False, None),
        (UNCONFINED, LOCALHOST, True, "unconfined"),
        (None, LOCALHOST, False, "/state/seccomp/fine/audit.json"),
        (LOCALHOST, None, True, "/state/seccomp/fine/audit.json"),
    ],
)
def test_the_seccomp_profile_is_the_containers_or_the_pods_or_the_nodes(
    own: SeccompProfile | None, shared: SeccompProfile | None, default: bool, path: str | None
) -> None:
    settings = SeccompSettings(default=default, profiles_dir="/state/seccomp")
    found = security({"seccomp_profile": own}, seccomp=settings, seccomp_profile=shared)
    assert found.get("seccomp_profile_path") == path


@pytest.mark.parametrize(
    ("own", "masks"),
    [({}, True), ({"proc_mount": "Default"}, True), ({"proc_mount": "Unmasked"}, False), ({"privileged": True}, False)],
)
def test_masks_are_upstreams(own: dict[str, Any], masks: bool) -> None:
    main = container("main", security_context=SecurityContext(**own))
    assert ("/proc/interrupts" in container_security(pod(main), main).get("mask", ())) is masks


def test_groups_are_those_of_the_pod_each_once() -> None:
    assert security(fs_group=7, supplemental_groups=(5, 7, 6)) == {"groups": ["7", "5", "6"]}


def test_selinux_options_of_the_container_replace_the_pods_as_a_whole() -> None:
    shared = SELinuxOptions(user="system_u", level="s0")
    found = security({"selinux_options": SELinuxOptions(level="s1")}, selinux_options=shared)
    assert found == {"selinux_opts": ["level:s1"]}
    assert security(selinux_options=shared) == {"selinux_opts": ["user:system_u", "level:s0"]}


def test_the_user_is_what_was_found() -> None:
    of = pod("main")
    assert container_security(of, of.spec.containers[0], "7:8")["user"] == "7:8"


def test_a_privileged_container_that_drops_capabilities_is_refused() -> None:
    context = SecurityContext(privileged=True, capabilities=Capabilities(drop=("NET_RAW",)))
    main = container("main", security_context=context)
    with pytest.raises(ConfigError, match=r"capabilities\.drop"):
        verify_rights(pod(main), main)


def test_the_sandbox_has_the_pods_sysctls_and_nothing_else() -> None:
    sysctls = (
        Sysctl(name="net/ipv4/ip_unprivileged_port_start", value="0"),
        Sysctl(name="kernel.shm_rmid_forced", value="1"),
    )
    privileged = container("main", security_context=SecurityContext(privileged=True))
    made: Pod = pod(privileged, security_context=PodSecurityContext(sysctls=sysctls, run_as_user=7))
    assert sandbox_security(made) == {
        "sysctl": {"net.ipv4.ip_unprivileged_port_start": "0", "kernel.shm_rmid_forced": "1"}
    }
    assert sandbox_security(pod(privileged)) == {}
