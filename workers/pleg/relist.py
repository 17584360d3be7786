"""Evaluation of a full list of containers: which to inspect, to which pod each belongs, what is cheaper. Pure.

A list is cheap per container (0.5 ms of the service's time) and tells states and times in whole seconds; an inspect
(1.9 ms) tells the rest. So a container is inspected when it first shows, and again when the list shows another run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final

import msgspec

from ipc.link.eventloop.backoff import Backoff
from workers.containers.runs import is_same_run
from workers.kubecontainer.convert import sandbox_of
from workers.kubecontainer.labels import read_uid
from workers.kubecontainer.runtime import InspectedContainer, ListedContainer, ListedPod
from workers.pleg.touched import Doubts

CONTAINERS_PER_POD_OBSERVED: Final = 6
"""Listing so many containers costs the service as much as asking for one pod by its uid (2.7 ms; measured on 4.3.1
with 100 pods of 2 containers, where the list took 105 ms)."""

QUIET_SHARE: Final = 0.05
"""Part of the time that relists may take while nothing happens: a list of 20,000 containers takes Podman 12 s."""
RESYNC_SHARE: Final = 0.25
"""Part of the time that relists may take while a resync is due and none is requested."""
LISTING_PER_POD_S: Final = 0.01
"""How long a listing may take for each pod that it is to answer for: four times what asking for one takes. Podman walks
the containers of everybody for it, and only the agent's own are counted."""
LONG_LISTING_S: Final = 2.0
"""A listing that takes longer is no shortcut, whatever it saves."""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of ours that Podman had when it was asked."""

    started_at: float
    """Monotonic seconds, from before the first call."""
    took_s: float = 0.0
    containers: tuple[ListedContainer, ...]
    pods: tuple[ListedPod, ...]
    """Pods without an infra container in the list."""
    doubts: Mapping[str, Doubts] = msgspec.field(default_factory=dict)
    """By uid, from before the first call: the listing removes them."""


class Members(msgspec.Struct, frozen=True, kw_only=True):
    """Pods and containers of a listing that carry one uid."""

    pods: tuple[ListedPod, ...] = ()
    container_ids: tuple[str, ...] = ()


def without_pods(listing: Listing, uids: Set[str]) -> Listing:
    """The listing without the pods of these UIDs."""
    return msgspec.structs.replace(
        listing,
        containers=tuple(c for c in listing.containers if read_uid(c.labels) not in uids),
        pods=tuple(pod for pod in listing.pods if read_uid(pod.labels) not in uids),
    )


def to_inspect(containers: Iterable[ListedContainer], known: Mapping[str, InspectedContainer]) -> tuple[str, ...]:
    """Ids of the containers that must be inspected, given what is ``known`` by id from earlier inspects."""
    return tuple(c.id for c in containers if c.id not in known or not is_same_run(known[c.id], c))


def halfway_removed(containers: Iterable[ListedContainer]) -> tuple[ListedContainer, ...]:
    """Containers that Podman has begun to remove. It removes the layer first, and without one nothing can be
    inspected."""
    return tuple(container for container in containers if container.state == "removing")


def unlisted_pods(containers: Iterable[ListedContainer], empty_pods: Iterable[ListedPod]) -> frozenset[str]:
    """Ids of pods whose members are listed without their infra container: only an inspect of the pod shows them."""
    listed = tuple(containers)
    shown = {c.pod_id for c in listed if c.is_infra} | {pod.id for pod in empty_pods}
    return frozenset(c.pod_id for c in listed if c.pod_id) - shown


def members_by_uid(listing: Listing) -> dict[str, Members]:
    """The listing by pod UID, without what carries none."""
    pods: dict[str, dict[str, ListedPod]] = {}
    ids: dict[str, list[str]] = {}
    sandboxes = (sandbox_of(c) for c in listing.containers if c.is_infra)
    for pod in (*listing.pods, *sandboxes):
        pods.setdefault(read_uid(pod.labels), {})[pod.id] = pod
    for container in listing.containers:
        ids.setdefault(read_uid(container.labels), []).append(container.id)
    uids = (pods.keys() | ids.keys()) - {""}
    return {uid: Members(pods=tuple(pods.get(uid, {}).values()), container_ids=tuple(ids.get(uid, ()))) for uid in uids}


def relist_period_s(shortest_s: float, longest_s: float, quiet_relists: int, took_s: float) -> float:
    """Seconds from the begin of one relist, which took ``took_s``, to that of the next, after so many in a row that
    were due and found nothing which was not known already.

    Doubles from the shortest to the longest, and is as long as it has to be lest relists do nothing but list.
    """
    period_s = Backoff(shortest_s, max(shortest_s, longest_s)).pause_s(quiet_relists + 1)
    return max(period_s, took_s / (QUIET_SHARE if quiet_relists else RESYNC_SHARE))


def is_list_cheaper(pods_requested: int, containers: int, newest_took_s: float) -> bool:
    """Whether one full list costs the service less than listing each of these pods by its uid."""
    longest_s = min(LONG_LISTING_S, pods_requested * LISTING_PER_POD_S)
    return pods_requested * CONTAINERS_PER_POD_OBSERVED > containers and newest_took_s < longest_s
