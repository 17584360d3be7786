"""Records of a storage, read past Podman: whose containers there are, and what nobody knows any more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workers.podman_files.default_store import DefaultStore, Place, UnknownStorage, left_over

A, B, C, D = (letter * 64 for letter in "abcd")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Layers and containers a to d: a lasting record has a, a volatile one b, and the transient store c."""
    made = Place(str(tmp_path / "graph"), str(tmp_path / "run"), "overlay")
    for kind, directory in {"layers": "overlay", "containers": "overlay-containers"}.items():
        for id in (A, B, C, D):
            (Path(made.graph_root, directory) / id).mkdir(parents=True)
        for file, id in zip(made.records(kind), (A, B, C), strict=True):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps([{"id": id, "image": f"image of {id[0]}", "names": [f"name of {id[0]}"]}]))
    Path(made.graph_root, "overlay", "l").mkdir()
    return made


def test_what_no_record_names_is_left_over(place: Place) -> None:
    layers, containers = Path(place.graph_root, "overlay"), Path(place.graph_root, "overlay-containers")
    assert left_over(place) == [layers / D, containers / D]
    place.records("layers")[2].unlink()
    assert set(left_over(place)) == {layers / C, layers / D, containers / D}
    place.records("layers")[2].write_text("null")
    assert set(left_over(place)) == {layers / C, layers / D, containers / D}


@pytest.mark.parametrize("text", [b"", b"[", b"{}", b'[{"names": []}]', b"\xff"])
@pytest.mark.parametrize("which", range(3))
def test_records_that_cannot_be_read_leave_everything(place: Place, which: int, text: bytes) -> None:
    place.records("containers")[which].write_bytes(text)
    with pytest.raises(UnknownStorage, match=r"containers\.json"):
        left_over(place)


def test_of_a_driver_that_keeps_its_layers_elsewhere_nothing_is_left_over(tmp_path: Path) -> None:
    assert left_over(Place(str(tmp_path), str(tmp_path), "btrfs")) == []


def a_podman(place: Place, script: str) -> DefaultStore:
    program = Path(place.run_root, "podman")
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    return DefaultStore((str(program), "--transient-store"))


def test_containers_of_the_default_store_use_their_images(place: Place) -> None:
    told = {"graphRoot": place.graph_root, "runRoot": place.run_root, "graphDriverName": "overlay"}
    users = a_podman(place, f"[ $1 = --transient-store ] && echo '{json.dumps(told)}'").users()
    assert [(user.name, user.images) for user in users] == [
        ("name of a", ("image of a",)),
        ("name of b", ("image of b",)),
    ]


@pytest.mark.parametrize("script", ["exit 1", "echo {}", "echo no"])
def test_a_podman_that_does_not_say_where_it_is_leaves_the_images(place: Place, script: str) -> None:
    with pytest.raises(UnknownStorage, match="podman info"):
        a_podman(place, script).users()
