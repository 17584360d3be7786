"""Annotations that direct `podman kube play`: honoured, refused, or warned of by name."""

from __future__ import annotations

import pytest

from ipc.k8s.api.annotations import API_SOURCE, CONFIG_SOURCE
from ipc.k8s.api.podman_annotations import (
    MAX_TOLD,
    USERNS,
    claim_annotation_errors,
    kept_id,
    pod_annotation_warnings,
    volume_options,
)
from ipc.k8s.api.support.warnings import field_warnings
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec


@pytest.mark.parametrize(
    ("annotations", "options"),
    [
        ({}, {}),
        ({"volume.podman.io/driver": "local", "other": "x"}, {}),
        (
            {
                "volume.podman.io/device": "/srv",
                "volume.podman.io/type": "none",
                "volume.podman.io/mount-options": "bind",
            },
            {"device": "/srv", "type": "none", "o": "bind"},
        ),
        ({"volume.podman.io/uid": "5", "volume.podman.io/gid": "0"}, {"o": "uid=5,gid=0"}),
        (
            {"volume.podman.io/mount-options": "size=1M,nodev", "volume.podman.io/gid": "7"},
            {"o": "size=1M,nodev,gid=7"},
        ),
    ],
)
def test_a_claim_s_annotations_are_options_of_its_volume(annotations: dict[str, str], options: dict[str, str]) -> None:
    assert volume_options(annotations) == options
    assert list(claim_annotation_errors(annotations, "metadata.annotations")) == []


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("driver", "image", "podman volume create"),
        ("import-source", "data.tar", "init container"),
        ("image", "busybox", "init container"),
        ("new-one", "x", "init container"),
        ("uid", "root", "must be a number"),
        ("gid", "-1", "must be a number"),
        ("uid", "1,exec", "must be a number"),
    ],
)
def test_a_claim_that_would_be_another_volume_is_refused_by_field(name: str, value: str, words: str) -> None:
    (error,) = claim_annotation_errors({f"volume.podman.io/{name}": value}, "metadata.annotations")
    assert error.path == f"metadata.annotations[volume.podman.io/{name}]"
    assert words in error.message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("io.podman.annotations.userns", "hostUsers"),
        ("io.podman.annotations.pids-limit/main", "podPidsLimit"),
        ("io.podman.annotations.ulimit", "default_ulimits"),
        ("io.podman.annotations.volumes-from/main", "both containers mount"),
        ("bind-mount-options:/srv", "mountPropagation"),
        ("io.containers.autoupdate/main", "image tag"),
        ("io.containers.autoupdate", "image tag"),
        ("io.podman.annotations.of-tomorrow", "podman kube play alone"),
    ],
)
def test_a_pod_s_annotation_that_nobody_acts_on_is_warned_of(name: str, words: str) -> None:
    metadata = ObjectMeta(name="web", annotations={name: "x", "mine/note": "y"})
    (line,) = field_warnings(Pod(metadata=metadata, spec=PodSpec(containers=())))
    assert line.startswith(f"metadata.annotations[{name}]: ")
    assert words in line


@pytest.mark.parametrize(
    ("value", "host_users", "kept"),
    [
        ("keep-id", None, ""),
        ("keep-id", True, ""),
        ("keep-id", False, None),
        ("keep-id:uid=200", None, "uid=200"),
        ("keep-id:uid=200,gid=210", None, "uid=200,gid=210"),
        ("keep-id:gid=210", None, "gid=210"),
        ("keep-id:uid=200,uid=201", None, None),
        ("keep-id:uid=-1", None, None),
        ("keep-id:uid=" + "9" * 400, None, None),
        ("keep-id:size=3", None, None),
        ("keep-idx", None, None),
        ("auto", None, None),
        ("", None, None),
    ],
)
def test_whose_id_is_kept(value: str, host_users: bool | None, kept: str | None) -> None:
    metadata = ObjectMeta(name="web", annotations={USERNS: value})
    made = Pod(metadata=metadata, spec=PodSpec(containers=(), host_users=host_users))
    found = kept_id(made)
    assert (None if found is None else str(found)) == kept
    warned = [line for line in field_warnings(made) if USERNS in line]
    assert bool(warned) is (kept is None), "what is not acted on is warned of"


def test_the_pods_of_a_cluster_have_no_annotation_of_podmans() -> None:
    annotations = {USERNS: "keep-id", CONFIG_SOURCE: API_SOURCE}
    assert kept_id(Pod(metadata=ObjectMeta(name="web", annotations=annotations), spec=PodSpec(containers=()))) is None


def test_the_lines_are_bounded() -> None:
    many = {f"io.podman.annotations.n{number}": "" for number in range(5 * MAX_TOLD)}
    assert len(pod_annotation_warnings(many)) == MAX_TOLD
