"""Changes that make another container or another sandbox, and those that do not."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.k8s.api.pod_containers import ContainerKind
from ipc.k8s.api.podman_annotations import USERNS
from ipc.k8s.api.v1.base import json_name
from ipc.k8s.api.v1.container import Container, ContainerPort, EphemeralContainer, ResourceRequirements, VolumeMount
from ipc.k8s.api.v1.env import EnvVar
from ipc.k8s.api.v1.pod import HostAlias, Pod, PodDNSConfig
from ipc.k8s.api.v1.probe import ExecAction, Lifecycle, LifecycleHandler, Probe
from ipc.k8s.api.v1.security import (
    AppArmorProfile,
    PodSecurityContext,
    SeccompProfile,
    SecurityContext,
    SELinuxOptions,
    Sysctl,
)
from ipc.k8s.api.v1.volume import EmptyDirVolumeSource, Volume
from ipc.k8s.kubecontainer.hashing import (
    CONTAINER_FIELDS,
    HASH_CHARS,
    SANDBOX_FIELDS,
    container_hash,
    hash_in,
    is_made_from,
    is_sandbox_made_from,
    sandbox_hash,
)
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, SandboxState, SandboxStatus
from tests.support.pods import container, pod

NOT_IN_THE_HASH = {
    "ports",  # the sandbox's
    "imagePullPolicy",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "terminationMessagePolicy",
}


def regular_hash(of: Container) -> str:
    return container_hash(of, ContainerKind.REGULAR)


def test_every_field_of_a_container_is_decided_on() -> None:
    known = {json_name(field) for field in Container.__struct_fields__}
    assert known == CONTAINER_FIELDS | NOT_IN_THE_HASH
    assert not CONTAINER_FIELDS & NOT_IN_THE_HASH


@pytest.mark.parametrize(
    "change",
    [
        {"image": "localhost/other:1"},
        {"command": ("sh",)},
        {"args": ("sleep", "1000001")},
        {"working_dir": "/tmp"},
        {"env": (EnvVar(name="A", value="b"),)},
        {"resources": ResourceRequirements(limits={"ephemeral-storage": "1Gi"})},
        {"volume_mounts": (VolumeMount(name="v", mount_path="/v"),)},
        {"security_context": SecurityContext(run_as_user=0)},
        {"tty": True},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_needs_a_new_container_changes_its_hash(change: dict[str, Any]) -> None:
    assert regular_hash(container("a", **change)) != regular_hash(container("a"))


@pytest.mark.parametrize(
    "change",
    [
        {"image_pull_policy": "Always"},
        {"liveness_probe": Probe(period_seconds=3)},
        {"lifecycle": Lifecycle(pre_stop=LifecycleHandler(exec=ExecAction(command=("true",))))},
        {"restart_policy": "Never"},
        {"security_context": SecurityContext()},
        {"resources": ResourceRequirements()},
        {"resources": ResourceRequirements(limits={"cpu": "1"}, requests={"memory": "1Gi"})},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_does_not_leaves_it(change: dict[str, Any]) -> None:
    assert regular_hash(container("a", **change)) == regular_hash(container("a"))


def test_a_field_that_v1_gains_later_changes_no_hash() -> None:
    """The same definition in a Container that knows more."""

    class Later(Container, frozen=True, kw_only=True):
        brand_new: str | None = None

    today = container("a", env=(EnvVar(name="A", value="b"),))
    fields = {name: getattr(today, name) for name in Container.__struct_fields__}
    assert regular_hash(Later(**fields)) == regular_hash(today)


def test_a_container_of_one_kind_does_not_serve_as_another() -> None:
    a, sidecar = container("a"), container("a", restart_policy="Always")
    hashes = {container_hash(a, kind) for kind in ContainerKind} | {container_hash(sidecar, ContainerKind.INIT)}
    assert len(hashes) == 4
    assert regular_hash(sidecar) == regular_hash(a), "there it is a policy"
    spec = pod("b", init_containers=(a,)).spec
    assert hash_in(spec, a) == container_hash(a, ContainerKind.INIT)


OTHERS = PodSecurityContext(run_as_user=7, supplemental_groups=(8,), seccomp_profile=SeccompProfile(type="Unconfined"))


@pytest.mark.parametrize(
    "change",
    [
        {"run_as_user": 0},
        {"run_as_group": 0},
        {"run_as_non_root": False},
        {"supplemental_groups": (9,)},
        {"supplemental_groups_policy": "Strict"},
        {"fs_group": 8},
        {"seccomp_profile": SeccompProfile(type="RuntimeDefault")},
        {"app_armor_profile": AppArmorProfile(type="Unconfined")},
        {"selinux_options": SELinuxOptions(level="s0")},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_a_container_has_from_its_pod_changes_its_hash(change: dict[str, Any]) -> None:
    a = container("a")
    for before in (PodSecurityContext(), OTHERS):
        after = msgspec.structs.replace(before, **change)
        hashes = {hash_in(pod(a, security_context=context).spec, a) for context in (before, after)}
        assert len(hashes) == 2
        assert sandbox_hash(pod(a, security_context=before)) == sandbox_hash(pod(a, security_context=after))


def test_what_it_says_itself_does_not_depend_on_the_pod() -> None:
    a = container("a", security_context=SecurityContext(run_as_user=1))
    contexts = (PodSecurityContext(run_as_user=2), PodSecurityContext(run_as_user=3), PodSecurityContext(), None)
    assert len({hash_in(pod(a, security_context=context).spec, a) for context in contexts}) == 1


def test_sysctls_are_the_sandboxs() -> None:
    a = container("a")
    with_sysctl = pod(a, security_context=PodSecurityContext(sysctls=(Sysctl(name="net.a", value="1"),)))
    assert sandbox_hash(with_sysctl) != sandbox_hash(pod(a))
    assert hash_in(with_sysctl.spec, a) == regular_hash(a)


def own_ids(**context: Any) -> Pod:
    return pod("a", host_users=False, security_context=PodSecurityContext(**context))


def test_how_many_ids_a_pod_has_of_its_own_is_the_sandboxs() -> None:
    hashes = [sandbox_hash(of) for of in (pod("a"), own_ids(), own_ids(fs_group=2047), own_ids(run_as_user=5000))]
    assert hashes[1] == hashes[2]
    assert len(set(hashes)) == 3


def test_whose_id_is_kept_is_the_sandboxs() -> None:
    def annotated(value: str) -> Pod:
        of = pod("a")
        metadata = msgspec.structs.replace(of.metadata, annotations={USERNS: value})
        return msgspec.structs.replace(of, metadata=metadata)

    values = ("keep-id", "keep-id:uid=5", "keep-id:uid=6", "nomap")
    assert len({sandbox_hash(annotated(value)) for value in values}) == len(values)
    assert sandbox_hash(annotated("nomap")) == sandbox_hash(pod("a"))


def test_ids_of_all_pods_are_nothing_special() -> None:
    assert sandbox_hash(pod("a", host_users=True)) == sandbox_hash(pod("a"))


PUBLISHED = ContainerPort(container_port=80, host_port=8082)


def with_port(**fields: Any) -> Pod:
    return pod(container("a", ports=(ContainerPort(**{"container_port": 80, "host_port": 8080, **fields}),)))


@pytest.mark.parametrize(
    "changed",
    [
        pod("a", host_network=True),
        pod("a", hostname="h"),
        pod("a", subdomain="s"),
        pod("a", hostname_override="o"),
        pod("a", set_hostname_as_fqdn=True),
        pod("a", host_pid=True),
        pod("a", host_ipc=True),
        pod("a", share_process_namespace=True),
        pod("a", dns_policy="Default"),
        pod("a", dns_config=PodDNSConfig(searches=("a.test",))),
        with_port(),
        with_port(host_port=8081),
        with_port(host_ip="127.0.0.1"),
    ],
    ids=[
        "host network",
        "host name",
        "subdomain",
        "override",
        "FQDN",
        "host processes",
        "host IPC",
        "shared processes",
        "resolver",
        "search",
        "port published",
        "other host port",
        "other host address",
    ],
)
def test_what_the_sandbox_depends_on_changes_its_hash(changed: Pod) -> None:
    others = [pod("a"), with_port()]
    assert sandbox_hash(changed) not in {sandbox_hash(other) for other in others if other != changed}


def test_what_it_does_not_depend_on_leaves_it() -> None:
    same = [
        pod("a"),
        pod("a", "b", restart_policy="Never", termination_grace_period_seconds=1),
        pod("a", host_aliases=(HostAlias(ip="10.0.0.1", hostnames=("a",)),)),
        pod("a", dns_policy="ClusterFirst", share_process_namespace=False, set_hostname_as_fqdn=False),
        with_port(host_port=0),
        pod(container("a", image="localhost/other:1")),
        pod("a", init_containers=(container("i"), container("s", restart_policy="Always"))),
        pod("a", init_containers=(container("s", restart_policy="Always", ports=(PUBLISHED,)),)),
        pod("a", ephemeral_containers=(EphemeralContainer(name="debug", ports=(PUBLISHED,)),)),
    ]
    assert len({sandbox_hash(of) for of in same}) == 1
    assert sandbox_hash(with_port(name="http")) == sandbox_hash(with_port())


PORTS = st.lists(
    st.builds(
        ContainerPort,
        container_port=st.just(80),
        host_port=st.sampled_from([0, 8080, 8081]),
        host_ip=st.sampled_from(["", "::1"]),
        name=st.sampled_from(["", "http"]),
    ),
    max_size=2,
).map(tuple)
PODS = st.builds(
    pod,
    st.builds(container, st.just("a"), ports=PORTS),
    st.builds(container, st.just("b"), ports=PORTS),
    init_containers=st.sampled_from([(), (container("i", ports=(PUBLISHED,)),)]),
    volumes=st.sampled_from([(), (Volume(name="v", empty_dir=EmptyDirVolumeSource()),)]),
    hostname=st.sampled_from(["", "h"]),
    host_network=st.booleans(),
    share_process_namespace=st.sampled_from([None, False, True]),
    dns_policy=st.sampled_from(["", "ClusterFirst", "Default"]),
    dns_config=st.sampled_from([None, PodDNSConfig(), PodDNSConfig(searches=("a.test",))]),
    resources=st.sampled_from([None, ResourceRequirements(limits={"cpu": "1"})]),
)


def hash_of_the_whole(of: Pod) -> str:
    """The sandbox's hash by its definition, from the JSON of the whole pod: as it is in labels of what runs."""
    spec = msgspec.to_builtins(of.spec)
    same = {"dnsPolicy": "ClusterFirst", "shareProcessNamespace": False}
    covered = {key: value for key, value in spec.items() if key in SANDBOX_FIELDS and same.get(key) != value}
    ports = [port for each in spec["containers"] for port in each.get("ports", ()) if port.get("hostPort")]
    if ports and not of.spec.host_network:
        covered["ports"] = [{key: value for key, value in port.items() if key != "name"} for port in ports]
    if not covered.get("dnsConfig", True):
        del covered["dnsConfig"]
    canonical = msgspec.json.encode(covered, order="sorted")
    return hashlib.sha256(canonical).hexdigest()[:HASH_CHARS]


@given(PODS)
def test_the_hash_of_a_sandbox_is_that_of_the_whole_pod(of: Pod) -> None:
    assert sandbox_hash(of) == hash_of_the_whole(of)


def limited(cpu: str) -> ResourceRequirements:
    return ResourceRequirements(limits={"cpu": cpu})


def test_the_pods_own_limits_change_while_its_sandbox_runs() -> None:
    hashes = {sandbox_hash(pod("a", resources=resources)) for resources in (limited("1"), limited("2"), None)}
    assert len(hashes) == 1


def test_what_an_agent_made_that_could_not_resize_is_known_by_a_hash_that_covers_its_resources() -> None:
    """Hashes of that time: nothing restarts with the agent, and an edit of resources does restart it."""
    old = SandboxStatus(id="s", name="s", infra_id="i", attempt=0, state=SandboxState.READY, hash="ee1adce3cde85d31")
    made = RuntimeContainerStatus(id="c", name="a", attempt=0, state=ContainerState.RUNNING, hash="27df42a96438872f")
    for cpu, is_same in (("1", True), ("2", False)):
        assert is_sandbox_made_from(old, pod("a", resources=limited(cpu))) is is_same
        assert is_made_from(made, pod("a").spec, container("a", resources=limited(cpu))) is is_same


def test_what_says_what_it_was_made_with_is_made_from_any_definition_with_other_amounts() -> None:
    one, two = (container("a", resources=limited(cpu)) for cpu in ("1", "2"))
    spec = pod("a").spec
    made = RuntimeContainerStatus(
        id="c", name="a", attempt=0, state=ContainerState.RUNNING, hash=hash_in(spec, one), resources=one.resources
    )
    assert is_made_from(made, spec, one)
    assert is_made_from(made, spec, two)
