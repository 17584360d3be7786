"""Looks at the runtime: one pod by its uid, or everything at once. Remembers only what saves calls.

One pod costs the service 2.7 ms for its sandboxes and 1.9 ms for each container that has to be inspected; everything
costs 0.5 ms per container and as many inspects (measured on 4.3.1 with 200 containers; see also `workers.relist`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Set

import msgspec

from ipc.clock import Clock
from ipc.runtime import ContainerState, RuntimePodStatus
from workers import labels
from workers.exit_watch import ExitWatch
from workers.inspected import InspectedContainers
from workers.observe import container_state, is_of, pod_status
from workers.relist import Listing, members_by_uid, to_inspect, unlisted_pods
from workers.runtime import ErrorKind, ListedPod, Runtime, RuntimeCallError
from workers.start_error import with_start_errors
from workers.termination_message import read_termination_message, with_termination_messages


class Relisting(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of ours, as it was after ``started_at`` (monotonic seconds)."""

    started_at: float
    statuses: Mapping[str, RuntimePodStatus]
    """By uid; what is neither here nor among the failures does not exist."""
    failures: Mapping[str, RuntimeCallError]
    """By uid: pods that exist and could not be looked at."""


class Observer:
    """The eyes of the node worker. Looks at different pods may overlap; a relist excludes every other look."""

    def __init__(
        self,
        runtime: Runtime,
        clock: Clock,
        *,
        instance: str,
        pod_logs_dir: str,
        pods_dir: str,
        on_exit: Callable[[str], None],
    ) -> None:
        """``on_exit`` gets the uid of a pod of which a process has just ended."""
        self._runtime = runtime
        self._clock = clock
        self._instance = instance
        self._pod_logs_dir = pod_logs_dir
        self._pods_dir = pods_dir
        self._exits = ExitWatch(runtime.open_process, on_exit)
        self._inspected = InspectedContainers()
        self._messages: dict[str, str] = {}
        """What those that have ended had to say, by id: read once, after each inspect."""
        self._strays: dict[str, tuple[str, ...]] = {}

    @property
    def containers(self) -> int:
        """How many are known, infra containers included."""
        return len(self._inspected)

    async def observe(self, uid: str) -> RuntimePodStatus:
        """One pod, cheaply. Raises RuntimeCallError.

        Sees every sandbox that carries the uid, new ones too, with their members. Containers outside of any sandbox
        are found by a relist first and followed from then on.
        """
        started_at = self._clock.now().mono
        pods = await self._runtime.list_pods(uid)
        members = {id: state for pod in pods for id, state in pod.containers}
        strays = dict.fromkeys(self._strays.get(uid, ()), "")
        shown = {**strays, **members}
        failures = await self._inspect([id for id, state in shown.items() if not self._is_settled(id, state)])
        if failures:
            raise next(iter(failures.values()))
        self._forget(self._inspected.of_pod(uid) - shown.keys())
        return self._status(uid, pods, shown, started_at)

    async def relist(self) -> Relisting:
        """Everything. Raises RuntimeCallError when a list itself fails."""
        listing = await self._list()
        failures = await self._inspect(to_inspect(listing.containers, self._inspected))
        ids = {container.id for container in listing.containers}
        self._forget(self._inspected.keys() - ids)
        self._exits.retain(ids)
        self._strays = _strays(listing)
        statuses: dict[str, RuntimePodStatus] = {}
        pod_failures: dict[str, RuntimeCallError] = {}
        for uid, members in members_by_uid(listing).items():
            failed = failures.keys() & set(members.container_ids)
            try:
                if failed:
                    raise failures[min(failed)]
                statuses[uid] = self._status(uid, members.pods, members.container_ids, listing.started_at)
            except RuntimeCallError as error:
                pod_failures[uid] = error
        return Relisting(started_at=listing.started_at, statuses=statuses, failures=pod_failures)

    def close(self) -> None:
        """Watch nothing any more."""
        self._exits.close()

    async def _list(self) -> Listing:
        started_at = self._clock.now().mono
        containers, empty = await asyncio.gather(self._runtime.list_containers(), self._runtime.list_empty_pods())
        unlisted = [await self._pod(id) for id in sorted(unlisted_pods(containers, empty))]
        pods = (*empty, *(pod for pod in unlisted if pod is not None))
        return Listing(started_at=started_at, containers=containers, pods=pods)

    async def _pod(self, id: str) -> ListedPod | None:
        try:
            found = await self._runtime.inspect_pod(id)
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return None
        return msgspec.convert(found, ListedPod, from_attributes=True)

    def _is_settled(self, id: str, state: str) -> bool:
        """Whether what is known of a container in that state needs no second inspect."""
        known = self._inspected.get(id)
        if known is None or known.state != state:
            return False
        return state == "exited" or (state == "running" and self._exits.is_running(id, known.pid))

    async def _inspect(self, ids: Iterable[str]) -> dict[str, RuntimeCallError]:
        """Renew what is known of these containers; the errors by id. What is gone is forgotten, which is no error."""
        wanted = list(ids)
        errors = await asyncio.gather(*(self._inspect_one(id) for id in wanted))
        return {id: error for id, error in zip(wanted, errors, strict=True) if error is not None}

    async def _inspect_one(self, id: str) -> RuntimeCallError | None:
        try:
            found = await self._runtime.inspect_container(id)
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                return error
            self._forget({id})
            return None
        self._inspected.put(found)
        uid = found.labels.get(labels.POD_UID, "")
        ours, state = is_of(found.labels, self._instance, uid), container_state(found.state)
        if ours and found.state == "running":
            self._exits.watch(id, found.pid, uid)
        else:
            self._exits.forget(id)
        if ours and state is ContainerState.EXITED and not found.is_infra:
            self._messages[id] = read_termination_message(found, self._pods_dir, self._pod_logs_dir)
        return None

    def _forget(self, ids: Set[str]) -> None:
        for id in ids:
            self._inspected.forget(id)
            self._messages.pop(id, None)
            self._exits.forget(id)

    def _status(self, uid: str, pods: Iterable[ListedPod], ids: Iterable[str], started_at: float) -> RuntimePodStatus:
        """What is known of these pods and containers, and what Podman forgets. Raises RuntimeCallError."""
        found = [self._inspected[id] for id in ids if id in self._inspected]
        ours = (container for container in found if is_of(container.labels, self._instance, uid))
        status = with_termination_messages(pod_status(uid, pods, ours, started_at), self._messages)
        try:
            return with_start_errors(status, self._pod_logs_dir)
        except OSError as error:
            raise RuntimeCallError(ErrorKind.INTERNAL, "read start errors", str(error)) from error


def _strays(listing: Listing) -> dict[str, tuple[str, ...]]:
    """Ids of containers outside of any pod, by uid."""
    found: dict[str, tuple[str, ...]] = {}
    for container in listing.containers:
        if not container.pod_id:
            uid = container.labels.get(labels.POD_UID, "")
            found[uid] = (*found.get(uid, ()), container.id)
    return found
