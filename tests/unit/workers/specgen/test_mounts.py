"""Mounts that a container gets, in libpod's words, and those that it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ipc.k8s.api.v1.container import Container, VolumeMount
from tests.support.pods import container
from workers.env.expansion import expand_sub_path_expr
from workers.kubecontainer.config_error import ConfigError
from workers.kubecontainer.mounted_volume import MountedVolume
from workers.kubecontainer.runtime import OciMount
from workers.specgen.mounts import Mounts, is_recursively_read_only, make_mounts, sub_path_of

VOLUMES = {
    volume.name: volume
    for volume in (
        MountedVolume(name="data", path=Path("/pods/u/data")),
        MountedVolume(name="host", path=Path("/srv"), is_foreign=True),
        MountedVolume(name="written", path=Path("/pods/u/written"), read_only=True),
        MountedVolume(name="image", image="localhost/a:1", read_only=True),
        MountedVolume(name="claim", claim="disk"),
        MountedVolume(name="claim-ro", claim="disk", read_only=True),
    )
}


def mounting(**fields: Any) -> Container:
    return container("main", volume_mounts=(VolumeMount(mount_path="/at", **fields),))


def made(held: dict[str, Path] | None = None, **fields: Any) -> Mounts:
    return make_mounts(mounting(**fields), VOLUMES, held or {})


@pytest.mark.parametrize(
    ("fields", "source", "options"),
    [
        ({"name": "data"}, "/pods/u/data", "rbind rprivate rw z"),
        ({"name": "data", "read_only": True}, "/pods/u/data", "rbind rprivate ro z"),
        ({"name": "written"}, "/pods/u/written", "rbind rprivate ro z"),
        ({"name": "host"}, "/srv", "rbind rprivate rw"),
        ({"name": "host", "mount_propagation": "None"}, "/srv", "rbind rprivate rw"),
        ({"name": "host", "mount_propagation": "HostToContainer"}, "/srv", "rbind rslave rw"),
        ({"name": "host", "mount_propagation": "Bidirectional"}, "/srv", "rbind rshared rw"),
    ],
)
def test_a_path_is_bound(fields: dict[str, Any], source: str, options: str) -> None:
    bind: OciMount = {"type": "bind", "source": source, "destination": "/at", "options": options.split()}
    assert made(**fields) == Mounts(binds=(bind,))


def test_what_is_held_is_bound_instead() -> None:
    held = {"/at": Path("/held/0")}
    assert made(held, name="data", sub_path="x").binds[0]["source"] == "/held/0"
    by_claim = made(held, name="claim", sub_path="x")
    assert (by_claim.volumes, by_claim.binds[0]["source"]) == ((), "/held/0")
    assert "z" not in by_claim.binds[0]["options"]


def test_a_claim_is_a_named_volume() -> None:
    assert made(name="claim").volumes == ({"Name": "disk", "Dest": "/at", "Options": ["rprivate", "rw", "nocopy"]},)
    assert made(name="claim-ro").volumes[0]["Options"][1] == "ro"
    assert made(name="claim", read_only=True).volumes[0]["Options"][1] == "ro"


def test_an_image_is_an_image_volume() -> None:
    whole = {"Source": "localhost/a:1", "Destination": "/at", "ReadWrite": False}
    assert made(name="image").image_volumes == (whole,)
    part = made({"/at": Path("/held/0")}, name="image", sub_path="etc")
    assert (part.image_volumes, part.binds[0]["source"]) == ((), "/held/0")


def test_a_relative_place_is_one_below_the_root() -> None:
    relative = container("main", volume_mounts=(VolumeMount(name="data", mount_path="a/b"),))
    assert make_mounts(relative, VOLUMES).binds[0]["destination"] == "/a/b"


def test_a_volume_that_is_not_there_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match='cannot find volume "nope" to mount into container "main"'):
        made(name="nope")


@pytest.mark.parametrize(
    ("expression", "environment", "expected"),
    [
        ("$(A)", {"A": "x"}, "x"),
        ("$(A)/$(B)", {"A": "x", "B": "y"}, "x/y"),
        ("$$(A)", {}, "$(A)"),
        ("plain", {}, "plain"),
        ("$(A", {}, "$(A"),
    ],
)
def test_expressions(expression: str, environment: dict[str, str], expected: str) -> None:
    assert expand_sub_path_expr(expression, environment) == expected


def test_all_missing_variables_are_named() -> None:
    with pytest.raises(ConfigError, match=r"^missing value for A, B$"):
        expand_sub_path_expr("$(B)$(A)$(C)", {"C": "c", "A": ""})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("/etc", "error SubPath `/etc` must not be an absolute path"),
        ("..", "unable to provision SubPath `..`: must not contain '..'"),
        ("a/../../b", "unable to provision SubPath `a/../../b`: must not contain '..'"),
        ("a\0b", "unable to provision SubPath: must not contain a null character"),
    ],
)
def test_variables_lead_nowhere_else(value: str, words: str) -> None:
    mount = VolumeMount(name="data", mount_path="/at", sub_path_expr="$(A)")
    with pytest.raises(ConfigError) as caught:
        sub_path_of(mount, {"A": value})
    assert caught.value.message == words


def test_dots_within_a_name_are_part_of_it() -> None:
    mount = VolumeMount(name="data", mount_path="/at", sub_path="..a/b..")
    assert sub_path_of(mount, {}) == "..a/b.."


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, False),
        ({"recursive_read_only": "Disabled"}, False),
        ({"recursive_read_only": "IfPossible", "read_only": True}, True),
        ({"recursive_read_only": "Enabled", "read_only": True, "mount_propagation": "None"}, True),
    ],
)
def test_what_is_recursively_read_only(fields: dict[str, Any], expected: bool) -> None:
    assert is_recursively_read_only(VolumeMount(name="data", mount_path="/at", **fields)) is expected


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"recursive_read_only": "Enabled"}, "it is not read-only"),
        (
            {"recursive_read_only": "IfPossible", "read_only": True, "mount_propagation": "HostToContainer"},
            'it is not compatible with propagation "HostToContainer"',
        ),
    ],
)
def test_what_cannot_be(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=f'volume "data" requested recursive read-only mode, but {why}'):
        is_recursively_read_only(VolumeMount(name="data", mount_path="/at", **fields))
