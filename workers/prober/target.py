"""Which container a probe is about, and where it is reached: out of what was observed. Pure."""

from __future__ import annotations

from ipc.api import Container
from ipc.runtime import ContainerState, RuntimePodStatus
from workers.pod_network import PodNetwork
from workers.prober.state import Target
from workers.probes.outcome import ProbeTarget


def find_target(view: RuntimePodStatus, name: str) -> Target | None:
    """The newest container of that name, if it runs."""
    newest = view.newest(name)
    if newest is None or newest.state is not ContainerState.RUNNING:
        return None
    return Target(id=newest.id, started_at=newest.started_at)


def probe_target(view: RuntimePodStatus, container: Container, id: str) -> ProbeTarget:
    """For an attempt at that container."""
    made = view.newest(container.name)
    sandbox_id = made.sandbox_id if made is not None else ""
    sandbox = next((each for each in view.sandboxes if each.id == sandbox_id), None)
    ips = sandbox.ips if sandbox is not None else ()
    return ProbeTarget(container=container, container_id=id, network=PodNetwork(ip=ips[0] if ips else ""))
