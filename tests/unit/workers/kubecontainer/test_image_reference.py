from __future__ import annotations

import pytest

from workers.kubecontainer.image_reference import MAX_NAME_CHARS, image_digest_reference, parse_image_reference

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("written", "complete"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("busybox:1.36", "docker.io/library/busybox:1.36"),
        ("grafana/grafana", "docker.io/grafana/grafana:latest"),
        ("docker.io/busybox", "docker.io/library/busybox:latest"),
        ("index.docker.io/busybox", "docker.io/library/busybox:latest"),
        ("quay.io/a/b/c:v1", "quay.io/a/b/c:v1"),
        ("localhost/demo", "localhost/demo:latest"),
        ("localhost/demo:latest", "localhost/demo:latest"),
        ("localhost:5000/demo", "localhost:5000/demo:latest"),
        ("registry:5000/demo:1", "registry:5000/demo:1"),
        ("Registry/demo", "Registry/demo:latest"),
        ("[::1]:5000/demo", "[::1]:5000/demo:latest"),
        (f"quay.io/a@{DIGEST}", f"quay.io/a@{DIGEST}"),
        (f"quay.io/a:v1@{DIGEST}", f"quay.io/a:v1@{DIGEST}"),
        ("a/b__c.d-e--f", "docker.io/a/b__c.d-e--f:latest"),
    ],
)
def test_a_reference_is_completed(written: str, complete: str) -> None:
    assert str(parse_image_reference(written)) == complete
    assert str(parse_image_reference(complete)) == complete


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        ":latest",
        "@" + DIGEST,
        "a:",
        "a@",
        "a:b:c",
        "a:tag with space",
        "a@sha256:abc",
        f"a@{DIGEST}@{DIGEST}",
        "UPPER",
        "quay.io/UPPER",
        "quay.io/",
        "/a",
        "a//b",
        "a/-b",
        "a_.b",
        "quay.io/../etc",
        "-bad.io/a",
        "f" * 64,
        "a:" + "t" * 129,
        "quay.io/" + "a" * MAX_NAME_CHARS,
        "a\n",
        "ä",
    ],
)
def test_what_is_no_reference_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_image_reference(written)


@pytest.mark.parametrize(
    ("written", "local"),
    [("localhost/a", True), ("localhost:5000/a", False), ("a", False), ("quay.io/localhost/a", False)],
)
def test_only_localhost_without_a_port_is_local(written: str, local: bool) -> None:
    assert parse_image_reference(written).is_local() is local


@pytest.mark.parametrize(
    ("image", "digest", "shown"),
    [
        ("docker.io/library/nginx:1.27", "sha256:ab", "docker.io/library/nginx@sha256:ab"),
        ("127.0.0.1:5000/a", "sha256:ab", "127.0.0.1:5000/a@sha256:ab"),
        (f"quay.io/a:1@sha256:{'c' * 64}", "sha256:ab", "quay.io/a@sha256:ab"),
        ("localhost/a:1", "", ""),
        ("f" * 64, "sha256:ab", ""),
        ("", "sha256:ab", ""),
    ],
)
def test_the_image_id_of_a_status_names_its_digest(image: str, digest: str, shown: str) -> None:
    assert image_digest_reference(image, digest) == shown
