"""Seccomp filters of sandboxes and of containers, as the OCI runtime has compiled them."""

from __future__ import annotations

import base64
import itertools
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.config.containers_conf import named_profile
from tests.contract.target import PodmanTarget, container_spec, pod_spec, unique
from tests.support.podman_service import IMAGE, PodmanService, podman, running_service
from workers.kubecontainer.runtime import InspectedContainer
from workers.podman_files.seccomp_filters import ANNOTATION
from workers.specgen.seccomp import UNCONFINED

pytestmark = pytest.mark.podman

FILTERED: Final = "2"
"""Seccomp of /proc/PID/status: a filter."""
ALLOW_ALL: Final = bytes.fromhex("060000000000ff7f")
"""A filter that lets every call pass."""
_numbers: Final = itertools.count()


@pytest.fixture
async def target(podman_service: PodmanService, tmp_path: Path) -> AsyncIterator[PodmanTarget]:
    """A service that is the agent's own."""
    with running_service(tmp_path) as socket:
        made = PodmanTarget(
            PodmanService(socket, f"{podman_service.run_name}-seccomp-{next(_numbers)}"), is_own_service=True
        )
        yield made
        await made.clean()


@pytest.fixture
def profile() -> str:
    if not (found := named_profile(os.environ)):
        pytest.skip("Podman's default profile is in no file here")
    return found


@pytest.fixture
def own_filter(target: PodmanTarget, tmp_path: Path) -> Iterator[str]:
    """An image that carries a filter for its containers; gone in the end."""
    name = f"localhost/{unique('own-filter', target)}:latest"
    (tmp_path / "Containerfile").write_text(f"FROM {IMAGE}\n")
    annotation = f"{ANNOTATION}={base64.b64encode(ALLOW_ALL).decode()}"
    podman("build", "--quiet", "--pull=never", "--annotation", annotation, "--tag", name, str(tmp_path))
    yield name
    podman("rmi", "--force", "--ignore", name)


def bpf(container: InspectedContainer) -> Path:
    """The filter that the OCI runtime keeps for `exec`."""
    file = Path(os.environ["XDG_RUNTIME_DIR"], "crun", container.id, "seccomp.bpf")
    if not file.exists():
        pytest.skip("needs crun")
    return file


def seccomp(container: InspectedContainer) -> str:
    lines = Path(f"/proc/{container.pid}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("Seccomp:"))


class Pod:
    """A sandbox that runs, and containers in it that are made as a sync makes them."""

    def __init__(self, target: PodmanTarget) -> None:
        self.target = target
        self._spec = pod_spec(target)
        self._spec["infra_name"] = unique("infra", target)
        self._id = ""

    async def start(self, pid_file: Path) -> InspectedContainer:
        runtime = self.target.runtime
        self._id = await runtime.create_pod({**self._spec, "infra_conmon_pid_file": str(pid_file)})
        name, labels = self._spec["infra_name"], self._spec["labels"]
        await runtime.start_container(name)
        assert runtime.look_at_infra(name, self._id, pid_file, labels, host_network=False)
        return await runtime.inspect_container(name)

    async def container(self, **more: Any) -> tuple[InspectedContainer, str]:
        """A container that runs and was looked at, and the filter that it was given."""
        runtime = self.target.runtime
        spec = container_spec(self.target, self._id, **more)
        image = await runtime.inspect_image(spec["image"])
        assert image is not None
        body = runtime.with_filter(spec, image)
        id = await runtime.create_container(body)
        await runtime.start_container(id)
        runtime.look_at_container(id, spec, image)
        return await runtime.inspect_container(id), body.get("annotations", {}).get(ANNOTATION, "")


async def test_a_filter_is_compiled_once_and_the_same_for_all(
    target: PodmanTarget, profile: str, tmp_path: Path
) -> None:
    pod = Pod(target)
    await pod.start(tmp_path / "infra.pid")
    first, given = await pod.container(seccomp_profile_path=profile)
    assert not given
    second, given = await pod.container(seccomp_profile_path=profile)
    assert given or bpf(first).stat().st_nlink > 1, "this runtime has no cache of its own"
    assert bpf(second).read_bytes() == bpf(first).read_bytes()
    assert seccomp(first) == seccomp(second) == FILTERED
    other, given = await pod.container(seccomp_profile_path=profile, cap_add=["SYS_ADMIN"])
    assert not given
    assert bpf(other).read_bytes() != bpf(first).read_bytes(), "rules of the profile ask for capabilities"
    free, given = await pod.container(seccomp_profile_path=UNCONFINED)
    assert not given
    assert seccomp(free) != FILTERED


async def test_a_sandboxs_filter_is_shorter_and_a_containers_as_podman_makes_it(
    target: PodmanTarget, profile: str, tmp_path: Path
) -> None:
    pod = Pod(target)
    infra = await pod.start(tmp_path / "infra.pid")
    member, _ = await pod.container(seccomp_profile_path=profile)
    assert seccomp(infra) == FILTERED
    assert bpf(infra).stat().st_size < bpf(member).stat().st_size
    name = unique("by-podman", target)
    podman("run", "--detach", "--name", name, target.image, "sleep", "100")
    try:
        id = podman("inspect", "--format", "{{.Id}}", name).strip()
        assert bpf(await target.runtime.inspect_container(id)).read_bytes() == bpf(member).read_bytes()
    finally:
        podman("rm", "--force", "--time", "0", name)


@pytest.mark.slow
async def test_a_filter_of_an_image_is_no_compiled_one(
    target: PodmanTarget, profile: str, own_filter: str, tmp_path: Path
) -> None:
    pod = Pod(target)
    await pod.start(tmp_path / "infra.pid")
    first, _ = await pod.container(image=own_filter, seccomp_profile_path=profile)
    if bpf(first).read_bytes() != ALLOW_ALL:
        pytest.skip("this Podman takes no annotations from an image")
    _, given = await pod.container(image=own_filter, seccomp_profile_path=profile)
    assert not given
    info = await target.runtime.inspect_image(own_filter)
    assert info is not None
    assert info.directs_runtime, "no sync makes a container of it"
