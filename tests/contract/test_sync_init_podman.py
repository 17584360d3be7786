"""Syncs of pods with init containers and sidecars on real Podman."""

from __future__ import annotations

import pytest

from ipc.k8s.api.v1.container import ContainerRestartRule, ContainerRestartRuleOnExitCodes
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import ContainerState
from tests.contract.podman_host import POLITE, PodmanHost, container, errors

pytestmark = pytest.mark.podman

RULE = ContainerRestartRule(
    action="RestartAllContainers", exit_codes=ContainerRestartRuleOnExitCodes(operator="In", values=(42,))
)
INIT = container("init", "echo prepared; exit 0")
SIDECAR = container("side", restart_policy="Always")
RUNNING, EXITED = ContainerState.RUNNING, ContainerState.EXITED


async def bring_up(host: PodmanHost, of: Pod, attempt: int = 0) -> None:
    """Each sync starts what is next; the end of an init container is what the next one waits for."""
    for expected, state in (("init", EXITED), ("side", RUNNING), ("main", RUNNING)):
        done = await host.sync(of)
        assert (done.error, errors(done)) == ("", [])
        assert (await host.until(expected, state)).attempt == attempt


async def test_init_container_sidecar_and_main_start_in_order_and_a_sidecar_is_replaced_alone(host: PodmanHost) -> None:
    of = host.pod(container("main"), init_containers=(INIT, SIDECAR))
    await bring_up(host, of)
    seen = await host.containers()
    assert seen["init"].finished_at <= seen["side"].started_at <= seen["main"].started_at
    assert (await host.sync(of)).changed is False

    other = container("side", f"echo other; {POLITE}", restart_policy="Always")
    changed = host.pod(container("main"), init_containers=(INIT, other))
    assert errors(await host.sync(changed)) == []
    after = await host.containers()
    assert {name for name in after if after[name].id != seen[name].id} == {"side"}
    assert (after["side"].state, after["side"].attempt) == (RUNNING, 1)


async def test_an_exit_restarts_all_containers_in_their_sandbox(host: PodmanHost) -> None:
    """The first run ends with the exit code that the rule names, as soon as it is asked to end."""
    script = "trap 'exit 42' TERM; while :; do sleep 0.1; done"
    main = container("main", script, restart_policy="Never", restart_policy_rules=(RULE,))
    of = host.pod(main, init_containers=(INIT, SIDECAR))
    await bring_up(host, of)
    before = await host.observe(host.uid)
    await host.context.services.runtime.kill_container((await host.containers())["main"].id, "SIGTERM")
    assert (await host.until("main", EXITED)).exit_code == 42

    done = await host.sync(of)
    assert (done.error, errors(done)) == ("", [])
    assert await host.containers() == {}
    await bring_up(host, of, attempt=1)
    after = await host.observe(host.uid)
    assert [s.id for s in after.sandboxes] == [s.id for s in before.sandboxes]
    assert all("prepared" in host.log("init", attempt) for attempt in (0, 1))
