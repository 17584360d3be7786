"""Images that are garbage, beyond upstream's tables (`tests.kubelet_tables`)."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.k8s.kubecontainer.image_gc import ImageGcPolicy, ImageGcScope, Stays, policy_problem
from workers.images.garbage import (
    Candidate,
    Disk,
    ImageRecord,
    bytes_to_free,
    free_old,
    is_pinned,
    stays,
    stored_name,
)
from workers.kubecontainer.image_service import ListedImage

NAME = "quay.io/a/b:1"
OURS = ImageRecord(first_detected=100.0, pulled=(NAME,))
NOW = 1000.0
ALL = ImageGcPolicy(scope=ImageGcScope.ALL)


def image(*names: str, **more: Any) -> ListedImage:
    return ListedImage(id="i", names=names or (NAME,), **more)


@pytest.mark.parametrize(
    ("listed", "record", "policy", "in_use", "why"),
    [
        (image(), OURS, ImageGcPolicy(), False, None),
        (image(), OURS, ImageGcPolicy(), True, Stays.IN_USE),
        (image(), ImageRecord(), ImageGcPolicy(), False, Stays.FOREIGN),
        (image(), ImageRecord(), ALL, False, None),
        (image(NAME, "localhost/mine:1"), OURS, ImageGcPolicy(), False, Stays.FOREIGN),
        (image(NAME, "localhost/mine:1"), OURS, ALL, False, None),
        (ListedImage(id="i"), OURS, ImageGcPolicy(), False, None),
        (image(), OURS, ImageGcPolicy(pinned=("quay.io/a/*",)), False, Stays.PINNED),
        (image("localhost/podman-pause:4.3.1-0"), ImageRecord(), ALL, False, Stays.PINNED),
        (image(is_read_only=True), OURS, ImageGcPolicy(), False, Stays.READ_ONLY),
        (image(), OURS, ImageGcPolicy(min_age_s=901), False, Stays.YOUNG),
        (image(), OURS, ImageGcPolicy(min_age_s=900), False, None),
    ],
)
def test_why_an_image_stays(
    listed: ListedImage, record: ImageRecord, policy: ImageGcPolicy, in_use: bool, why: Stays | None
) -> None:
    assert stays(listed, record, policy, NOW, in_use=in_use) is why


@pytest.mark.parametrize(
    ("available", "high", "low", "wanted"),
    [
        (160, 85, 80, 0),
        (150, 85, 80, 50),
        (0, 85, 80, 200),
        (2000, 85, 80, 0),
        (999, 1, 0, 1),
        (1000, 1, 0, 0),
        (990, 1, 0, 10),
        (1000, 0, 0, 0),
        (10, 100, 80, 0),
        (0, 100, 100, 0),
    ],
)
def test_how_much_has_to_go(available: int, high: int, low: int, wanted: int) -> None:
    policy = ImageGcPolicy(high_threshold_percent=high, low_threshold_percent=low)
    assert bytes_to_free(Disk(1000, available), policy) == wanted


@pytest.mark.parametrize(
    ("last_used", "first_detected", "began_at", "goes"),
    [(0.0, 100.0, 0.0, True), (500.0, 100.0, 0.0, False), (0.0, 500.0, 0.0, False), (0.0, 100.0, 500.0, False)],
)
def test_an_old_image_is_one_that_nobody_has_used_for_long(
    last_used: float, first_detected: float, began_at: float, goes: bool
) -> None:
    found = Candidate(id="i", first_detected=first_detected, last_used=last_used)
    assert next(free_old([found], 800.0, began_at, NOW), None) == (found if goes else None)


@pytest.mark.parametrize(
    ("names", "pinned", "expected"),
    [
        (("a/b:1",), ("a/b:1",), True),
        (("a/b:1", "a/c:1"), ("a/c:1",), True),
        (("a/b:1",), ("a/b",), False),
        (("a/b:1",), ("a/b*",), True),
        (("a/b:1",), (), False),
        ((), ("a*",), False),
    ],
)
def test_pins_are_names_or_how_names_begin(names: tuple[str, ...], pinned: tuple[str, ...], expected: bool) -> None:
    assert is_pinned(names, pinned) is expected


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("quay.io/a:1", "quay.io/a:1"),
        (f"quay.io/a:1@sha256:{'0' * 64}", f"quay.io/a@sha256:{'0' * 64}"),
    ],
)
def test_the_name_under_which_podman_keeps_an_image(reference: str, name: str) -> None:
    assert stored_name(reference) == name


def test_a_policy_without_thresholds_and_ages_is_off() -> None:
    assert ImageGcPolicy(high_threshold_percent=100).is_off
    assert not ImageGcPolicy(high_threshold_percent=100, max_age_s=1.0).is_off
    assert policy_problem(ImageGcPolicy()) == ""
