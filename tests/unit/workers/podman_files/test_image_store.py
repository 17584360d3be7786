"""Where Podman's list of images lies, stamps of it, and what images occupy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from workers.podman_files.image_store import ImageStore, StoreUsage, list_of


def monitor(*arguments: str) -> list[str]:
    """Command line of a monitor that calls Podman with these."""
    called = [word for argument in arguments for word in ("--exit-command-arg", argument)]
    return ["/usr/bin/conmon", "-c", "id", "--exit-command", "/usr/bin/podman", *called]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("--root", "/r", "--runroot", "/rr", "--storage-driver", "overlay"), "/r/overlay-images/images.json"),
        (("--root", "/r", "--storage-driver", "vfs", "--storage-opt", "a=b"), "/r/vfs-images/images.json"),
        (("--root", "/r", "--storage-driver", "overlay", "--storage-opt", "overlay.imagestore=/more"), None),
        (("--root", "/r"), None),
        (("--storage-driver", "overlay"), None),
        ((), None),
    ],
)
def test_the_list_of_a_service_with_one_store_is_known(arguments: tuple[str, ...], found: str | None) -> None:
    assert list_of(monitor(*arguments)) == (Path(found) if found else None)


def test_a_stamp_is_that_of_the_list(tmp_path: Path) -> None:
    images, store = tmp_path / "overlay-images" / "images.json", ImageStore()
    assert store.stamp() is None
    store.learn(monitor("--root", str(tmp_path), "--storage-driver", "overlay"))
    store.learn(monitor("--root", "/another", "--storage-driver", "overlay"))
    assert store.stamp() is None, "it cannot be read"
    images.parent.mkdir()
    images.write_text('[{"id":"abc"}]')
    first = store.stamp()
    assert first is not None
    assert (store.stamp("abc"), store.stamp("def")) == (first, None)
    other = tmp_path / "other"
    other.write_text('[{"id":"abc"}]')
    other.rename(images)
    assert store.stamp() != first


LAYERS = [
    {"id": "base", "diff-size": 1000},
    {"id": "top", "parent": "base", "diff-size": 100},
    {"id": "other", "parent": "base", "diff-size": 10},
    {"id": "mapped", "parent": "top", "diff-size": 7},
    {"id": "a container's", "parent": "other"},
    {"id": "nobody's", "diff-size": 100_000},
]
IMAGES: list[dict[str, Any]] = [
    {"id": "one", "layer": "top", "mapped-layers": ["mapped"], "big-data-sizes": {"manifest": 2, "sha256:x": 3}},
    {"id": "two", "layer": "other"},
    {"id": "a list of manifests"},
]


def make_store(root: Path, images: Any = IMAGES, layers: Any = LAYERS) -> None:
    for name, content in (("images", images), ("layers", layers)):
        file = root / f"overlay-{name}" / f"{name}.json"
        file.parent.mkdir(exist_ok=True)
        written = file.with_suffix(".new")
        written.write_text(content if isinstance(content, str) else json.dumps(content))
        written.rename(file)


def test_layers_that_images_share_are_counted_once(tmp_path: Path) -> None:
    make_store(tmp_path)
    store = ImageStore()
    assert (store.usage(), store.root) == (None, "")
    store.learn_layer(str(tmp_path / "overlay" / "id" / "diff"))
    assert store.root == str(tmp_path)
    sizes = {"one": 1000 + 100 + 7 + 5, "two": 1010, "a list of manifests": 0}
    assert store.usage() == StoreUsage(
        total=1000 + 100 + 10 + 7 + 5,
        sizes=sizes,
        exclusive={"one": 100 + 7 + 5, "two": 10, "a list of manifests": 0},
    )
    assert store.usage() is store.usage(), "read once"
    make_store(tmp_path, IMAGES[1:])
    assert store.usage() == StoreUsage(
        total=1010,
        sizes={"two": 1010, "a list of manifests": 0},
        exclusive={"two": 1010, "a list of manifests": 0},
    )


@pytest.mark.parametrize("root", ["/r", "/a/b"])
def test_a_store_is_known_by_what_podman_says_of_it(root: str) -> None:
    store = ImageStore()
    store.learn_root(root, "vfs")
    assert (store.root, store.usage()) == (root, None)


@pytest.mark.parametrize("layer", ["", "diff", "/"])
def test_no_layer_tells_of_no_store(layer: str) -> None:
    store = ImageStore()
    store.learn_layer(layer)
    assert store.root == ""


@pytest.mark.parametrize("text", ["", "{}", "null", '[{"id":1}]', "[{}]", "[" * 10_000])
def test_files_of_another_shape_tell_nothing(tmp_path: Path, text: str) -> None:
    store = ImageStore()
    store.learn_root(str(tmp_path), "overlay")
    make_store(tmp_path, layers=text)
    assert store.usage() is None
    make_store(tmp_path, images=text)
    assert store.usage() is None


def test_layers_that_lie_on_each_other_in_a_circle_are_counted_once(tmp_path: Path) -> None:
    circle = [{"id": "a", "parent": "b", "diff-size": 1}, {"id": "b", "parent": "a", "diff-size": 2}]
    make_store(tmp_path, [{"id": "one", "layer": "a"}], circle)
    store = ImageStore()
    store.learn_root(str(tmp_path), "overlay")
    assert store.usage() == StoreUsage(total=3, sizes={"one": 3}, exclusive={"one": 3})
