"""Rules of a node in a cluster, each broken on purpose: the simulation has to find out."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from supervisor.record.status_manager import StatusManager as Statuses
from supervisor.sources.api_source import ApiSource
from tests.sim.mutations import Mutation, replaced
from workers.cluster.node.node_sync import NodeSync
from workers.cluster.node.types import ClusterNode
from workers.cluster.objects import claim_volume
from workers.cluster.objects.object_watches import _Watch
from workers.cluster.objects.token_state import Issued
from workers.cluster.pods import status_manager
from workers.cluster.pods.known_pod import KnownPod
from workers.cluster.pods.pod_source import PodSource
from workers.cluster.pods.status_manager import StatusManager
from workers.cluster.pods.wanted_status import plain_status


def _two_at_a_time(self: StatusManager, uid: str, now: float, original: Any = StatusManager.due) -> Any:
    if (entry := self._entries.get(uid)) is not None:
        entry.is_busy = False
    return original(self, uid, now)


def _released_with_its_deletion(self: StatusManager, pod: KnownPod, original: Any = StatusManager.changed) -> None:
    original(self, pod)
    if pod.is_deleted:
        self.released(pod.uid)


def _takes_mirrors(self: PodSource, pod: KnownPod) -> None:
    self._known[pod.uid] = pod
    if pod.uid not in self._bringing and self._is_news(pod):
        self._bring(pod)


def _believes_half_a_list(self: ApiSource) -> None:
    self._listed, self._reading = type(self._listed)(), None
    self._changed.set()


def _always_observed(self: StatusManager, uid: str, changed: Any, now: float, *, is_static: bool = False) -> None:
    self.report_plain(uid, plain_status(changed.status, is_static=is_static), now)


def _believes_the_first(self: _Watch, item: ConfigMap | Secret, original: Any = _Watch.changed) -> None:
    if not self.is_read.is_set():
        original(self, item)


def _watches_for_ever(self: _Watch, item: ConfigMap | Secret, original: Any = _Watch.changed) -> None:
    original(self, msgspec.structs.replace(item, immutable=False))


def _says_the_secret(self: _Watch, item: ConfigMap | Secret, original: Any = _Watch.changed) -> None:
    original(self, item)
    logging.getLogger("workers").warning("%s", dict(item.data))


def _never(self: Issued, jitter_s: float) -> float:
    return math.inf


def _registers_again(self: NodeSync, item: ClusterNode, original: Any = NodeSync.deleted) -> None:
    original(self, item)
    self._must_register = True
    self._wake.set()


CLUSTER_MUTATIONS: Final[Mapping[str, Mutation]] = {
    "patch a status twice at a time": replaced(StatusManager, "due", _two_at_a_time),
    "take a deleted pod for one that has gone": replaced(StatusManager, "changed", _released_with_its_deletion),
    "run mirrors": replaced(PodSource, "_take", _takes_mirrors),
    "believe half a list": replaced(ApiSource, "begin", _believes_half_a_list),
    "tell what nobody has observed": replaced(StatusManager, "report", _always_observed),
    "begin an end anew": replaced(PodSource, "_is_over", lambda self, pod: False),
    "keep the first content": replaced(_Watch, "changed", _believes_the_first),
    "watch what is immutable": replaced(_Watch, "changed", _watches_for_ever),
    "log a Secret": replaced(_Watch, "changed", _says_the_secret),
    "mount what a claim names, whose ever it is": replaced(claim_volume, "_problems", lambda claim, volume: iter(())),
    "keep a token for ever": replaced(Issued, "renew_at", _never),
    "register a Node that was deleted": replaced(NodeSync, "deleted", _registers_again),
    "put a status right at once": replaced(status_manager, "RECONCILE_S", 0.0),
    "miss a restored backup": replaced(NodeSync, "_see_restore", lambda self: None),
    "count a deadline from the sandbox that is left": replaced(Statuses, "active_since", lambda self, state: ""),
}
