"""Disk that a pod may take, and what is said of one that takes more."""

from __future__ import annotations

import pytest

from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.v1.volume import EmptyDirVolumeSource, Volume
from workers.eviction.limits import (
    UNCOUNTED,
    StorageUsage,
    containers_to_measure,
    exceeded_limit,
    signal_of,
    volumes_to_measure,
)

MIB = 1 << 20


def volume(name: str, size_limit: str | None = None, medium: str = "") -> Volume:
    return Volume(name=name, empty_dir=EmptyDirVolumeSource(medium=medium, size_limit=size_limit))


def container(name: str, limit: str | None = None) -> Container:
    limits = {} if limit is None else {"ephemeral-storage": limit}
    return Container(name=name, image="x", resources=ResourceRequirements(limits=limits))


def pod(*parts: Volume | Container, init: tuple[Container, ...] = ()) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="web", uid="1"),
        spec=PodSpec(
            containers=tuple(part for part in parts if isinstance(part, Container)),
            init_containers=init,
            volumes=tuple(part for part in parts if isinstance(part, Volume)),
        ),
    )


def usage(**bytes_: int | None) -> StorageUsage:
    """Usage of volumes, whose names begin with v, and containers."""
    return StorageUsage(
        volumes={name: used for name, used in bytes_.items() if name.startswith("v")},
        containers={name: used for name, used in bytes_.items() if not name.startswith("v")},
    )


@pytest.mark.parametrize(
    ("given", "volumes", "containers"),
    [
        (pod(volume("v"), container("a")), (), ()),
        (pod(volume("v", "1Mi"), volume("v2"), container("a")), ("v",), ()),
        (pod(volume("v", "0"), container("a")), (), ()),
        (pod(volume("v", "1Mi", "Memory"), container("a")), (), ()),
        (pod(volume("v"), volume("v2", "1Mi", "Memory"), container("a", "1Mi"), container("b")), ("v",), ("a", "b")),
        (pod(container("a"), init=(container("first", "1Mi"),)), (), ("first", "a")),
    ],
)
def test_only_what_counts_is_measured(given: Pod, volumes: tuple[str, ...], containers: tuple[str, ...]) -> None:
    assert (volumes_to_measure(given), containers_to_measure(given)) == (volumes, containers)


@pytest.mark.parametrize(
    ("given", "used", "message"),
    [
        (pod(volume("v", "1Mi"), container("a")), usage(v=MIB), ""),
        (
            pod(volume("v", "1024Ki"), container("a")),
            usage(v=MIB + 1),
            'Usage of EmptyDir volume "v" exceeds the limit "1Mi". ',
        ),
        (pod(container("a", "1Mi"), container("b")), usage(a=MIB), ""),
        (
            pod(container("a", "1Mi"), container("b")),
            usage(a=MIB, b=1),
            "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ",
        ),
        (
            pod(volume("v"), container("a", "1Mi"), container("b", "2M")),
            usage(v=MIB, a=MIB, b=MIB),
            "Pod ephemeral local storage usage exceeds the total limit of containers 3048576. ",
        ),
        (
            pod(container("a", "1Mi"), container("b", "2Mi")),
            usage(a=MIB + 1, b=0),
            'Container a exceeded its local ephemeral storage limit "1Mi". ',
        ),
        (
            pod(container("a", "0")),
            usage(a=1),
            "Pod ephemeral local storage usage exceeds the total limit of containers 0. ",
        ),
        (
            pod(volume("v", "1Mi"), container("a")),
            usage(v=None),
            f'Usage of EmptyDir volume "v" exceeds the limit "1Mi". {UNCOUNTED}',
        ),
        (
            pod(volume("v"), container("a", "1Mi"), container("b", "2Mi")),
            usage(v=0, a=0, b=None),
            f"Pod ephemeral local storage usage exceeds the total limit of containers 3Mi. {UNCOUNTED}",
        ),
        (pod(volume("v"), container("a")), usage(v=None), ""),
    ],
)
def test_the_first_limit_that_is_exceeded_is_told(given: Pod, used: StorageUsage, message: str) -> None:
    assert exceeded_limit(given, used) == message


@pytest.mark.parametrize(
    ("message", "signal"),
    [
        ('Usage of EmptyDir volume "a" exceeds the limit "1Mi". ', "emptydirfs.limit"),
        ("Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ", "ephemeralpodfs.limit"),
        ('Container app exceeded its local ephemeral storage limit "1Mi". ', "ephemeralcontainerfs.limit"),
    ],
)
def test_a_message_has_its_signal(message: str, signal: str) -> None:
    assert signal_of(message) == signal
