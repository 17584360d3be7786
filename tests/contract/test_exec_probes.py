"""Exec probes, on the fakes and on Podman."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.env import EnvVar, EnvVarSource, ObjectFieldSelector
from ipc.k8s.api.v1.probe import ExecAction, Probe
from tests.contract.target import DEADLINE_S, Target, container_spec, pod_spec, running
from tests.support.servers.local_servers import DeadDialer
from workers.kubecontainer.runtime import Runtime
from workers.podhttp.pod_network import PodNetwork
from workers.podman import PodmanRuntime
from workers.prober.attempt import attempt
from workers.prober.exec import expanded_command
from workers.prober.outcome import Answer, ProbeError, ProbeOutcome, ProbeTarget


async def probed(
    runtime: Runtime, id: str, command: Sequence[str], timeout_s: int = 20, env: tuple[EnvVar, ...] = ()
) -> ProbeOutcome:
    probe = Probe(exec=ExecAction(command=tuple(command)), timeout_seconds=timeout_s)
    target = ProbeTarget(container=Container(name="main", env=env), container_id=id, network=PodNetwork())
    return await attempt(probe, target, DeadDialer(), runtime)


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ("echo well", ProbeOutcome(Answer.SUCCESS, "well\n")),
        ("exit 0", ProbeOutcome(Answer.SUCCESS)),
        ("exit 1", ProbeOutcome(Answer.FAILURE)),
        ("echo ill; exit 255", ProbeOutcome(Answer.FAILURE, "ill\n")),
    ],
)
async def test_the_exit_code_decides(target: Target, script: str, outcome: ProbeOutcome) -> None:
    container = await running(target)
    assert await probed(target.runtime, container.id, ["sh", "-c", script]) == outcome


async def test_a_command_that_takes_too_long_is_a_failure(target: Target) -> None:
    container = await running(target)
    async with asyncio.timeout(DEADLINE_S):
        outcome = await probed(target.runtime, container.id, ["sleep", "1000"], timeout_s=1)
    assert outcome == ProbeOutcome(Answer.FAILURE, 'command timed out: "sleep 1000" timed out after 1s')


async def test_a_command_that_does_not_exist_says_nothing_about_the_container(target: Target) -> None:
    container = await running(target)
    with pytest.raises(ProbeError):
        await probed(target.runtime, container.id, ["/no/such/command"])


async def test_a_container_that_does_not_run_neither(target: Target) -> None:
    pod = await target.runtime.create_pod(pod_spec(target))
    created = await target.runtime.create_container(container_spec(target, pod))
    with pytest.raises(ProbeError):
        await probed(target.runtime, created, ["true"])
    with pytest.raises(ProbeError):
        await probed(target.runtime, "0" * 64, ["true"])


async def test_podman_is_away(tmp_path: Path) -> None:
    runtime = PodmanRuntime(str(tmp_path / "nobody.sock"), "one")
    with pytest.raises(ProbeError):
        await probed(runtime, "0" * 64, ["true"])
    await runtime.close()


async def test_variables_are_those_of_the_manifest(target: Target) -> None:
    container = await running(target)
    env = (EnvVar(name="WORD", value="hello"),)
    outcome = await probed(target.runtime, container.id, ["sh", "-c", "echo $(WORD)"], env=env)
    assert outcome == ProbeOutcome(Answer.SUCCESS, "hello\n")


def test_a_variable_from_elsewhere_counts_as_empty_and_values_are_not_expanded() -> None:
    field = EnvVarSource(field_ref=ObjectFieldSelector(field_path="metadata.name"))
    env = (
        EnvVar(name="A", value="1"),
        EnvVar(name="B", value="$(A)"),
        EnvVar(name="NAME", value_from=field),
        EnvVar(name="A", value="2"),
    )
    command = ["$(A)", "$(B)", "[$(NAME)]", "$(PATH)", "$$(A)"]
    assert expanded_command(command, Container(name="main", env=env)) == ["2", "$(A)", "[]", "$(PATH)", "$(A)"]
