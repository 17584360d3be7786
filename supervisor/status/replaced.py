"""Which containers have ended and start again because the manifest changed, whatever their policy says. Pure.

Upstream has no such thing: its API server forbids the edits that need another container. The workers decide that they
start (``workers/compute/regular_containers.py``); the status has to know it, or the pod would be taken for one that is
done.
"""

from __future__ import annotations

from ipc.api.v1.container import Container
from ipc.api.v1.pod import Pod
from ipc.kubecontainer.hashing import is_made_from, is_sandbox_made_from
from ipc.kubecontainer.pod_status import ContainerState, RuntimePodStatus, SandboxState


def replaced_containers(pod: Pod, observed: RuntimePodStatus, *, was_observed_before: bool) -> frozenset[str]:
    """Names of regular containers that ended and were made from another definition, or in another sandbox than wanted.

    A pod that has lost its sandbox replaces nothing: its policy alone decides. One whose sandbox was stopped because
    the manifest asks for another has not lost it; but to an agent that observes the pod for the first time it seems
    to be one that was done long ago and edited since, and what is done must not run again.
    """
    if not observed.sandboxes:
        return frozenset()
    newest = observed.sandboxes[0]
    if newest.state is not SandboxState.READY and not (was_observed_before and not is_sandbox_made_from(newest, pod)):
        return frozenset()
    return frozenset(container.name for container in pod.spec.containers if _is_replaced(pod, container, observed))


def _is_replaced(pod: Pod, container: Container, observed: RuntimePodStatus) -> bool:
    newest = observed.newest(container.name)
    if newest is None or newest.state is not ContainerState.EXITED:
        return False
    if not is_made_from(newest, pod.spec, container):
        return True
    own = next((sandbox for sandbox in observed.sandboxes if sandbox.id == newest.sandbox_id), None)
    return own is not None and not is_sandbox_made_from(own, pod)
