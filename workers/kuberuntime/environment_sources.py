"""What a container's environment is made of, gathered when the container is made.

Mirrors determinePodSandboxIPs (pkg/kubelet/kuberuntime/kuberuntime_sandbox.go) as far as variables need it.
"""

from __future__ import annotations

from ipc.api.v1.pod import Pod
from workers.env.downward import Whereabouts
from workers.env.environment import EnvironmentSources
from workers.sync.context import SyncRun


def environment_sources(run: SyncRun, pod: Pod) -> EnvironmentSources:
    """Of every container of the pod."""
    context = run.context
    return EnvironmentSources(
        pod=pod,
        objects=run.request.objects,
        where=Whereabouts(node_name=context.node_name, host_ips=context.host_ips(), pod_ips=run.network.ips),
        node=context.node,
        volumes=run.volumes,
        unshare=context.unshare,
    )
