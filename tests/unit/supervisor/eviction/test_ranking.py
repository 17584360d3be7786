"""Order in which pods go; upstream's own cases are in tests/kubelet_tables."""

from __future__ import annotations

import msgspec

from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.v1.volume import EmptyDirVolumeSource, Volume
from ipc.k8s.eviction.file_systems import Layout
from ipc.k8s.eviction.signals import Signal
from ipc.k8s.eviction.usage import ContainerUsage, DiskUsage, PodUsage
from supervisor.eviction.ranking import rank


def pod(name: str, *, priority: int = 0, storage: str = "", memory: str = "", volume: str = "") -> Pod:
    asked = {"ephemeral-storage": storage, "memory": memory}
    requests = {resource: amount for resource, amount in asked.items() if amount}
    main = Container(name="main", image="i", resources=ResourceRequirements(requests=requests))
    volumes = (Volume(name=volume, empty_dir=EmptyDirVolumeSource()),) if volume else ()
    return Pod(
        metadata=ObjectMeta(name=name, uid=name),
        spec=PodSpec(containers=(main,), priority=priority, volumes=volumes),
    )


def disk(name: str, *, rootfs: int = 0, logs: int = 0, volumes: dict[str, int] | None = None) -> PodUsage:
    main = ContainerUsage(name="main", rootfs=DiskUsage(rootfs, rootfs), logs=DiskUsage(logs, logs))
    found = {volume: DiskUsage(used, used) for volume, used in (volumes or {}).items()}
    return PodUsage(uid=name, containers=(main,), volumes=found)


def order(pods: list[Pod], usage: list[PodUsage], signal: Signal, layout: Layout = Layout.ONE) -> list[str]:
    return [each.metadata.name for each in rank(pods, signal, layout, {each.uid: each for each in usage})]


def test_processes_after_priority() -> None:
    pods = [pod("few"), pod("many"), pod("low", priority=-1)]
    usage = [PodUsage(uid="few", processes=2), PodUsage(uid="many", processes=90), PodUsage(uid="low", processes=1)]
    assert order(pods, usage, Signal.PID_AVAILABLE) == ["low", "many", "few"]


def test_memory_beyond_the_request_before_priority_and_use() -> None:
    pods = [pod("within", priority=-9, memory="1Gi"), pod("low", priority=-1), pod("much"), pod("little")]
    uses = {"within": 900 << 20, "low": 1 << 20, "much": 500 << 20, "little": 2 << 20}
    usage = [PodUsage(uid=name, memory=used) for name, used in uses.items()]
    assert order(pods, usage, Signal.MEMORY_AVAILABLE) == ["low", "much", "little", "within"]


def test_one_whose_figures_are_not_known_goes_first() -> None:
    pods = [pod("known"), pod("unknown")]
    usage = [PodUsage(uid="known", memory=1 << 40)]
    assert order(pods, usage, Signal.MEMORY_AVAILABLE) == ["unknown", "known"]


def test_only_what_lies_on_that_file_system_counts() -> None:
    pods = [pod("layers"), pod("logs"), pod("volumes", volume="v")]
    usage = [disk("layers", rootfs=900), disk("logs", logs=500), disk("volumes", volumes={"v": 700, "other": 9000})]
    assert order(pods, usage, Signal.NODEFS_AVAILABLE) == ["layers", "volumes", "logs"]
    assert order(pods, usage, Signal.NODEFS_AVAILABLE, Layout.DEDICATED_IMAGEFS) == ["volumes", "logs", "layers"]
    assert order(pods, usage, Signal.IMAGEFS_AVAILABLE, Layout.DEDICATED_IMAGEFS)[0] == "layers"
    assert order(pods, usage, Signal.CONTAINERFS_AVAILABLE, Layout.SPLIT) == ["layers", "volumes", "logs"]


def test_who_fills_the_files_that_it_was_given_goes_before_its_neighbour() -> None:
    pods = [pod("neighbour"), pod("fills hosts")]
    usage = [disk("neighbour", logs=500), PodUsage(uid="fills hosts", files=DiskUsage(900, 1))]
    assert order(pods, usage, Signal.NODEFS_AVAILABLE) == ["fills hosts", "neighbour"]


def test_a_request_for_bytes_says_nothing_of_inodes() -> None:
    pods = [pod("greedy", storage="10Gi"), pod("modest")]
    usage = [disk("greedy", rootfs=90_000), disk("modest", rootfs=2)]
    assert order(pods, usage, Signal.NODEFS_INODES_FREE) == ["greedy", "modest"]
    assert order(pods, usage, Signal.NODEFS_AVAILABLE) == ["modest", "greedy"]


def test_priority_among_those_that_take_more_than_they_asked_for() -> None:
    pods = [pod("important", priority=9), pod("within", storage="1Gi", priority=-9), pod("plain")]
    usage = [disk("important", rootfs=900), disk("within", rootfs=900), disk("plain", rootfs=1)]
    assert order(pods, usage, Signal.NODEFS_AVAILABLE) == ["plain", "important", "within"]


def test_equal_ones_keep_their_order() -> None:
    pods = [pod(name) for name in "cab"]
    usage = [msgspec.structs.replace(disk(name), memory=1) for name in "cab"]
    assert order(pods, usage, Signal.MEMORY_AVAILABLE) == ["c", "a", "b"]
