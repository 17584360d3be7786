"""Commands in containers as only Podman can show them: what they leave, and what becomes of what is given up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psutil
import pytest

from tests.contract.target import DEADLINE_S, PodmanTarget, container_spec, pod_spec
from tests.podman_service import PodmanService, wait_until
from workers.runtime import MAX_EXEC_OUTPUT_BYTES, ErrorKind, InspectedContainer, RuntimeCallError

pytestmark = pytest.mark.podman


@pytest.fixture
async def target(podman_service: PodmanService) -> AsyncIterator[PodmanTarget]:
    made = PodmanTarget(podman_service)
    yield made
    await made.clean()


async def started(target: PodmanTarget, user: str = "0") -> InspectedContainer:
    pod = await target.runtime.create_pod(pod_spec(target))
    id = await target.runtime.create_container(container_spec(target, pod, user=user))
    await target.runtime.start_container(id)
    return await target.runtime.inspect_container(id)


def processes(word: str) -> list[psutil.Process]:
    """Whose last argument is that word."""
    return [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] and p.info["cmdline"][-1] == word]


def sleeping(word: str) -> int:
    """How many sleep that long; a monitor has the word on its command line, too."""
    return sum(p.name() == "sleep" for p in processes(word))


@pytest.mark.parametrize(("user", "word"), [("0", "1234501"), ("1000", "1234502")])
async def test_a_command_that_takes_too_long_is_killed_also_as_another_user(
    target: PodmanTarget, user: str, word: str
) -> None:
    container = await started(target, user)
    with pytest.raises(RuntimeCallError) as caught:
        await target.runtime.exec_container(container.id, ["sleep", word], 1.0)
    assert caught.value.kind is ErrorKind.TIMEOUT
    await asyncio.to_thread(wait_until, lambda: not sleeping(word), DEADLINE_S)


async def test_a_command_that_closes_its_output_is_waited_for(target: PodmanTarget) -> None:
    container = await started(target)
    command = ["sh", "-c", "exec >/dev/null 2>&1; sleep 2; exit 5"]
    assert (await target.runtime.exec_container(container.id, command, DEADLINE_S)).exit_code == 5


async def test_only_the_head_of_an_output_is_kept(target: PodmanTarget) -> None:
    container = await started(target)
    command = ["sh", "-c", "head -c 300000 /dev/zero; echo the end >&2; exit 3"]
    result = await target.runtime.exec_container(container.id, command, DEADLINE_S)
    assert (result.exit_code, result.output, result.limited) == (3, bytes(MAX_EXEC_OUTPUT_BYTES), True)


async def test_both_streams_are_kept(target: PodmanTarget) -> None:
    container = await started(target)
    command = ["sh", "-c", "echo out; echo err >&2"]
    result = await target.runtime.exec_container(container.id, command, DEADLINE_S)
    assert sorted(result.output.split()) == [b"err", b"out"]


async def test_many_commands_run_at_once_and_hinder_no_other_call(target: PodmanTarget) -> None:
    container = await started(target)
    hanging = [
        asyncio.ensure_future(target.runtime.exec_container(container.id, ["sleep", "1234503"], DEADLINE_S))
        for _ in range(12)
    ]
    await asyncio.to_thread(wait_until, lambda: sleeping("1234503") == len(hanging), DEADLINE_S)
    async with asyncio.timeout(DEADLINE_S):
        assert (await target.runtime.exec_container(container.id, ["true"], DEADLINE_S)).exit_code == 0
        await target.runtime.kill_container(container.id, "KILL")
        assert {result.exit_code for result in await asyncio.gather(*hanging)} == {137}
