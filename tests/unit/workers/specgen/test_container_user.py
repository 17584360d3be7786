"""As which user a container runs, and when it may not."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.security import PodSecurityContext, SecurityContext
from tests.support.pods import UID, container, pod
from workers.kubecontainer.config_error import ConfigError
from workers.specgen.container_user import (
    container_user,
    names_ids,
    needs_image_user,
    parse_image_user,
    verify_ids,
    verify_run_as_non_root,
)
from workers.userns.id_ranges import IdRange, IdRanges

WHOSE = f'(pod: "web_default({UID})", container: main)'
RANGES = IdRanges(users=(IdRange(0, 65537),), groups=(IdRange(0, 1), IdRange(100, 10)))


def of(own: dict[str, Any] | None = None, **shared: Any) -> Pod:
    main = container("main", security_context=SecurityContext(**own) if own is not None else None)
    return pod(main, security_context=PodSecurityContext(**shared) if shared else None)


def refusal(made: Pod, image: str) -> str:
    with pytest.raises(ConfigError) as caught:
        verify_run_as_non_root(made, made.spec.containers[0], parse_image_user(image))
    return caught.value.message


@pytest.mark.parametrize(
    ("made", "image", "why"),
    [
        (of({"run_as_user": 0}, run_as_non_root=True), "", "container's runAsUser breaks non-root policy"),
        (of({"run_as_non_root": True}, run_as_user=0), "1", "container's runAsUser breaks non-root policy"),
        (of(run_as_non_root=True), "", "container has runAsNonRoot and image will run as root"),
        (of(run_as_non_root=True), "0:1000", "container has runAsNonRoot and image will run as root"),
        (
            of(run_as_non_root=True),
            "root",
            "container has runAsNonRoot and image has non-numeric user (root), cannot verify user is non-root",
        ),
        (
            of(run_as_non_root=True),
            "app:app",
            "container has runAsNonRoot and image has non-numeric user (app), cannot verify user is non-root",
        ),
        (
            of(run_as_non_root=True),
            "2147483648",
            "container has runAsNonRoot and image has an invalid user id (2147483648). (Must be 1-(2147483647)): "
            "must be between 0 and 2147483647, inclusive",
        ),
    ],
)
def test_root_is_refused_in_the_kubelets_words(made: Pod, image: str, why: str) -> None:
    assert refusal(made, image) == f"{why} {WHOSE}"


@pytest.mark.parametrize(
    ("made", "image"),
    [
        (of(), ""),
        (of({"run_as_non_root": False}, run_as_non_root=True), ""),
        (of({"run_as_user": 7}, run_as_non_root=True, run_as_user=0), "root"),
        (of(run_as_non_root=True), "1000"),
        (of(run_as_non_root=True), "1000:0"),
    ],
)
def test_others_are_not(made: Pod, image: str) -> None:
    verify_run_as_non_root(made, made.spec.containers[0], parse_image_user(image))


@pytest.mark.parametrize(
    ("made", "image", "user"),
    [
        (of(), "app:app", ""),
        (of(run_as_user=1000), "7:8", "1000"),
        (of({"run_as_user": 0}, run_as_user=1000), "7", "0"),
        (of(run_as_user=1000, run_as_group=0), "", "1000:0"),
        (of({"run_as_group": 3}, run_as_user=1000, run_as_group=2), "", "1000:3"),
        (of(run_as_group=5), "", "0:5"),
        (of(run_as_group=5), "7:8", "7:5"),
        (of(run_as_group=5), "app:8", "app:5"),
        (of(run_as_user=1000, run_as_group=2, supplemental_groups_policy="Strict"), "", "1000:2"),
        (of(run_as_user=0, supplemental_groups_policy="Strict"), "7", "0:0"),
        (of(supplemental_groups_policy="Strict"), "", "0:0"),
        (of(supplemental_groups_policy="Strict"), "root", "0:0"),
        (of(supplemental_groups_policy="Strict"), "7:8", ""),
        (of(run_as_user=1000, supplemental_groups_policy="Merge"), "", "1000"),
    ],
)
def test_user_and_group(made: Pod, image: str, user: str) -> None:
    assert container_user(made, made.spec.containers[0], parse_image_user(image)) == user


@pytest.mark.parametrize(("shared", "image", "who"), [({}, "app", "app"), ({"run_as_user": 1000}, "0:0", "1000")])
def test_strict_needs_a_group_that_podman_can_be_told(shared: dict[str, Any], image: str, who: str) -> None:
    made = of(supplemental_groups_policy="Strict", **shared)
    with pytest.raises(ConfigError) as caught:
        container_user(made, made.spec.containers[0], parse_image_user(image))
    assert f"runAsGroup is not set: Podman would give user {who} all groups" in caught.value.message


@pytest.mark.parametrize(
    ("made", "needed"),
    [
        (of(), False),
        (of(run_as_user=7, run_as_non_root=True, run_as_group=7), False),
        (of(run_as_non_root=True), True),
        (of(run_as_non_root=False), False),
        (of(run_as_group=0), True),
        (of(supplemental_groups_policy="Strict"), True),
        (of(supplemental_groups=(5,)), False),
    ],
)
def test_the_image_is_asked_only_when_it_matters(made: Pod, needed: bool) -> None:
    assert needs_image_user(made, made.spec.containers[0]) is needed


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (of(run_as_user=65537), "runAsUser 65537: there is no such user in a rootless container"),
        (of({"run_as_group": 110}), "runAsGroup 110: there is no such group in a rootless container"),
        (of(fs_group=1), "fsGroup 1: there is no such group"),
        (of(fs_group=100, supplemental_groups=(109, 110)), "supplementalGroups 110: there is no such group"),
    ],
)
def test_an_id_that_the_user_namespace_does_not_have_is_refused(made: Pod, words: str) -> None:
    main = made.spec.containers[0]
    assert names_ids(made, main)
    with pytest.raises(ConfigError) as caught:
        verify_ids(made, main, RANGES)
    assert words in caught.value.message
    assert ("0-65536" if "user ids" in caught.value.message else "0, 100-109") in caught.value.message


def test_ids_that_it_has_are_not() -> None:
    made = of({"run_as_user": 65536}, run_as_group=109, fs_group=0)
    verify_ids(made, made.spec.containers[0], RANGES)


def test_root_is_always_there() -> None:
    made = of({"run_as_user": 0}, run_as_group=0)
    assert not names_ids(made, made.spec.containers[0])
