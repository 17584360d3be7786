"""Facts that security contexts rely on: how Podman takes users, groups, capabilities, sysctls and user namespaces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ipc.k8s.api.v1.security import Capabilities, PodSecurityContext
from tests.contract.target import DEADLINE_S, FOREVER, PodmanTarget, container_spec, eventually, pod_spec
from tests.support import pods
from tests.support.podman_service import PodmanService
from workers.kubecontainer.runtime import InspectedContainer, RuntimeCallError
from workers.specgen.security_context import KNOWN, capability_changes, sandbox_security
from workers.userns.id_ranges import IdRange, IdRanges, merged

pytestmark = pytest.mark.podman

OUT_OF_REACH = 4_000_000
"""An id that no rootless user has."""


@pytest.fixture
async def target(podman_service: PodmanService) -> AsyncIterator[PodmanTarget]:
    made = PodmanTarget(podman_service)
    yield made
    await made.clean()


async def started(target: PodmanTarget, pod: str, **spec: Any) -> InspectedContainer:
    id = await target.runtime.create_container(container_spec(target, pod, FOREVER, **spec))
    await target.runtime.start_container(id)
    return await target.runtime.inspect_container(id)


def status(container: InspectedContainer) -> dict[str, list[str]]:
    lines = Path(f"/proc/{container.pid}/status").read_text().splitlines()
    return {name: value.split() for name, _, value in (line.partition(":") for line in lines)}


def maps(container: InspectedContainer) -> IdRanges:
    """As the kernel has them."""
    kinds = (Path(f"/proc/{container.pid}/{kind}_map").read_text().splitlines() for kind in ("uid", "gid"))
    users, groups = ([list(map(int, line.split())) for line in lines] for lines in kinds)
    return IdRanges(
        users=merged(IdRange(first, count) for first, _, count in users),
        groups=merged(IdRange(first, count) for first, _, count in groups),
    )


def owner(container: InspectedContainer) -> int:
    """User for whom the host takes the container's process."""
    return Path(f"/proc/{container.pid}").stat().st_uid


async def test_the_ids_that_there_are(target: PodmanTarget) -> None:
    pod = await target.runtime.create_pod(pod_spec(target))
    assert await target.runtime.id_ranges() == maps(await started(target, pod))


@pytest.mark.parametrize(
    "spec", [{"user": f"{OUT_OF_REACH}"}, {"user": f"0:{OUT_OF_REACH}"}, {"groups": [f"{OUT_OF_REACH}"]}]
)
async def test_with_other_ids_a_container_does_not_start_and_its_words_do_not_help(
    target: PodmanTarget, spec: dict[str, Any]
) -> None:
    pod = await target.runtime.create_pod(pod_spec(target))
    with pytest.raises(RuntimeCallError) as caught:
        await started(target, pod, **spec)
    assert "setresuid" in caught.value.message or "setgroups" in caught.value.message


def own_ids(low: int = 0) -> dict[str, Any]:
    context = PodSecurityContext(run_as_user=low)
    return sandbox_security(pods.pod("main", host_users=False, security_context=context))


async def test_pods_with_ids_of_their_own_share_none(target: PodmanTarget) -> None:
    made = [await target.runtime.create_pod(pod_spec(target, **own_ids(low))) for low in (0, 2999)]
    first, beside, other = [await started(target, pod) for pod in (made[0], made[0], made[1])]
    assert maps(first) == maps(beside) == IdRanges(users=(IdRange(0, 2048),), groups=(IdRange(0, 2048),))
    assert maps(other).users == (IdRange(0, 3000),)
    owners = {owner(container) for container in (first, beside, other)}
    assert len(owners) == 2, "root of each pod is another user of the host"


async def test_a_container_with_ids_of_its_own_runs_commands_and_ends(target: PodmanTarget) -> None:
    """In 4.3 its bundle belongs to its own root: neither how it ended nor how a command is begun can be read there."""
    pod = await target.runtime.create_pod(pod_spec(target, **own_ids()))
    container = await started(target, pod)
    assert (await target.runtime.exec_container(container.id, ("id", "-u"), DEADLINE_S)).output == b"0\n"
    await target.runtime.kill_container(container.id, "KILL")

    async def look() -> InspectedContainer:
        recorded = target.runtime.recorded_end(container.process)
        assert recorded is None or recorded.exit_code == 137
        return await target.runtime.inspect_container(container.id)

    ended = await eventually(look, lambda found: found.state in ("stopped", "exited"))
    assert ended.exit_code == 137


async def test_when_there_are_no_more_ids_podman_says_so(target: PodmanTarget) -> None:
    with pytest.raises(RuntimeCallError, match=r"(?i)not (find )?enough (available|unused) IDs"):
        await target.runtime.create_pod(pod_spec(target, **own_ids(OUT_OF_REACH)))


async def test_all_capabilities_but_some_as_a_user(target: PodmanTarget) -> None:
    """Spelled out, because ALL gives a user also what is dropped, and then the container does not start."""
    pod = await target.runtime.create_pod(pod_spec(target))
    changes = capability_changes(Capabilities(add=("ALL",), drop=("SYS_ADMIN",)))
    container = await started(target, pod, user="1000", **changes)
    everything = await started(target, pod, cap_add=["ALL"])
    had, has = (int(status(one)["CapBnd"][0], 16) for one in (everything, container))
    assert had & ~has == 1 << 21
    assert len(KNOWN) == had.bit_count(), "the kernel has others than those that are known here"
    with pytest.raises(RuntimeCallError, match="capset"):
        await started(target, pod, user="1000", cap_add=["ALL"], cap_drop=["SYS_ADMIN"])


async def test_what_a_sandbox_is_made_with_is_not_its_members(target: PodmanTarget) -> None:
    """But for namespaces: its parameters of the network are theirs."""
    sysctls = {"net.ipv4.ip_unprivileged_port_start": "99"}
    pod = await target.runtime.create_pod(pod_spec(target, sysctl=sysctls))
    container = await started(target, pod, seccomp_profile_path="unconfined")
    assert status(container)["Seccomp"] == ["0"]
    shown = await target.runtime.exec_container(
        container.id, ("cat", "/proc/sys/net/ipv4/ip_unprivileged_port_start"), DEADLINE_S
    )
    assert shown.output == b"99\n"
