"""Where Podman's list of images lies, and stamps of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.libpod.image_store import ImageStore, list_of


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
