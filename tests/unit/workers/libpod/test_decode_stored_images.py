"""Names of the node's images, from what Podman lists."""

from __future__ import annotations

import msgspec
import pytest

from workers.libpod.decode_images import decode_stored_images

ONE, TWO = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"


@pytest.mark.parametrize(
    ("names", "podman_tells", "tags", "digests"),
    [
        (("r.io/a:1",), (f"r.io/a@{ONE}",), ("r.io/a:1",), (f"r.io/a@{ONE}",)),
        ((f"r.io/a@{ONE}",), (f"r.io/a@{ONE}",), (), (f"r.io/a@{ONE}",)),
        (("localhost/a:1",), (f"localhost/a@{ONE}",), ("localhost/a:1",), ()),
        (("localhost:5000/a:1",), (f"localhost:5000/a@{ONE}",), ("localhost:5000/a:1",), (f"localhost:5000/a@{ONE}",)),
        (
            ("r.io/a:1", "localhost/b:2"),
            (f"r.io/a@{ONE}", f"localhost/b@{ONE}"),
            ("r.io/a:1", "localhost/b:2"),
            (f"r.io/a@{ONE}",),
        ),
        (
            (f"r.io/a@{ONE}", "r.io/b:1"),
            (f"r.io/a@{ONE}", f"r.io/a@{TWO}", f"r.io/b@{ONE}", f"r.io/b@{TWO}"),
            ("r.io/b:1",),
            (f"r.io/a@{ONE}", f"r.io/b@{ONE}", f"r.io/b@{TWO}"),
        ),
        (None, None, (), ()),
    ],
    ids=["tag", "digest alone", "local", "registry on this host", "local alias", "two repositories", "no name"],
)
def test_an_image_has_the_names_by_which_it_came(
    names: tuple[str, ...] | None, podman_tells: tuple[str, ...] | None, tags: tuple[str, ...], digests: tuple[str, ...]
) -> None:
    body = msgspec.json.encode([{"Id": "1", "RepoTags": names, "RepoDigests": podman_tells, "Size": 5}])
    (image,) = decode_stored_images(body)
    assert (image.repo_tags, image.repo_digests) == (tags, digests)
