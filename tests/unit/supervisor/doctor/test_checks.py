"""Findings about a host and its manifests, fact by fact."""

from __future__ import annotations

import cProfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.host.clock import SystemClock
from ipc.k8s.podresources.devices import Device
from ipc.k8s.podresources.node_resources import NodeResources, PodCgroups
from supervisor.config.settings import Settings
from supervisor.doctor import host
from supervisor.doctor.checks import check_host
from supervisor.doctor.findings import Level
from supervisor.doctor.host import HostFacts, gather
from supervisor.doctor.manifests import check_manifests, read_manifests
from supervisor.protocol.manifests import APPLY_SOURCE, FILE_SOURCE, DesiredPod
from supervisor.sources import checkpoint
from supervisor.sources.directory import ManifestReader, list_manifests
from supervisor.sources.objects.identity import Origin
from tests.support.host_facts import GOOD, PODMAN, SETTINGS, bad, but, podman


def sysctl(name: str, value: int) -> HostFacts:
    """A host with a Podman service of its user's."""
    return but(sysctls={**GOOD.sysctls, name: value}, own_service=False)


def test_of_a_good_host_nothing_bad_is_said() -> None:
    findings = check_host(GOOD, SETTINGS)
    assert bad(findings) == []
    assert {finding.subject for finding in findings} >= {"podman", "subuid", "storage", "cgroups", "locks"}


@pytest.mark.parametrize(
    ("node", "settings", "words"),
    [
        (NodeResources(), SETTINGS, ["off: systemd does not manage this user's cgroups"]),
        (NodeResources(pod_cgroups=PodCgroups(root="rootlet-two")), SETTINGS, ["pods lie in rootlet_two.slice"]),
        (NodeResources(), msgspec.structs.replace(SETTINGS, cgroups_per_qos=False), []),
    ],
)
def test_where_pods_lie_is_told(node: NodeResources, settings: Settings, words: list[str]) -> None:
    found = [f.message for f in check_host(but(node=node), settings) if f.subject == "cgroupsPerQOS"]
    assert [message.partition(",")[0] for message in found] == [word.partition(",")[0] for word in words]


@pytest.mark.parametrize(
    ("version", "mode", "default", "installed", "subjects"),
    [
        ("4.3.1", "", "", {"slirp4netns"}, []),
        ("4.3.1", "", "", {"pasta"}, ["programs"]),
        ("5.4.2", "", "pasta", {"slirp4netns"}, ["programs"]),
        ("5.4.2", "", "slirp4netns", {"slirp4netns"}, []),
        ("5.4.2", "bridge", "pasta", {"pasta"}, []),
        ("5.4.2", "slirp4netns", "pasta", {"slirp4netns"}, []),
        ("6.1.1", "", "pasta", {"pasta"}, []),
        ("6.1.1", "slirp4netns", "pasta", {"slirp4netns", "pasta"}, ["podNetwork.mode"]),
    ],
)
def test_the_program_that_makes_the_network_is_the_one_that_podman_takes(
    version: str, mode: str, default: str, installed: set[str], subjects: list[str]
) -> None:
    settings = msgspec.structs.replace(SETTINGS, pod_network=msgspec.structs.replace(SETTINGS.pod_network, mode=mode))
    facts = but(
        podman=msgspec.structs.replace(PODMAN, version=version, network_program=default),
        programs=GOOD.programs - {"slirp4netns", "pasta"} | installed,
    )
    assert [finding.subject for finding in check_host(facts, settings) if finding.level is Level.FAILED] == subjects


@pytest.mark.parametrize(
    ("version", "flush_s", "own_service", "store"),
    [
        ("4.9.4", 0.1, True, "default"),
        ("5.4.2", 0.001, True, "default"),
        ("5.4.2", None, True, "default"),
        ("5.4.2", 0.1, False, "default"),
        ("5.4.2", 0.1, True, "transient"),
    ],
)
def test_the_transient_store_is_advised_only_where_it_helps_and_can_be_had(
    version: str, flush_s: float | None, own_service: bool, store: str
) -> None:
    settings = msgspec.structs.replace(SETTINGS, podman=msgspec.structs.replace(SETTINGS.podman, store=store))
    facts = but(
        podman=msgspec.structs.replace(PODMAN, version=version, network_program="pasta", flush_s=flush_s),
        own_service=own_service,
    )
    assert [found for found in check_host(facts, settings) if found.subject == "podman.store"] == []


@pytest.mark.parametrize(
    ("facts", "level", "subject"),
    [
        (podman(error="podman info: exit code 125"), "failed", "podman"),
        (podman(version="4.2.0"), "failed", "podman"),
        (podman(rootless=False), "failed", "podman"),
        (but(programs=GOOD.programs - {"crun"}), "failed", "programs"),
        (but(programs=GOOD.programs - {"slirp4netns"}), "failed", "programs"),
        (but(podman=None, programs=GOOD.programs - {"slirp4netns", "pasta"}), "failed", "programs"),
        (but(programs=GOOD.programs - {"nsenter"}), "warning", "programs"),
        (but(programs=GOOD.programs - {"newuidmap"}), "failed", "subuid"),
        (sysctl("user/max_user_namespaces", 0), "failed", "subuid"),
        (podman(mapped_ids=1), "failed", "subuid"),
        (podman(mapped_ids=1001), "warning", "subuid"),
        (podman(storage_driver="vfs"), "warning", "storage"),
        (podman(free_pages=2000), "warning", "database"),
        (podman(version="5.0.0", flush_s=0.0011), "warning", "podman.store"),
        (but(store_problem="transient needs Podman 5.0 or newer"), "failed", "podman.store"),
        (but(forwarder_problem="pasta needs Podman 6.1 or newer"), "failed", "podman.portForwarder"),
        (podman(native_overlay=False), "warning", "storage"),
        (but(free_bytes={"stateDir": 1000}, disk_bytes={}), "warning", "disk"),
        (but(free_bytes={"stateDir": 100 << 30}), "warning", "eviction"),
        (but(unified_cgroups=False), "failed", "cgroups"),
        (but(controllers=frozenset({"cpu", "pids"})), "warning", "cgroups"),
        (but(num_locks=300), "warning", "locks"),
        (podman(locks=2047), "failed", "locks"),
        (sysctl("kernel/keys/maxkeys", 200), "warning", "keyrings"),
        (sysctl("fs/inotify/max_user_instances", 128), "warning", "inotify"),
        (but(max_processes=500), "warning", "processes"),
        (but(max_tasks=500), "warning", "processes"),
        (but(systemd=True, lingers=False), "warning", "linger"),
        (but(memory_dir_type="ext4"), "warning", "memoryDir"),
        (but(missing_modules=("opentelemetry.sdk",)), "warning", "tracing"),
        (but(skipped_manifests=("web.yaml.txt",)), "warning", "manifests"),
        (but(devices={"a.b/c": {"/dev/x": Device(problem="gone")}}), "warning", "devices"),
        (but(missing_runtimes=("/usr/bin/kata",)), "warning", "runtimes"),
    ],
)
def test_what_is_missing_is_named(facts: HostFacts, level: str, subject: str) -> None:
    findings = check_host(facts, SETTINGS)
    assert bad(findings) == [(level, subject)]


@pytest.mark.parametrize(("own_service", "remedy"), [(True, "start the agent"), (False, "podman info")])
def test_a_podman_without_its_pause_process_is_mended_by_a_service_of_the_agents(
    own_service: bool, remedy: str
) -> None:
    facts = podman(error='invalid internal status, try resetting the pause process with "podman system migrate"')
    found = check_host(msgspec.structs.replace(facts, own_service=own_service), SETTINGS)
    assert [remedy in finding.remedy for finding in found if finding.subject == "podman"] == [True]


def test_old_locks_go_before_new_ones_are_made_of_another_number() -> None:
    """Podman 5.8.6 refuses to renumber, and every other command, while they are there."""
    error = "Error: failed to open 8192 locks in /libpod_rootless_lock_1000: numerical result out of range"
    for facts in (but(num_locks=300), podman(locks=2047), podman(error=error)):
        [remedy] = [finding.remedy for finding in check_host(facts, SETTINGS) if finding.level is not Level.OK]
        assert 0 < remedy.find("rm /dev/shm/libpod_rootless_lock_") < remedy.find("podman system renumber")


def in_cluster(settings: Settings = SETTINGS, **cluster: Any) -> Settings:
    section = msgspec.structs.replace(settings.cluster, **{"kubeconfig": "/k", **cluster})
    server = msgspec.structs.replace(settings.server, port=10250)
    network = msgspec.structs.replace(settings.pod_network, mode="bridge")
    return msgspec.structs.replace(settings, cluster=section, server=server, pod_network=network)


@pytest.mark.parametrize(
    ("facts", "settings", "level", "words"),
    [
        (but(kubeconfig_problems={"kubeconfig": "/k: not there"}), {}, "failed", "kubeconfig: /k: not there"),
        (but(open_kubeconfigs=("kubeconfig",)), {}, "warning", "others can read"),
        (but(host_ips=("192.0.2.1",)), {"node_ip": "192.0.2.2"}, "failed", "not found in the host"),
        (GOOD, {"network_scope": "Node"}, "warning", "pods of other nodes"),
    ],
)
def test_what_a_cluster_will_miss_is_named(facts: HostFacts, settings: Any, level: str, words: str) -> None:
    findings = check_host(facts, in_cluster(**{"network_scope": "Cluster", **settings}))
    assert bad(findings) == [(level, "cluster")]
    assert any(words in finding.message for finding in findings)


def test_a_node_needs_a_server_and_a_bridge() -> None:
    settings = msgspec.structs.replace(
        in_cluster(network_scope="Cluster"), server=SETTINGS.server, pod_network=SETTINGS.pod_network
    )
    words = [finding.message for finding in check_host(GOOD, settings) if finding.subject == "cluster"]
    assert [what.partition(" is ")[0] for what in words] == ["server.port", "podNetwork.mode"]


def test_files_of_the_cluster_are_looked_at(tmp_path: Path) -> None:
    kubeconfig, bootstrap = tmp_path / "k", tmp_path / "b"
    settings = in_cluster(kubeconfig=str(kubeconfig), bootstrap_kubeconfig=str(bootstrap))
    bootstrap.touch(mode=0o600)
    found = gather(settings, {})
    assert (found.kubeconfig_problems, found.open_kubeconfigs) == ({}, ())
    kubeconfig.touch(mode=0o644)
    bootstrap.unlink()
    found = gather(settings, {})
    assert (found.kubeconfig_problems, found.open_kubeconfigs) == ({}, ("kubeconfig",)), "the token did its work"
    kubeconfig.unlink()
    found = gather(settings, {})
    assert list(found.kubeconfig_problems) == ["bootstrapKubeconfig"]


def test_our_own_service_makes_no_keyrings() -> None:
    facts = sysctl("kernel/keys/maxkeys", 200)
    assert bad(check_host(msgspec.structs.replace(facts, own_service=True), SETTINGS)) == []


def test_without_podman_nothing_is_said_of_it() -> None:
    subjects = {finding.subject for finding in check_host(but(podman=None), SETTINGS)}
    assert not subjects & {"podman", "subuid", "storage"}


def test_this_host_can_be_looked_at(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, state_dir=tmp_path / "not" / "there", admin_socket=tmp_path / "none")
    facts = gather(settings, {})
    assert facts.podman is None
    assert facts.sysctls["user/max_user_namespaces"] is not None
    assert facts.free_bytes["stateDir"] > 0
    assert facts.memory_dir_type
    assert not facts.agent_runs


def test_modules_are_looked_for_when_a_setting_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "TRACING_MODULES", ("json", "json.nosuch", "nosuch.thing"))
    assert gather(SETTINGS, {}).missing_modules == ()
    traced = msgspec.structs.replace(SETTINGS.tracing, sampling_rate_per_million=1)
    found = gather(msgspec.structs.replace(SETTINGS, tracing=traced), {})
    assert found.missing_modules == ("json.nosuch", "nosuch.thing")


def manifests(tmp_path: Path, *documents: str) -> Settings:
    for number, document in enumerate(documents):
        (tmp_path / f"{number}.yaml").write_text(document)
    return msgspec.structs.replace(SETTINGS, static_pod_path=tmp_path, node_name="here")


def pod(name: str, image: str = "quay.io/a/there:1", more: str = "") -> str:
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  containers:
  - name: main
    image: {image}
    {more}
"""


def look(settings: Settings, facts: HostFacts = GOOD) -> list[str]:
    pods, errors = read_manifests(settings, SystemClock())
    return [str(finding) for finding in check_manifests(pods, errors, facts, settings)]


def test_good_manifests_are_counted(tmp_path: Path) -> None:
    settings = manifests(tmp_path, pod("a"), pod("b"))
    assert look(settings) == [f"manifests: 2 pods in {tmp_path}"]


def test_manifests_need_not_be_there_yet(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, static_pod_path=tmp_path / "none")
    assert look(settings) == [f"manifests: {tmp_path / 'none'} does not exist yet"]


@pytest.mark.parametrize("first", ["0.yaml", "1.yaml"])
def test_of_two_files_of_one_pod_that_counts_which_the_agent_has(tmp_path: Path, first: str) -> None:
    """Whichever came first: its checkpoint says so."""
    files = tmp_path / "manifests"
    files.mkdir()
    settings = msgspec.structs.replace(manifests(files, pod("a"), pod("a")), state_dir=tmp_path)
    (other,) = {"0.yaml", "1.yaml"} - {first}
    origin = Origin(instance=settings.instance_name, node_name=settings.node_name, source=FILE_SOURCE)
    snapshot = ManifestReader(files / first, origin).read(list_manifests(files / first))
    desired = [DesiredPod(pod=each.pod, source=FILE_SOURCE, file=first, document=1) for each in snapshot.pods]
    checkpoint.save(tmp_path / "desired.json", desired)
    (said,) = look(settings)
    assert said.startswith(f"manifest: {other}: document 1: metadata.name: pod default/a already comes from")
    assert f"{first}, which keeps it" in said


def test_a_pod_that_was_applied_keeps_its_name(tmp_path: Path) -> None:
    files = tmp_path / "manifests"
    files.mkdir()
    settings = msgspec.structs.replace(manifests(files, pod("a")), state_dir=tmp_path)
    origin = Origin(instance=settings.instance_name, node_name=settings.node_name, source=APPLY_SOURCE)
    snapshot = ManifestReader(files, origin).read(list_manifests(files))
    desired = [DesiredPod(pod=each.pod, source=APPLY_SOURCE, file="-", document=1) for each in snapshot.pods]
    checkpoint.save(tmp_path / "desired.json", desired)
    (said,) = look(settings)
    assert said.startswith("manifest: 0.yaml: document 1: metadata.name: pod default/a already comes from")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (pod("a", more="other: field"), "manifest: 1.yaml: document 1: spec.containers[0].other: unknown field"),
        (pod("first"), "pod default/first already comes from file: 0.yaml, which keeps it"),
        (pod("a", "localhost/none:1"), "pod default/a: image localhost/none:1 of main is not there, and no registry"),
        (pod("a", "quay.io/a/none:1", "imagePullPolicy: Never"), "is not there, and imagePullPolicy is Never"),
        (
            pod("a", more="ports: [{containerPort: 80, hostPort: 80}]"),
            "would be rejected: HostPortForbidden: host port 0.0.0.0:80/TCP cannot be had: ports below 1024",
        ),
        (pod("a", more="ports: [{containerPort: 80, hostPort: 8080}]"), "port 0.0.0.0:8080/TCP is held by another"),
        (
            pod("a", more="ports: [{containerPort: 80, hostPort: 9090}]"),
            "would be rejected: NodePorts: Predicate NodePorts failed",
        ),
    ],
)
def test_what_is_wrong_with_a_pod_is_named(tmp_path: Path, document: str, said: str) -> None:
    first = pod("first", more="ports: [{containerPort: 80, hostPort: 9090}]")
    facts = but(listening=frozenset({("TCP", 8080)}))
    (found,) = look(manifests(tmp_path, first, document), facts)
    assert said in found


def test_what_would_be_rejected_takes_nothing_from_others(tmp_path: Path) -> None:
    cpus = [f"resources: {{requests: {{cpu: {amount}}}}}" for amount in ("600m", "600m", "400m")]
    facts = but(node=NodeResources(allocatable={"cpu": "1", "memory": "1Gi"}, controllers=GOOD.controllers))
    settings = manifests(tmp_path, *(pod(name, more=cpu) for name, cpu in zip("abc", cpus, strict=True)))
    (found,) = look(settings, facts)
    assert found.startswith("pod default/b: would be rejected: OutOfcpu: ")


def test_twice_the_pods_are_twice_the_work(tmp_path: Path) -> None:
    few, many = (calls_to_check(tmp_path / str(count), count) for count in (100, 200))
    assert many < 2.2 * few


def calls_to_check(directory: Path, count: int) -> int:
    """How many functions are called to look at that many pods, each with a request and a port of its own."""
    directory.mkdir()
    more = "{{resources: {{requests: {{cpu: 1m}}}}, ports: [{{containerPort: 80, hostPort: {}}}]}}"
    documents = (pod(f"p{port}", more=f"<<: {more.format(port)}") for port in range(8080, 8080 + count))
    settings = msgspec.structs.replace(manifests(directory, *documents), max_pods=count)
    facts = but(node=NodeResources(allocatable={"cpu": "1"}, controllers=GOOD.controllers))
    pods, errors = read_manifests(settings, SystemClock())
    profile = cProfile.Profile()
    findings = profile.runcall(check_manifests, pods, errors, facts, settings)
    assert [str(finding) for finding in findings] == [f"manifests: {count} pods in {directory}"]
    return sum(entry.callcount for entry in profile.getstats())


def test_our_own_pods_hold_their_ports(tmp_path: Path) -> None:
    settings = manifests(tmp_path, pod("a", more="ports: [{containerPort: 80, hostPort: 8080}]"))
    facts = but(listening=frozenset({("TCP", 8080)}), agent_runs=True)
    assert look(settings, facts) == [f"manifests: 1 pods in {tmp_path}"]
