"""The stamp of Podman's images changes with each of them, whoever changes them."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.target import PodmanTarget, pod_spec, unique
from tests.support.podman_service import PodmanService, podman
from workers.kubecontainer.image_service import ImageStamp

pytestmark = pytest.mark.podman


@pytest.fixture
def name(podman_service: PodmanService, tmp_path: Path) -> Iterator[str]:
    """Name of an image that this test has made, and may give more tags: no other test uses it. Gone in the end."""
    made = f"localhost/{unique('stamp', PodmanTarget(podman_service))}"
    with tarfile.open(tmp_path / "root.tar", "w") as tar:
        tar.add(__file__, "test")
    podman("import", "--quiet", "--change", f"LABEL name={made}", str(tmp_path / "root.tar"), f"{made}:own")
    yield made
    podman("rmi", "--force", "--ignore", *(f"{made}:{tag}" for tag in ("own", "one", "two", "built")))


async def test_every_change_of_an_image_is_another_stamp(
    podman_service: PodmanService, tmp_path: Path, name: str
) -> None:
    target, pid_file = PodmanTarget(podman_service), tmp_path / "infra.pid"
    runtime = target.runtime
    seen: list[ImageStamp | None] = []

    def has_changed() -> bool:
        seen.append(runtime.image_stamp())
        return seen[-1] is not None and seen[-1] not in seen[:-1]

    try:
        assert not has_changed(), "no monitor has told yet where the list is"
        spec = pod_spec(target, infra_conmon_pid_file=str(pid_file))
        id = await runtime.create_pod(spec)
        await runtime.start_container(spec["infra_name"])
        runtime.look_at_infra(spec["infra_name"], id, pid_file, spec["labels"], host_network=False)
        assert has_changed()
        image = await runtime.inspect_image(f"{name}:own")
        assert image is not None
        assert runtime.image_stamp(image.id) is not None
        assert runtime.image_stamp("0" * 64) is None

        podman("tag", f"{name}:own", f"{name}:one")
        assert has_changed()
        podman("tag", f"{name}:own", f"{name}:two")
        assert has_changed()
        podman("untag", f"{name}:own", f"{name}:two")
        assert has_changed()
        (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY Dockerfile /\n")
        podman("build", "--quiet", "--tag", f"{name}:built", str(tmp_path))
        assert has_changed()
        podman("save", "--quiet", "--output", str(tmp_path / "saved.tar"), f"{name}:built")
        podman("rmi", f"{name}:built")
        assert has_changed()
        podman("load", "--quiet", "--input", str(tmp_path / "saved.tar"))
        assert has_changed()
        podman("push", "--quiet", f"{name}:built", f"dir:{tmp_path / 'pushed'}")
        podman("rmi", f"{name}:built")
        assert has_changed()
        pulled = podman("pull", "--quiet", f"dir:{tmp_path / 'pushed'}").strip()
        assert has_changed()
        podman("rmi", pulled)
        assert has_changed()
    finally:
        await target.clean()
