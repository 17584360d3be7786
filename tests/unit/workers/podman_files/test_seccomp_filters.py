from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from ipc.host.clock import wall
from workers.podman_files.seccomp_filters import ANNOTATION, MAX_ASKED, MAX_FILTERS, MAX_INSTRUCTIONS, SeccompFilters

FILTER = bytes(range(16))
IMAGE = "sha256:1"
OLD_S = 1000.0


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    file = tmp_path / "profile.json"
    file.write_text("{}")
    return file


def spec(profile: Path | str, **more: Any) -> dict[str, Any]:
    return {"name": "a", "seccomp_profile_path": str(profile), **more}


def state(tmp_path: Path, content: bytes = FILTER) -> Path:
    """The runtime's directory of a container."""
    directory = tmp_path / "container"
    directory.mkdir(exist_ok=True)
    (directory / "seccomp.bpf").write_bytes(content)
    return directory


def later() -> float:
    """Long after the profile was written."""
    return wall() + OLD_S


def make(filters: SeccompFilters, body: dict[str, Any], directory: Path | None) -> None:
    """A container is made and started."""
    filters.with_filter(body, IMAGE)
    filters.learn(body, IMAGE, directory)


def learnt(profile: Path, tmp_path: Path, **more: Any) -> SeccompFilters:
    filters = SeccompFilters(later)
    make(filters, spec(profile, **more), state(tmp_path))
    return filters


def annotation(filters: SeccompFilters, body: dict[str, Any], image: str = IMAGE) -> str | None:
    found = filters.with_filter(body, image)
    if found is body:
        return None
    text: str = found["annotations"][ANNOTATION]
    return text


def test_the_next_container_is_given_the_filter(profile: Path, tmp_path: Path) -> None:
    filters = learnt(profile, tmp_path)
    body = spec(profile, name="b", annotations={"other": "x"})
    made = filters.with_filter(body, IMAGE)
    assert made == {**body, "annotations": {"other": "x", ANNOTATION: base64.b64encode(FILTER).decode()}}
    assert ANNOTATION not in body["annotations"], "the body itself stays as it is"


@pytest.mark.parametrize(
    "other",
    [
        {"cap_add": ["SYS_ADMIN"]},
        {"cap_drop": ["ALL"]},
        {"user": "7"},
        {"privileged": True},
        {"oci_runtime": "/bin/another"},
        {"seccomp_profile_path": "unconfined"},
        {"seccomp_profile_path": ""},
        {"seccomp_profile_path": "/none"},
    ],
)
def test_what_a_filter_may_depend_on_has_its_own(profile: Path, tmp_path: Path, other: dict[str, Any]) -> None:
    filters = learnt(profile, tmp_path)
    assert annotation(filters, spec(profile)) is not None
    assert annotation(filters, {**spec(profile), **other}) is None
    assert annotation(filters, spec(profile), "sha256:2") is None, "an image may want less capabilities"


def test_a_profile_that_was_changed_is_compiled_again(profile: Path, tmp_path: Path) -> None:
    filters = learnt(profile, tmp_path)
    profile.write_text("{ }")
    assert annotation(filters, spec(profile)) is None
    another = tmp_path / "another"
    another.write_text("{}")
    os.replace(another, profile)
    assert annotation(filters, spec(profile)) is None


def test_a_filter_may_be_that_of_another_profile_which_was_there_meanwhile(profile: Path, tmp_path: Path) -> None:
    filters, other, current = SeccompFilters(later), tmp_path / "other.json", tmp_path / "current.json"
    other.write_text("{ }")
    current.symlink_to(profile)
    filters.with_filter(spec(current), IMAGE)
    current.unlink()
    current.symlink_to(other)
    filters.learn(spec(current), IMAGE, state(tmp_path))
    assert annotation(filters, spec(current)) is None
    current.unlink()
    current.symlink_to(profile)
    assert annotation(filters, spec(current)) is None
    make(filters, spec(current), state(tmp_path))
    assert annotation(filters, spec(current)) is not None


def test_nothing_is_learnt_of_a_profile_that_was_just_changed(profile: Path, tmp_path: Path) -> None:
    filters = SeccompFilters(lambda: profile.stat().st_mtime)
    make(filters, spec(profile), state(tmp_path))
    assert annotation(filters, spec(profile)) is None


def test_nothing_is_learnt_of_a_container_that_was_not_asked_for(profile: Path, tmp_path: Path) -> None:
    filters = SeccompFilters(later)
    filters.learn(spec(profile), IMAGE, state(tmp_path))
    for number in range(MAX_ASKED + 1):
        filters.with_filter(spec(profile, name=f"b{number}"), IMAGE)
    filters.learn(spec(profile, name="b0"), IMAGE, state(tmp_path))
    assert annotation(filters, spec(profile, name="c")) is None


def test_a_runtime_with_a_cache_of_its_own_is_given_nothing(profile: Path, tmp_path: Path) -> None:
    directory = state(tmp_path)
    os.link(directory / "seccomp.bpf", tmp_path / "in-the-cache")
    filters = SeccompFilters(later)
    make(filters, spec(profile), directory)
    (tmp_path / "in-the-cache").unlink()
    make(filters, spec(profile), directory)
    assert annotation(filters, spec(profile)) is None


@pytest.mark.parametrize("content", [b"", b"1234567", bytes(8 * (MAX_INSTRUCTIONS + 1))])
def test_what_is_no_filter_is_not_learnt(profile: Path, tmp_path: Path, content: bytes) -> None:
    filters = SeccompFilters(later)
    make(filters, spec(profile), state(tmp_path, content))
    assert annotation(filters, spec(profile)) is None


def test_without_its_file_nothing_is_learnt(profile: Path, tmp_path: Path) -> None:
    filters = SeccompFilters(later)
    make(filters, spec(profile), None)
    make(filters, spec(profile), tmp_path / "none")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "seccomp.bpf").symlink_to(state(tmp_path) / "seccomp.bpf")
    make(filters, spec(profile), tmp_path / "links")
    assert annotation(filters, spec(profile)) is None


def test_not_more_of_them_are_kept_than_a_node_needs(profile: Path, tmp_path: Path) -> None:
    filters = learnt(profile, tmp_path)
    for number in range(MAX_FILTERS):
        make(filters, spec(profile, user=str(number)), state(tmp_path))
    assert annotation(filters, spec(profile)) is None
    assert annotation(filters, spec(profile, user=str(MAX_FILTERS - 1))) is not None
