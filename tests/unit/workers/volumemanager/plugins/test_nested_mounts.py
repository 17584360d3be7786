"""Mounts inside of other mounts: where directories have to be for them."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.k8s.api.v1.container import VolumeMount
from ipc.k8s.api.v1.volume import HostPathVolumeSource, Volume
from tests.support.pods import container, pod
from workers.volumemanager.plugins.projected import nested_mountpoints


def mount(name: str, path: str, **fields: Any) -> VolumeMount:
    return VolumeMount(name=name, mount_path=path, **fields)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([], ()),
        ([mount("b", "/etc/app/b")], ("b",)),
        ([mount("b", "/etc/app/b/c/"), mount("c", "/etc/app/x")], ("b/c", "x")),
        ([mount("b", "/etc/app/b"), mount("c", "/etc/app/b/c"), mount("d", "/etc/app/bc")], ("b", "bc")),
        ([mount("b", "/etc/application"), mount("c", "/etc"), mount("d", "/etc/app")], ()),
        ([mount("b", "/etc/app/../other"), mount("c", "/etc/./app//c")], ("c",)),
        ([mount("b", "/etc/app/file", sub_path="file"), mount("c", "/etc/app/file", sub_path_expr="$(X)")], ()),
        ([mount("host", "/etc/app/file")], ()),
    ],
)
def test_what_lies_inside(others: list[VolumeMount], expected: tuple[str, ...]) -> None:
    volumes = (Volume(name="host", host_path=HostPathVolumeSource(path="/file")),)
    made = pod(container("main", volume_mounts=(mount("a", "/etc/app/"), *others)), volumes=volumes)
    assert nested_mountpoints(made, "a") == expected


def test_every_kind_of_container_counts_and_each_for_itself() -> None:
    inner = pod(
        container("one", volume_mounts=(mount("a", "/a"), mount("b", "/a/one"))),
        container("two", volume_mounts=(mount("b", "/a/two"),)),
        init_containers=(container("first", volume_mounts=(mount("a", "/a"), mount("b", "/a/first"))),),
    )
    assert nested_mountpoints(inner, "a") == ("first", "one")
    assert nested_mountpoints(inner, "b") == ()


def test_a_sub_path_of_the_volume_has_no_mountpoints_in_it() -> None:
    made = pod(container("main", volume_mounts=(mount("a", "/a", sub_path="x"), mount("b", "/a/b"))))
    assert nested_mountpoints(made, "a") == ()
