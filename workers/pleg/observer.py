"""Observes pods in the runtime: one at a time, or all at once. Caches only what saves calls.

One pod costs the service 1.9 ms for each container that was touched or does not last, and nothing for the others;
everything costs 0.5 ms per container and as many inspects (measured on 4.3.1; see also `workers.pleg.touched` and
`workers.pleg.relist`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Set
from typing import Final

import msgspec

from ipc.host.clock import Clock
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from workers.containers.known_containers import KnownContainers
from workers.containers.runs import is_as_remembered
from workers.kubecontainer import labels
from workers.kubecontainer.convert import sandbox_behind, sandbox_of
from workers.kubecontainer.labels import read_uid
from workers.kubecontainer.runtime import (
    ErrorKind,
    InspectedContainer,
    ListedContainer,
    ListedPod,
    Runtime,
    RuntimeCallError,
)
from workers.logs import layout
from workers.logs.start_error import may_have_start_errors, with_start_errors
from workers.pleg.empty_pods import PATIENCE_S, EmptyPods
from workers.pleg.logged_restarts import LostAttempts
from workers.pleg.relist import (
    Listing,
    Members,
    halfway_removed,
    members_by_uid,
    to_inspect,
    unlisted_pods,
    without_pods,
)
from workers.pleg.touched import Doubts, Touched

PODS_PER_YIELD: Final = 100
"""Pods of a relist that are evaluated before other tasks of the process run, the heartbeat among them: ten thousand in
one go were half a second of CPU time, and much more on a host that is busy."""


class Relisting(msgspec.Struct, frozen=True, kw_only=True):
    """All pods of this agent, as they were after ``started_at`` (monotonic seconds)."""

    started_at: float
    statuses: Mapping[str, RuntimePodStatus]
    """By uid; a pod that is neither here nor among the failures does not exist. Nor does one with an empty status:
    there are only logs of it."""
    failures: Mapping[str, RuntimeCallError]
    """By uid: pods that exist and could not be observed."""
    passed_over: Set[str] = frozenset()
    """Uids of pods that have been asked for one by one since everything was listed: that is the newer answer."""


class Observer:
    """Makes statuses of pods from calls of the runtime. Observations of different pods may overlap, and may overlap the
    listing of everything, which takes long on a host with many containers; none may overlap a relist."""

    def __init__(
        self,
        runtime: Runtime,
        clock: Clock,
        known: KnownContainers,
        remembered: Mapping[str, InspectedContainer] | None = None,
    ) -> None:
        """``known`` are containers of that runtime by that clock, and the observer's alone to change. ``remembered``
        has inspects by an earlier process, by id."""
        self._runtime = runtime
        self._clock = clock
        self.known = known
        self._remembered = remembered or {}
        """Until the first relist."""
        self._empty_pods = EmptyPods(runtime)
        self._lost: LostAttempts | None = None
        self.touched = Touched()
        self._without_infra: set[str] = set()
        """Uids of pods with a sandbox that no infra container of ours stands for: only lists show it."""
        self._outside_sandboxes: dict[str, tuple[str, ...]] = {}
        self._since_listing: set[str] = set()
        """Uids that were observed since the newest listing began."""

    def needs_list(self, uid: str) -> bool:
        """Whether an observation of that pod has to list it."""
        return uid in self._without_infra or self.touched.needs_list(uid, self._clock.now().mono)

    async def observe(self, uid: str, *, listing: bool | None = None) -> RuntimePodStatus:
        """Status of one pod, cheaply: what was touched of it and what does not last is inspected, unless ``listing``,
        by default where `needs_list` says so. Raises RuntimeCallError."""
        started_at = self._clock.now().mono
        self._since_listing.add(uid)
        observe = self._list_pod if (self.needs_list(uid) if listing is None else listing) else self._inspect_pod
        doubts = self.touched.take(uid)
        try:
            for look in doubts.looks:
                self.known.take_look(look)
            return await observe(uid, doubts, started_at)
        except BaseException:
            self.touched.restore(uid, doubts)
            raise

    async def _inspect_pod(self, uid: str, doubts: Doubts, started_at: float) -> RuntimePodStatus:
        """Status of the containers that are known of the pod and of those that were touched since."""
        gone = doubts.removed | self.known.forget_removed(uid, doubts.removed)
        self.known.believe_old_records(uid)
        await self._inspect_ours(uid, self._doubtful(uid, doubts.touched - gone))
        hinted = {id for id, wall in doubts.hinted if not self.known.has_inspected_since(id, wall)}
        await self._inspect_ours(uid, hinted - gone)
        self.known.reported(uid)  # reads records that nobody has read yet
        ids = self.known.of_pod(uid)
        infras = (found for id in ids if (found := self.known.inspected.get(id)) is not None and found.is_infra)
        return await self._status(uid, [sandbox_behind(infra) for infra in infras], ids, started_at)

    def _doubtful(self, uid: str, touched: Set[str]) -> Set[str]:
        """Containers of a pod to inspect, each by its id if that is known, else by what was touched."""
        ours = self.known.of_pod(uid)
        known = {id: found for id in ours if (found := self.known.inspected.get(id)) is not None}
        doubtful = {id for id, c in known.items() if touched & {id, c.name, c.pod_id} or not self.known.lasts(c)}
        sandboxes = {container.pod_id for container in known.values()}
        names = {known[id].name for id in doubtful}
        return doubtful | ours - known.keys() | touched - sandboxes - names

    async def _inspect_ours(self, uid: str, references: Set[str]) -> None:
        """Raises RuntimeCallError."""
        known = {id: self.known.inspected.get(id) for id in references}
        for id, failure in (await self.known.inspect(sorted(references))).items():
            raise _of_container(known[id], id, failure)

    async def _list_pod(self, uid: str, _: Doubts, started_at: float) -> RuntimePodStatus:
        """Covers every sandbox that carries the uid, with their members; containers that have just ended are inspected
        while the pod is listed. Containers outside of any sandbox are found by a relist first and followed from then
        on."""
        ended = self.known.unconfirmed & self.known.of_pod(uid)
        (pods, members), failures = await asyncio.gather(self._listed(uid), self.known.inspect(sorted(ended)))
        outside = dict.fromkeys(self._outside_sandboxes.get(uid, ()), "")
        shown = {**outside, **members}
        unsettled = [id for id, state in shown.items() if id not in ended and not self.known.is_settled(id, state)]
        failures |= await self.known.inspect(unsettled)
        if failures:
            raise next(iter(failures.values()))
        await self._confirm_gone(self.known.of_pod(uid) - shown.keys())
        self._note_infras(uid, pods)
        return await self._status(uid, pods, shown, started_at)

    async def _listed(self, uid: str) -> tuple[tuple[ListedPod, ...], Mapping[str, str]]:
        """The pod's sandboxes, and the states of their members by id. Raises RuntimeCallError."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                listed = await self._runtime.list_pods(uid)
        except TimeoutError:
            return await self._listed_by_containers(uid)
        pods = tuple(filter(self.known.ownership.owns_pod, listed))
        return pods, {id: state for pod in pods for id, state in pod.containers}

    async def _listed_by_containers(self, uid: str) -> tuple[tuple[ListedPod, ...], Mapping[str, str]]:
        """Without the pod's lock, which somebody holds who stops one of its containers. Raises RuntimeCallError."""
        containers = tuple(filter(self.known.ownership.owns, await self._runtime.list_containers(uid)))
        pods = tuple(sandbox_of(container) for container in containers if container.is_infra)
        for id in sorted(unlisted_pods(containers, ())):
            pods += await self._pod(id)
        return pods, {container.id: container.state for container in containers}

    async def list_all(self) -> Listing:
        """Everything that Podman has, for `relist`. Raises RuntimeCallError when a list fails."""
        self._since_listing.clear()
        doubts, started_at = self.touched.all(), self._clock.now().mono
        listed, empty = await asyncio.gather(self._runtime.list_containers(), self._empty_pods.list())
        containers, pods = self.known.unknown_containers.without_unknown(listed, empty)
        took_s = self._clock.now().mono - started_at
        return Listing(started_at=started_at, took_s=took_s, containers=containers, pods=pods, doubts=doubts)

    async def relist(self, listing: Listing) -> Relisting:
        """Status of every pod that was not observed since the listing began. Raises RuntimeCallError when it is
        incomplete, and when Podman goes away meanwhile. An error of one pod is that pod's failure alone."""
        if self._lost is None:
            self._lost = await self._read_lost_attempts()
        self.known.listed(listing.containers)
        newer = frozenset(self._since_listing)
        listing, failures = await self._with_unlisted(without_pods(listing, newer))
        ids = {container.id for container in listing.containers}
        ids |= {found.id for found in self.known.inspected.values() if read_uid(found.labels) in newer}
        await self._confirm_gone(self.known.ours() - ids)
        await self._recall(listing)
        wanted = (*to_inspect(listing.containers, self.known.inspected), *sorted(self.known.unconfirmed & ids))
        reported = {container.id for container in listing.containers if self.known.is_reported_run(container)}
        failures |= await self.known.inspect(id for id in dict.fromkeys(wanted) if id not in reported)
        for failure in failures.values():
            if failure.kind is ErrorKind.UNAVAILABLE:
                raise failure
        for container in halfway_removed(listing.containers):
            if container.id in failures:
                await self._finish_removal(container, failures)
        self.known.retain(ids)
        relisting = await self._relisting(listing, failures, self._lost.uids - newer)
        self.touched.listed_all(listing.doubts, relisting.failures.keys())
        self.known.everything_was_listed()
        return msgspec.structs.replace(relisting, passed_over=newer)

    async def _recall(self, listing: Listing) -> None:
        """Take over remembered inspects of containers that the list shows as they were."""
        remembered, self._remembered = self._remembered, {}
        unknown = remembered.keys() - self.known.inspected.keys()
        known = ((container, remembered[container.id]) for container in listing.containers if container.id in unknown)
        same = [inspected for listed, inspected in known if is_as_remembered(inspected, listed)]
        for number, inspected in enumerate(same):
            if number % PODS_PER_YIELD == 0:
                await asyncio.sleep(0)
            self.known.recall(inspected, listing.started_at)

    def close(self) -> None:
        """Stop watching processes, and break off what Podman has not answered."""
        self.known.close()
        self._empty_pods.close()

    async def _relisting(
        self, listing: Listing, failures: Mapping[str, RuntimeCallError], logged: Set[str]
    ) -> Relisting:
        """Statuses from a listing and its inspects. ``failures`` by the ids of containers; ``logged``: uids that have
        logs."""
        every = members_by_uid(listing)
        known = {uid: ids for uid, ids in self._outside_sandboxes.items() if uid in self._since_listing}
        self._outside_sandboxes = known | _outside_sandboxes(every, listing)
        self._without_infra &= self._since_listing
        for uid, members in every.items():
            self._note_infras(uid, members.pods)
        statuses: dict[str, RuntimePodStatus] = {}
        pod_failures: dict[str, RuntimeCallError] = {}
        for number, (uid, members) in enumerate(every.items()):
            if number % PODS_PER_YIELD == 0:
                await asyncio.sleep(0)
            failed = failures.keys() & set(members.container_ids)
            try:
                if failed:
                    id = min(failed)
                    raise _of_container(next((c for c in listing.containers if c.id == id), None), id, failures[id])
                statuses[uid] = await self._status_of(uid, members, listing)
            except RuntimeCallError as error:
                pod_failures[uid] = error
        for uid in sorted(logged - every.keys()):
            try:
                status = await self._status_of(uid, Members(), listing)
            except RuntimeCallError as error:
                pod_failures[uid] = error
                continue
            if status.lost_attempts:
                statuses[uid] = status
        return Relisting(started_at=listing.started_at, statuses=statuses, failures=pod_failures)

    async def _status_of(self, uid: str, members: Members, listing: Listing) -> RuntimePodStatus:
        """Raises RuntimeCallError for every error of that pod."""
        try:
            status = await self._status(uid, members.pods, members.container_ids, listing.started_at)
        except RuntimeCallError:
            raise
        except Exception as error:
            raise self.known.unexplained.note(f"observe pod {uid}", uid, error) from error
        self.known.unexplained.forget(uid)
        return status

    async def _confirm_gone(self, missing: Set[str]) -> None:
        """Inspect containers that a list lacks. Raises RuntimeCallError when one of them exists.

        A list that is cut off, or of an empty or another storage, must not make a pod seem absent.
        """
        failures = await self.known.inspect(sorted(missing))
        for failure in failures.values():
            raise failure
        if there := {id for id in missing if self.known.is_ours(id)}:
            raise RuntimeCallError(ErrorKind.INTERNAL, "list", f"it lacks {len(there)} containers that exist")

    async def _with_unlisted(self, listing: Listing) -> tuple[Listing, dict[str, RuntimeCallError]]:
        """The listing with the pods that only an inspect shows, and errors of these by the ids of their containers."""
        pods, failures = listing.pods, dict[str, RuntimeCallError]()
        for id in sorted(unlisted_pods(listing.containers, pods)):
            try:
                pods += await self._pod(id)
            except RuntimeCallError as error:
                failures |= {container.id: error for container in listing.containers if container.pod_id == id}
        return msgspec.structs.replace(listing, pods=pods), failures

    async def _pod(self, id: str) -> tuple[ListedPod, ...]:
        """The pod, empty when it is gone or not the agent's. Raises RuntimeCallError."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                found = await self._runtime.inspect_pod(id)
        except TimeoutError as error:
            why = f"no answer within {PATIENCE_S:g} s: somebody may be stopping one of its containers"
            raise RuntimeCallError(ErrorKind.TIMEOUT, "inspect pod", why) from error
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return ()
        is_ours = self.known.ownership.owns_pod(found)
        return (msgspec.convert(found, ListedPod, from_attributes=True),) if is_ours else ()

    def _note_infras(self, uid: str, pods: Iterable[ListedPod]) -> None:
        """Note whether infra containers of ours stand for all of these sandboxes, which are the pod's."""
        has_all = self.known.of_pod(uid).issuperset(pod.infra_id for pod in pods)
        (self._without_infra.discard if has_all else self._without_infra.add)(uid)

    async def _finish_removal(self, container: ListedContainer, failures: dict[str, RuntimeCallError]) -> None:
        """Remove a container whose removal Podman has begun and perhaps not ended: nothing else can be done with it,
        and it keeps its pod from being observed. An infra container is removed with its pod only."""
        try:
            if container.is_infra:
                await self._runtime.remove_pod(container.pod_id)
            else:
                await self._runtime.remove_container(container.id)
        except RuntimeCallError as error:
            failures[container.id] = error
            return
        except Exception as error:
            call = f"remove container {container.id[:12]}"
            failures[container.id] = self.known.unexplained.note(call, container.id, error)
            return
        self.known.forget({container.id})
        del failures[container.id]

    async def _status(
        self, uid: str, pods: Iterable[ListedPod], ids: Iterable[str], started_at: float
    ) -> RuntimePodStatus:
        """Status from these pods and containers, and from the logs of those that are gone. Raises RuntimeCallError."""
        await self.known.read_messages(uid)
        status = self.known.status(uid, pods, ids, started_at)
        lacks = self._lost is not None and self._lost.lacks(status)
        if not (lacks or may_have_start_errors(status)):
            return status
        try:
            read = await self.known.files.run_unless_hung(layout.SUBJECT, self._with_logs, status)
        except OSError as error:
            raise RuntimeCallError(ErrorKind.INTERNAL, "read the logs", str(error)) from error
        await self.known.read_messages(uid)
        return self.known.with_records(read)  # of ends that were recorded meanwhile

    def _with_logs(self, status: RuntimePodStatus) -> RuntimePodStatus:
        """The status with what logs tell. Raises OSError."""
        lost = self._lost.of(status) if self._lost is not None else {}
        return with_start_errors(msgspec.structs.replace(status, lost_attempts=lost), self.known.pod_logs_dir)

    async def _read_lost_attempts(self) -> LostAttempts:
        try:
            return await self.known.files.run_unless_hung(layout.SUBJECT, LostAttempts, self.known.pod_logs_dir)
        except OSError as error:
            raise RuntimeCallError(ErrorKind.INTERNAL, "read logged attempts", str(error)) from error


def _of_container(
    container: ListedContainer | InspectedContainer | None, id: str, error: RuntimeCallError
) -> RuntimeCallError:
    """The same error, with the container's name in the manifest, if the container is known."""
    name = (container.labels.get(labels.CONTAINER_NAME) or container.name) if container is not None else id
    return RuntimeCallError(error.kind, f"container {name}: {error.call}", error.message)


def _outside_sandboxes(members: Mapping[str, Members], listing: Listing) -> dict[str, tuple[str, ...]]:
    """Ids of containers outside of every pod that carries their uid, by uid."""
    pod_ids = {container.id: container.pod_id for container in listing.containers}
    found: dict[str, tuple[str, ...]] = {}
    for uid, of_pod in members.items():
        inside = {pod.id for pod in of_pod.pods}
        if outside := tuple(id for id in of_pod.container_ids if pod_ids[id] not in inside):
            found[uid] = outside
    return found
