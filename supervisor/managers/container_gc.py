"""Dead containers beyond the node's maximum, and directories without a pod: when and which are removed.

Mirrors the kubelet's container garbage collection (pkg/kubelet/kubelet.go, StartGarbageCollection). What one pod's own
containers may keep is decided in each of its syncs; here it is about the sum of them, and about directories without a
pod.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from ipc.k8s.kubecontainer.container_gc import GcPolicy, PodStates, evict_containers, newest_ids
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.link.eventloop.tasks import note_failure
from ipc.link.messages import event_reasons
from ipc.link.messages.base import EventReport, node_event
from ipc.link.messages.node_worker import CollectLogs
from ipc.link.messages.pod_worker import SyncAction, SyncDone

CONTAINER_GC_PERIOD_S: Final = 60.0
"""pkg/kubelet/kubelet.go, ContainerGCPeriod."""
_REMOVED: Final = {SyncAction.REMOVE_CONTAINER: "dead container", SyncAction.REMOVE_SANDBOX: "dead sandbox"}


class ContainerGc:
    """Due time of the next collection on the whole node."""

    def __init__(self) -> None:
        self._due_at = 0.0
        """Monotonic seconds."""

    def take_due(self, now_mono: float) -> bool:
        """True once in every period."""
        if now_mono < self._due_at:
            return False
        self._due_at = now_mono + CONTAINER_GC_PERIOD_S
        return True


ALL_DEAD: Final = GcPolicy(max_per_pod_container=0, max_containers=0)
"""Policy by which no dead container stays but those that are spared anyway (DeleteAllUnusedContainers)."""


def dead_beyond_maximum(
    views: Mapping[str, RuntimePodStatus],
    wanted: Collection[str],
    policy: GcPolicy,
    now_wall: float,
) -> dict[str, tuple[str, ...]]:
    """UID -> ids of dead containers that have to go, of the wanted pods that have some. None without a maximum for the
    node. To be asked when all sources are known.

    Pods that are not wanted are on their way out with all they have: their containers do not count. Of a wanted one the
    newest container of each name stays in any case (`ipc.k8s.kubecontainer.container_gc`).
    """
    if policy.max_containers < 0:
        return {}
    pods = {uid: view.containers for uid, view in views.items()}
    spared = frozenset().union(*(newest_ids(pods[uid]) for uid in wanted if uid in pods))
    states = PodStates(deleted=pods.keys() - set(wanted))
    ids = evict_containers(pods, states, policy, now_wall, all_sources_ready=True, spared=spared)
    removed = set(ids)
    found = {uid: tuple(c.id for c in pods[uid] if c.id in removed) for uid in wanted if uid in pods}
    return {uid: ids for uid, ids in found.items() if ids}


def dead_of_each(
    views: Mapping[str, RuntimePodStatus],
    wanted: Collection[str],
    policy: GcPolicy,
    now_wall: float,
) -> tuple[dict[str, tuple[str, ...]], dict[str, Exception]]:
    """`dead_beyond_maximum`, and by UID the unexpected errors of pods at which that fails: theirs stay, and the others'
    are counted without them."""
    try:
        return dead_beyond_maximum(views, wanted, policy, now_wall), {}
    except Exception as error:
        whole = error
    faults: dict[str, Exception] = {}
    for uid, view in views.items():
        try:
            dead_beyond_maximum({uid: view}, wanted, policy, now_wall)
        except Exception as error:
            faults[uid] = error
    if not faults:
        return {}, {"": whole}
    sound = {uid: view for uid, view in views.items() if uid not in faults}
    return dead_beyond_maximum(sound, wanted, policy, now_wall), faults


def collection_failures(node_name: str, faults: Mapping[str, Exception]) -> list[EventReport]:
    """The errors of `dead_of_each`, as events of the node; logged, too."""
    for uid, error in faults.items():
        note_failure(f"dead containers of pod {uid or '(unknown)'}", error)
    return [
        node_event(
            node_name,
            event_reasons.CONTAINER_GC_FAILED,
            f"cannot look for dead containers of pod {uid or '(unknown)'}: unexpected {type(error).__name__}",
        )
        for uid, error in faults.items()
    ]


def collect_logs(known: Iterable[str], views: Mapping[str, RuntimePodStatus], now_wall: float) -> CollectLogs:
    """Message to remove directories; those of every pod that is known or of which anything exists stay."""
    existing = (uid for uid, view in views.items() if not view.is_empty())
    return CollectLogs(uids=tuple(sorted({*known, *existing})), listed_at=now_wall)


def removal_failures(node_name: str, pod: str, done: SyncDone) -> list[EventReport]:
    """Removals that failed, as events of the node, to which all collection belongs. ``pod``: namespace and name."""
    failed = (result for result in done.results if result.error and result.action in _REMOVED)
    return [
        node_event(
            node_name,
            event_reasons.CONTAINER_GC_FAILED,
            f"cannot remove {_REMOVED[result.action]} {result.target} of pod {pod}: {result.message}",
        )
        for result in failed
    ]
