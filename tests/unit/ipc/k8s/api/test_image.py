"""Image names, and the pull policy that follows from them."""

import pytest

from ipc.k8s.api.defaults import image_pull_policy
from ipc.k8s.api.image import MAX_IMAGE_CHARS, MAX_PATH_CHARS, ImageName, parse_image_name

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("image", "repository", "tag", "digest"),
    [
        ("busybox", "docker.io/library/busybox", "latest", ""),
        ("busybox:1.36", "docker.io/library/busybox", "1.36", ""),
        ("library/busybox", "docker.io/library/busybox", "latest", ""),
        ("docker.io/busybox", "docker.io/library/busybox", "latest", ""),
        ("index.docker.io/busybox", "docker.io/library/busybox", "latest", ""),
        ("user/tool", "docker.io/user/tool", "latest", ""),
        ("quay.io/user/tool:v1", "quay.io/user/tool", "v1", ""),
        ("localhost/tool", "localhost/tool", "latest", ""),
        ("localhost:5000/tool", "localhost:5000/tool", "latest", ""),
        ("registry:5000/a/b/c:x_1.2-3", "registry:5000/a/b/c", "x_1.2-3", ""),
        ("[2001:db8::1]:5000/tool", "[2001:db8::1]:5000/tool", "latest", ""),
        ("HOST/tool", "HOST/tool", "latest", ""),
        (f"busybox@{DIGEST}", "docker.io/library/busybox", "", DIGEST),
        (f"busybox:latest@{DIGEST}", "docker.io/library/busybox", "latest", DIGEST),
        ("a.b__c---d", "docker.io/library/a.b__c---d", "latest", ""),
    ],
)
def test_parts(image: str, repository: str, tag: str, digest: str) -> None:
    assert parse_image_name(image) == ImageName(repository, tag, digest)


@pytest.mark.parametrize(
    "image",
    [
        "",
        " busybox",
        "Busybox",
        "busybox:",
        "busybox:-x",
        "busybox@",
        "busybox@sha256:abc",
        "a//b",
        "-a",
        "a..b",
        "a:b:c",
        "ünicode",
        "0123456789abcdef" * 4,
        "a:" + "t" * 129,
        "a" * (MAX_PATH_CHARS + 1),
        "a/" * MAX_IMAGE_CHARS,
    ],
)
def test_no_image_name(image: str) -> None:
    assert parse_image_name(image) is None


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("localhost:5000/busybox", "Always"),
        ("busybox:1.36", "IfNotPresent"),
        (f"busybox@{DIGEST}", "IfNotPresent"),
        (f"busybox:latest@{DIGEST}", "Always"),
        ("Not An Image", "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_pull_policy(image: str, policy: str) -> None:
    assert image_pull_policy(image) == policy
