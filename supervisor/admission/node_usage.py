"""Resources and host ports that the pods of the node have together, kept as sums.

Holds state, no I/O. Terminating pods count until nothing of them is left, or until they are left out (`without`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.pod_requests import pod_requests
from supervisor.admission.host_ports import HostPort, host_ports


class _Taken(msgspec.Struct, frozen=True):
    """Resources and host ports of one pod."""

    pod: Pod
    requests: Mapping[str, int]
    """By resource, in the units of `ipc.k8s.podresources.pod_requests`."""
    ports: tuple[HostPort, ...]


class NodeUsage:
    """Number of pods, the sum of their requests, and the holders of host ports."""

    def __init__(self, pods: Iterable[Pod] = ()) -> None:
        self._taken: dict[str, _Taken] = {}
        self._total: Counter[str] = Counter()
        self._holders: dict[tuple[str, int], tuple[str, ...]] = {}
        """UIDs of those with a port of that number, on whatever address."""
        for pod in pods:
            self.put(pod)

    def __len__(self) -> int:
        return len(self._taken)

    def put(self, pod: Pod) -> None:
        """Count a pod by this manifest."""
        uid = pod.metadata.uid
        self.drop(uid)
        taken = self._taken[uid] = _Taken(pod, pod_requests(pod), tuple(host_ports(pod)))
        self._total.update(taken.requests)
        for number in {port.number for port in taken.ports}:
            self._holders[number] = (*self._holders.get(number, ()), uid)

    def drop(self, uid: str) -> None:
        """Nothing of it is left; one that is not known does no harm."""
        taken = self._taken.pop(uid, None)
        if taken is None:
            return
        self._total.subtract(taken.requests)
        for number in {port.number for port in taken.ports}:
            self._holders[number] = tuple(holder for holder in self._holders[number] if holder != uid)

    def without(self, uids: Iterable[str]) -> NodeUsage:
        """Usage of the other pods. Whoever asks while none of these is known is not given a copy."""
        known = self._taken.keys() & set(uids)
        if not known:
            return self
        others = NodeUsage()
        others._taken, others._total, others._holders = dict(self._taken), Counter(self._total), dict(self._holders)
        for uid in known:
            others.drop(uid)
        return others

    def requested(self, resource: str) -> int:
        """Requests of all pods, in the units of `ipc.k8s.podresources.pod_requests`."""
        return self._total[resource]

    def holder(self, wanted: HostPort) -> tuple[Pod, HostPort] | None:
        """Pod that holds that port, and how."""
        holders = (self._taken[uid] for uid in self._holders.get(wanted.number, ()))
        return next(
            ((taken.pod, port) for taken in holders for port in taken.ports if port.conflicts_with(wanted)), None
        )
