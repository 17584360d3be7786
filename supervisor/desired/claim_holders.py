"""Pods that hold claims of ReadWriteOncePod, which one pod at a time may use (pkg/kubelet/volumemanager/cache,
IsVolumeMountedElsewhere)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from ipc.k8s.api.annotations import is_api_pod
from ipc.k8s.podobjects.pod_claims import claim_name
from ipc.link.messages.pod_worker import WorkType
from supervisor.podcontrol.tracking import PodTracking
from supervisor.pods.cache import PodCache
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable


class HeldClaim(NamedTuple):
    """A claim, of a document or of the cluster: those of one name are two."""

    is_of_cluster: bool
    namespace: str
    name: str


class ClaimHolders(msgspec.Struct, eq=False):
    """UIDs of the pods that hold claims."""

    _pod_table: PodTable
    _cache: PodCache
    _tracking: PodTracking
    _holders: dict[HeldClaim, str] = {}

    def holds(self, state: PodRecord, namespace: str, name: str) -> bool:
        """Whether the pod has the claim for itself: it has asked first, or ran before the agent began."""
        assert state.pod is not None
        claim = HeldClaim(is_api_pod(state.pod), namespace, name)
        if not self._uses(self._holders.get(claim, ""), claim):
            running = (user.uid for user in self._users(claim) if self._cache.get(user.uid).is_running())
            self._holders[claim] = next(running, state.uid)
        return self._holders[claim] == state.uid

    def let_go(self) -> None:
        """Have the pods synced that wait for a claim whose holder has let go."""
        for claim, uid in list(self._holders.items()):
            if not self._uses(uid, claim):
                del self._holders[claim]
                for state in self._users(claim):
                    self._tracking.resync(state)

    def _uses(self, uid: str, claim: HeldClaim) -> bool:
        return any(state.uid == uid for state in self._users(claim)) if uid else False

    def _users(self, claim: HeldClaim) -> Iterator[PodRecord]:
        """Pods that refer to the claim and of which something may run."""
        return (
            state
            for state in self._pod_table
            if (pod := state.pod) is not None
            and state.lifecycle.phase is not WorkType.TERMINATED
            and (is_api_pod(pod), pod.metadata.namespace) == (claim.is_of_cluster, claim.namespace)
            and any(claim_name(pod, volume) == claim.name for volume in pod.spec.volumes)
        )
