"""What a container's environment is made of, gathered when the container is made.

Mirrors determinePodSandboxIPs (pkg/kubelet/kuberuntime/kuberuntime_sandbox.go) as far as variables need it.
"""

from __future__ import annotations

from ipc.api import Container, Pod
from workers.downward import Whereabouts, asks_for_pod_ips
from workers.environment import EnvironmentSources
from workers.sync_context import SyncRun


async def environment_sources(run: SyncRun, pod: Pod, container: Container, sandbox_id: str) -> EnvironmentSources:
    """Podman is asked only for the address of a sandbox that this sync has made, and only when a variable tells it.

    Raises RuntimeCallError, SyncEnded.
    """
    context = run.context
    host_ips = (context.host_ip,) if context.host_ip else ()
    pod_ips: tuple[str, ...] = ()
    if asks_for_pod_ips(container):
        pod_ips = host_ips if pod.spec.host_network else await _sandbox_ips(run, sandbox_id)
    return EnvironmentSources(
        pod=pod,
        objects=run.request.objects,
        where=Whereabouts(node_name=context.node_name, host_ips=host_ips, pod_ips=pod_ips),
        node=context.node,
        volumes=run.volumes,
    )


async def _sandbox_ips(run: SyncRun, sandbox_id: str) -> tuple[str, ...]:
    seen = next((sandbox for sandbox in run.view.sandboxes if sandbox.id == sandbox_id), None)
    if seen is not None:
        return seen.ips
    sandbox = await run.read(run.runtime.inspect_pod, sandbox_id)
    infra = await run.read(run.runtime.inspect_container, sandbox.infra_id)
    return infra.ips
