"""Images of the node; upstream's own cases are in tests/kubelet_tables."""

from __future__ import annotations

from workers.nodestatus.images import MAX_IMAGES, StoredImage, node_images


def test_the_largest_images_first() -> None:
    stored = [StoredImage(id=str(n), size=n, repo_tags=(f"x:{n}",), repo_digests=(f"x@{n}",)) for n in range(60)]
    found = node_images(stored)
    assert len(found) == MAX_IMAGES
    assert found[0].names == ("x@59", "x:59")
    assert found[-1].size_bytes == 10
