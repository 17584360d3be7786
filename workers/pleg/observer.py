"""Observes pods in the runtime: one at a time, or all at once. Caches only what saves calls.

One pod costs the service 1.9 ms for each container that was touched or does not last, and nothing for the others;
everything costs 0.5 ms per container and as many inspects (measured on 4.3.1; see also `workers.pleg.touched` and
`workers.pleg.relist`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Final, TypeVar

import msgspec

from ipc.host.clock import Clock
from ipc.host.tasks import FailureLog
from ipc.kubecontainer.pod_status import UNKNOWN_EXIT_CODE, ContainerState, RuntimeContainerStatus, RuntimePodStatus
from workers.cm.oom_kills import KILLED, OomKills
from workers.kubecontainer import labels
from workers.kubecontainer.convert import container_state, pod_status, sandbox_behind
from workers.kubecontainer.label_signatures import Ownership
from workers.kubecontainer.labels import read_uid
from workers.kubecontainer.look import Look
from workers.kubecontainer.overrides import STUCK_SLACK_S, with_recorded_ends, with_stuck, with_unseen_ends
from workers.kubecontainer.runtime import (
    ErrorKind,
    InspectedContainer,
    ListedContainer,
    ListedPod,
    RecordedEnd,
    Runtime,
    RuntimeCallError,
    unexpected,
)
from workers.logs.start_error import with_start_errors
from workers.logs.termination_message import read_termination_message, with_termination_messages
from workers.pleg.exit_watch import ExitWatch
from workers.pleg.logged_restarts import LostAttempts
from workers.pleg.relist import (
    SETTLED_STATES,
    Listing,
    Members,
    halfway_removed,
    is_as_remembered,
    is_run_of,
    members_by_uid,
    to_inspect,
    unlisted_pods,
    without_pods,
)
from workers.pleg.touched import Doubts, Touched
from workers.pleg.unknown_containers import UnknownContainers

PODS_PER_YIELD: Final = 100
"""Pods of a relist that are evaluated before other tasks of the process run, the heartbeat among them: ten thousand in
one go were half a second of CPU time, and much more on a host that is busy."""

T = TypeVar("T", InspectedContainer, RecordedEnd)


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
        *,
        ownership: Ownership,
        pod_logs_dir: str,
        pods_dir: str,
        on_exit: Callable[[str], None],
        on_record: Callable[[str], None] | None = None,
        on_forgotten: Callable[[str], None] = lambda uid: None,
        remembered: Mapping[str, InspectedContainer] | None = None,
        on_inspect: Callable[[], None] = lambda: None,
        stuck_slack_s: float = STUCK_SLACK_S,
    ) -> None:
        """``on_exit`` gets the uid of a pod of which a process has just ended; ``on_record`` that of a pod of which the
        end of a container was recorded, which `with_records` adds; ``on_forgotten`` that of a pod with a process whose
        container Podman does not know any more. ``remembered`` has inspects by an earlier process, by id. After every
        change of `settled` ``on_inspect`` is called."""
        self._runtime = runtime
        self._clock = clock
        self._ownership = ownership
        self._pod_logs_dir = pod_logs_dir
        self._pods_dir = pods_dir
        self._on_forgotten = on_forgotten
        self._remembered = remembered or {}
        """Until the first relist."""
        self._on_inspect = on_inspect
        self._stuck_slack_s = stuck_slack_s
        self._exits = ExitWatch(runtime, clock, on_exit, on_record=on_record)
        self._oom_kills = OomKills(runtime)
        self._lost: LostAttempts | None = None
        self._inspected: dict[str, InspectedContainer] = {}
        self._ours: dict[str, frozenset[str]] = {}
        """Ids of containers that the agent has made, by uid: a pod may have other members."""
        self.unknown_containers = UnknownContainers(ownership)
        self._messages: dict[str, str] = {}
        """Termination messages of containers that have ended, by id: read once, after each inspect."""
        self.touched = Touched()
        self._inspected_at: dict[str, float] = {}
        """When the newest inspect of each container began, in monotonic seconds."""
        self._without_infra: set[str] = set()
        """Uids of pods with a sandbox that no infra container of ours stands for: only lists show it."""
        self._outside_sandboxes: dict[str, tuple[str, ...]] = {}
        self._unexplained: dict[str, FailureLog] = {}
        """Unexpected errors of a container or pod, by its id, until it can be observed."""
        self._stopping: dict[str, float] = {}
        """Since when each container is being stopped, in monotonic seconds, as observed."""
        self._since_listing: set[str] = set()
        """Uids that were observed since the newest listing began."""

    @property
    def has_unwatched(self) -> bool:
        """Whether a container runs without a pidfd: only a relist finds its end."""
        return bool(self._exits.unwatched)

    @property
    def containers(self) -> int:
        """Number of known containers, infra containers included."""
        return len(self._inspected)

    def settled(self) -> list[InspectedContainer]:
        """Inspects of our containers in states that last, for a later process to remember."""
        ours = frozenset[str]().union(*self._ours.values())
        return [c for id, c in self._inspected.items() if id in ours and c.state in SETTLED_STATES]

    def knows_end(self, container_id: str) -> bool:
        """Whether that container is known to have ended."""
        known = self._inspected.get(container_id)
        if known is None:
            return False
        ended = container_state(known.state) is ContainerState.EXITED
        return ended or self._exits.record_of(container_id, known.pid) is not None

    def has_ended(self, uid: str) -> bool:
        """Whether the pod has containers, and all are known to have ended, whatever its sandbox does."""
        ids = self._ours.get(uid, frozenset()) & self._inspected.keys()
        containers = [id for id in ids if not self._inspected[id].is_infra]
        return bool(containers) and all(map(self.knows_end, containers))

    def needs_list(self, uid: str) -> bool:
        """Whether an observation of that pod has to list it."""
        return uid in self._without_infra or self.touched.needs_list(uid, self._clock.now().mono)

    def relies_on_records(self, uid: str) -> bool:
        """Whether the end of a container of that pod is known from its monitor's record alone."""
        return bool(self._told(uid))

    def relying_on_records(self) -> Set[str]:
        """Uids of all pods of which that is so."""
        ended = self._exits.unconfirmed & self._inspected.keys()
        return {read_uid(self._inspected[id].labels) for id in ended if self._exits.is_told(id)}

    def _told(self, uid: str) -> Set[str]:
        ended = self._exits.unconfirmed & self._ours.get(uid, frozenset()) & self._inspected.keys()
        return {id for id in ended if self._exits.is_told(id)}

    def knows(self, container_id: str) -> bool:
        """Whether that container was inspected and is not known to be gone."""
        return container_id in self._inspected

    def all_inspected(self) -> Iterable[InspectedContainer]:
        """The containers that were inspected and are not known to be gone."""
        return self._inspected.values()

    def inspected(self, container_id: str) -> InspectedContainer | None:
        """Newest inspect of that container."""
        return self._inspected.get(container_id)

    def has_inspected_since(self, container_id: str, wall: float) -> bool:
        """Whether that container was inspected after this epoch second, put on the monotonic clock as it goes now."""
        now = self._clock.now()
        return wall < now.wall - (now.mono - self._inspected_at.get(container_id, -math.inf))

    def with_records(self, status: RuntimePodStatus) -> RuntimePodStatus:
        """A pod's newest status with the ends that monitors have recorded since. Its time is not renewed: the rest of
        the pod was not observed again.

        Ends are not added where the sandbox's end is that of all containers, and shows itself a moment later: there
        only an observation is right.
        """
        noted = self._exits.noted & self._inspected.keys()
        ids = [c.id for c in status.containers if c.id in noted and not c.leaves_processes] if noted else []
        if not ids:
            return status
        records = self._records(self._inspected[id] for id in ids)
        self._read_messages(records)
        return with_termination_messages(with_recorded_ends(status, records), self._messages)

    async def observe(self, uid: str, *, listing: bool | None = None) -> RuntimePodStatus:
        """Status of one pod, cheaply: what was touched of it and what does not last is inspected, unless ``listing``,
        by default where `needs_list` says so. Raises RuntimeCallError."""
        started_at = self._clock.now().mono
        self._since_listing.add(uid)
        observe = self._list_pod if (self.needs_list(uid) if listing is None else listing) else self._inspect_pod
        doubts = self.touched.take(uid)
        try:
            for look in doubts.looks:
                self._take_look(look)
            return await observe(uid, doubts, started_at)
        except BaseException:
            self.touched.restore(uid, doubts)
            raise

    async def _inspect_pod(self, uid: str, doubts: Doubts, started_at: float) -> RuntimePodStatus:
        """Status of the containers that are known of the pod and of those that were touched since."""
        gone = doubts.removed | self._forget_removed(uid, doubts.removed)
        self._believe_old_records(uid)
        await self._inspect_ours(uid, self._doubtful(uid, doubts.touched - gone))
        hinted = {id for id, wall in doubts.hinted if not self.has_inspected_since(id, wall)}
        await self._inspect_ours(uid, hinted - gone)
        self._read_messages(self._records(self._inspected[id] for id in self._told(uid)))
        ids = self._ours.get(uid, frozenset())
        infras = (self._inspected[id] for id in ids if self._inspected[id].is_infra)
        return self._status(uid, [sandbox_behind(infra) for infra in infras], ids, started_at)

    def _forget_removed(self, uid: str, removed: Set[str]) -> Set[str]:
        """Podman has answered that these containers, and everything in these sandboxes, were removed: an id never comes
        back. The ids of those containers that were known."""
        known = (self._inspected[id] for id in self._ours.get(uid, frozenset()) & self._inspected.keys())
        gone = {container.id for container in known if removed & {container.id, container.pod_id}}
        self._forget(gone)
        return gone

    def _believe_old_records(self, uid: str) -> None:
        """Take records that have stood for what Podman says as an inspect. It notes an end from the same file: an
        inspect would say the same, and a list that shows another run has it inspected."""
        for id in self._exits.unconfirmed & self._ours.get(uid, frozenset()) & self._inspected.keys():
            end = self._exits.record_of(id, self._inspected[id].pid)
            if end is not None and not self._exits.is_told(id):
                self._inspected[id] = with_end(self._inspected[id], end)
                self._inspect_ended(id, self._inspected[id])

    def _doubtful(self, uid: str, touched: Set[str]) -> Set[str]:
        """Containers of a pod to inspect, each by its id if that is known, else by what was touched."""
        ours = self._ours.get(uid, frozenset())
        known = {id: self._inspected[id] for id in ours & self._inspected.keys()}
        doubtful = {id for id, c in known.items() if touched & {id, c.name, c.pod_id} or not self._lasts(c)}
        sandboxes = {container.pod_id for container in known.values()}
        names = {known[id].name for id in doubtful}
        return doubtful | ours - known.keys() | touched - sandboxes - names

    async def _inspect_ours(self, uid: str, references: Set[str]) -> None:
        """Raises RuntimeCallError."""
        known = {id: self._inspected.get(id) for id in references}
        for id, failure in (await self._inspect(sorted(references))).items():
            raise _of_container(known[id], id, failure)

    def _lasts(self, known: InspectedContainer) -> bool:
        """Whether a container is as it was inspected, unless it was touched. A process that has ended by now counts as
        ended, also when nobody was told yet: the status is of this moment."""
        if known.id in self._exits.unconfirmed:
            return self._exits.is_told(known.id)
        if not self._is_settled(known.id, known.state):
            return False
        return not self._exits.is_running(known.id, known.pid) or self._exits.is_alive(known.id)

    async def _list_pod(self, uid: str, _: Doubts, started_at: float) -> RuntimePodStatus:
        """Covers every sandbox that carries the uid, with their members; containers that have just ended are inspected
        while the pod is listed. Containers outside of any sandbox are found by a relist first and followed from then
        on."""
        ended = self._exits.unconfirmed & self._ours.get(uid, frozenset())
        listed, failures = await asyncio.gather(self._runtime.list_pods(uid), self._inspect(sorted(ended)))
        pods = tuple(filter(self._ownership.owns_pod, listed))
        members = {id: state for pod in pods for id, state in pod.containers}
        outside = dict.fromkeys(self._outside_sandboxes.get(uid, ()), "")
        shown = {**outside, **members}
        unsettled = [id for id, state in shown.items() if id not in ended and not self._is_settled(id, state)]
        failures |= await self._inspect(unsettled)
        if failures:
            raise next(iter(failures.values()))
        await self._confirm_gone(self._ours.get(uid, frozenset()) - shown.keys())
        self._note_infras(uid, pods)
        return self._status(uid, pods, shown, started_at)

    async def list_all(self) -> Listing:
        """Everything that Podman has, for `relist`. Raises RuntimeCallError when a list fails."""
        self._since_listing.clear()
        doubts, started_at = self.touched.all(), self._clock.now().mono
        listed, empty = await asyncio.gather(self._runtime.list_containers(), self._runtime.list_empty_pods())
        containers, pods = self.unknown_containers.without_unknown(listed, empty)
        took_s = self._clock.now().mono - started_at
        return Listing(started_at=started_at, took_s=took_s, containers=containers, pods=pods, doubts=doubts)

    async def relist(self, listing: Listing) -> Relisting:
        """Status of every pod that was not observed since the listing began. Raises RuntimeCallError when it is
        incomplete, and when Podman goes away meanwhile. An error of one pod is that pod's failure alone."""
        if self._lost is None:
            self._lost = self._read_lost_attempts()
        newer = frozenset(self._since_listing)
        listing, failures = await self._with_unlisted(without_pods(listing, newer))
        ids = {container.id for container in listing.containers}
        ids |= {id for id, known in self._inspected.items() if read_uid(known.labels) in newer}
        await self._confirm_gone({id for of_pod in self._ours.values() for id in of_pod} - ids)
        await self._recall(listing)
        wanted = (*to_inspect(listing.containers, self._inspected), *sorted(self._exits.unconfirmed & ids))
        told = {container.id for container in listing.containers if self._is_told_run(container)}
        failures |= await self._inspect(id for id in dict.fromkeys(wanted) if id not in told)
        for failure in failures.values():
            if failure.kind is ErrorKind.UNAVAILABLE:
                raise failure
        for container in halfway_removed(listing.containers):
            if container.id in failures:
                await self._finish_removal(container, failures)
        self._watch_again()
        self._forget(self._inspected.keys() - ids)
        self._exits.retain(ids)
        relisting = await self._relisting(listing, failures, self._lost.uids - newer)
        self.touched.listed_all(listing.doubts, relisting.failures.keys())
        self._oom_kills.adopted()
        self._oom_kills.drop_gone()
        return msgspec.structs.replace(relisting, passed_over=newer)

    async def _recall(self, listing: Listing) -> None:
        """Take over remembered inspects of containers that the list shows as they were."""
        remembered, self._remembered = self._remembered, {}
        unknown = remembered.keys() - self._inspected.keys()
        known = ((container, remembered[container.id]) for container in listing.containers if container.id in unknown)
        same = [inspected for listed, inspected in known if is_as_remembered(inspected, listed)]
        for number, inspected in enumerate(same):
            if number % PODS_PER_YIELD == 0:
                await asyncio.sleep(0)
            try:
                self._inspect_ended(inspected.id, inspected)
            except Exception as error:
                self._unexpected(f"remember container {inspected.id[:12]}", inspected.id, error)
            else:
                self._inspected[inspected.id], self._inspected_at[inspected.id] = inspected, listing.started_at

    def close(self) -> None:
        """Stop watching processes."""
        self._exits.close()

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
                statuses[uid] = self._status_of(uid, members, listing)
            except RuntimeCallError as error:
                pod_failures[uid] = error
        for uid in sorted(logged - every.keys()):
            try:
                status = self._status_of(uid, Members(), listing)
            except RuntimeCallError as error:
                pod_failures[uid] = error
                continue
            if status.lost_attempts:
                statuses[uid] = status
        return Relisting(started_at=listing.started_at, statuses=statuses, failures=pod_failures)

    def _status_of(self, uid: str, members: Members, listing: Listing) -> RuntimePodStatus:
        """Raises RuntimeCallError for every error of that pod."""
        try:
            status = self._status(uid, members.pods, members.container_ids, listing.started_at)
        except RuntimeCallError:
            raise
        except Exception as error:
            raise self._unexpected(f"observe pod {uid}", uid, error) from error
        self._unexplained.pop(uid, None)
        return status

    async def _confirm_gone(self, missing: Set[str]) -> None:
        """Inspect containers that a list lacks. Raises RuntimeCallError when one of them exists.

        A list that is cut off, or of an empty or another storage, must not make a pod seem absent.
        """
        failures = await self._inspect(sorted(missing))
        for failure in failures.values():
            raise failure
        if there := {id for id in missing if self._is_ours(id)}:
            raise RuntimeCallError(ErrorKind.INTERNAL, "list", f"it lacks {len(there)} containers that exist")

    def _is_told_run(self, listed: ListedContainer) -> bool:
        """Whether the monitor has recorded the end of the run that the list shows, whether it knows of it or not."""
        known = self._inspected.get(listed.id)
        return known is not None and self._exits.is_told(listed.id) and is_run_of(known, listed)

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
            found = await self._runtime.inspect_pod(id)
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return ()
        return (msgspec.convert(found, ListedPod, from_attributes=True),) if self._ownership.owns_pod(found) else ()

    def _is_settled(self, id: str, state: str) -> bool:
        """Whether the last inspect of a container still holds in that state."""
        known = self._inspected.get(id)
        if known is None or known.state != state:
            return False
        if state == "running":
            return self._exits.is_running(id, known.pid) or self._exits.end_of(id, known.pid) is not None
        return state == "exited"

    async def _inspect(self, ids: Iterable[str]) -> dict[str, RuntimeCallError]:
        """Inspect these containers; the errors by id. A container that is gone is forgotten, which is no error."""
        wanted = list(ids)
        errors = await asyncio.gather(*(self._inspect_one(id) for id in wanted))
        return {id: error for id, error in zip(wanted, errors, strict=True) if error is not None}

    def _note_infras(self, uid: str, pods: Iterable[ListedPod]) -> None:
        """Note whether infra containers of ours stand for all of these sandboxes, which are the pod's."""
        has_all = self._ours.get(uid, frozenset()).issuperset(pod.infra_id for pod in pods)
        (self._without_infra.discard if has_all else self._without_infra.add)(uid)

    async def _inspect_one(self, id: str) -> RuntimeCallError | None:
        """By id or name."""
        began_at = self._clock.now().mono
        try:
            found = await self._runtime.inspect_container(id)
            self._inspected[found.id], self._inspected_at[found.id] = found, began_at
            self._inspect_ended(found.id, found)
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                return error
            self._forget({id})
        except Exception as error:  # of this container, and of no other
            self._inspected.pop(id, None)
            return self._unexpected(f"inspect container {id[:12]}", id, error)
        self._unexplained.pop(id, None)
        return None

    def _take_look(self, look: Look) -> None:
        """As an inspect of that time. An end since then shows itself: the process is watched from now on."""
        found = look.container
        if look.at <= self._inspected_at.get(found.id, -math.inf):
            return
        self._inspected[found.id] = found
        try:
            self._inspect_ended(found.id, found)
        except Exception:
            del self._inspected[found.id]
            raise
        self._inspected_at[found.id] = look.at

    def _inspect_ended(self, id: str, found: InspectedContainer) -> None:
        """Update what depends on an inspect: owner, pidfd, termination message."""
        self._on_inspect()
        uid, ours, state = read_uid(found.labels), self._ownership.owns(found), container_state(found.state)
        if ours:
            self._ours[uid] = self._ours.get(uid, frozenset()) | {id}
        else:
            self.unknown_containers.inspected(id)
            if self._is_ours(id):  # it was renamed
                self._disown(uid, id)
        if ours and state is ContainerState.RUNNING:
            self._exits.watch(found, uid)
            self._oom_kills.runs(uid, found.process, is_infra=found.is_infra)
        else:
            self._exits.forget(id)
        if found.state == "stopping":
            self._stopping.setdefault(id, self._clock.now().mono)
        else:
            self._stopping.pop(id, None)
        if self._exits.end_of(id, found.pid) is not None:
            found = msgspec.structs.replace(found, exit_code=UNKNOWN_EXIT_CODE)
            state = ContainerState.EXITED
        if ours and state is ContainerState.EXITED and not found.is_infra:
            self._messages[id] = read_termination_message(found, self._pods_dir, self._pod_logs_dir)
            self._inspected[id] = self._with_oom_kill(uid, id, found)

    def _with_oom_kill(self, uid: str, id: str, end: T) -> T:
        """An end of a container as Podman or its monitor tells it, with what these may not know."""
        is_killed = self._oom_kills.has_killed(uid, id) and end.exit_code == KILLED
        return msgspec.structs.replace(end, oom_killed=True) if is_killed else end

    def _unexpected(self, call: str, id: str, error: Exception) -> RuntimeCallError:
        """An unexpected error as a failed call. ``id``: of the container or pod; a row of the same errors is logged
        once."""
        self._unexplained.setdefault(id, FailureLog(call)).note(error)
        return unexpected(error, call)

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
            failures[container.id] = self._unexpected(f"remove container {container.id[:12]}", container.id, error)
            return
        self._forget({container.id})
        del failures[container.id]

    def _read_lost_attempts(self) -> LostAttempts:
        try:
            return LostAttempts(self._pod_logs_dir)
        except OSError as error:
            raise RuntimeCallError(ErrorKind.INTERNAL, "read logged attempts", str(error)) from error

    def _watch_again(self) -> None:
        """Watch containers again for which there was no file descriptor."""
        for id in sorted(self._exits.unwatched & self._inspected.keys()):
            try:
                self._exits.watch(self._inspected[id], read_uid(self._inspected[id].labels))
            except Exception as error:
                self._unexpected(f"watch container {id[:12]}", id, error)

    def _is_stuck(self, container: RuntimeContainerStatus) -> bool:
        """Whether the container's stop was begun by another client and not ended."""
        since = self._stopping.get(container.id)
        patience_s = container.grace_period_s + self._stuck_slack_s
        return since is not None and self._clock.now().mono - since >= patience_s

    def _forget(self, ids: Set[str]) -> None:
        if ids:
            self._on_inspect()
        for id in ids:
            known = self._inspected.pop(id, None)
            uid = read_uid(known.labels) if known is not None else self._owner_of(id)
            if self._exits.is_alive(id):
                self._on_forgotten(uid)
            self._disown(uid, id)
            self._oom_kills.forget(uid, id)
            self._messages.pop(id, None)
            self._unexplained.pop(id, None)
            self._stopping.pop(id, None)
            self._inspected_at.pop(id, None)
            self._exits.forget(id)

    def _owner_of(self, id: str) -> str:
        """UID of the pod of a container of ours whose last inspect failed; empty for every other one."""
        return next((uid for uid, ids in self._ours.items() if id in ids), "")

    def _is_ours(self, id: str) -> bool:
        known = self._inspected.get(id)
        return known is not None and id in self._ours.get(read_uid(known.labels), frozenset())

    def _disown(self, uid: str, id: str) -> None:
        if left := self._ours.pop(uid, frozenset()) - {id}:
            self._ours[uid] = left

    def _exiting_infra(self, ours: Sequence[InspectedContainer]) -> list[InspectedContainer]:
        """Infra containers whose process is ending. As first processes of a PID namespace they end after all others in
        it."""
        return [
            container
            for container in ours
            if container.is_infra
            and container_state(container.state) is ContainerState.RUNNING
            and self._runtime.is_exiting(container)
        ]

    def _records(self, containers: Iterable[InspectedContainer]) -> dict[str, RecordedEnd]:
        """Recorded ends by id, of containers whose end Podman does not show yet."""
        ends = {c.id: end for c in containers if (end := self._exits.record_of(c.id, c.pid)) is not None}
        return {id: self._with_oom_kill(read_uid(self._inspected[id].labels), id, end) for id, end in ends.items()}

    def _read_messages(self, records: Mapping[str, RecordedEnd]) -> None:
        """Termination messages of containers with recorded ends."""
        for id, end in records.items():
            if not self._inspected[id].is_infra:
                found = msgspec.structs.replace(self._inspected[id], exit_code=end.exit_code)
                self._messages[id] = read_termination_message(found, self._pods_dir, self._pod_logs_dir)

    def _status(self, uid: str, pods: Iterable[ListedPod], ids: Iterable[str], started_at: float) -> RuntimePodStatus:
        """Status from these pods and containers, with what Podman does not know or forgets. Raises RuntimeCallError."""
        members = self._ours.get(uid, frozenset())
        ours = [self._inspected[id] for id in ids if id in members]
        ends = {c.id: end for c in ours if (end := self._exits.end_of(c.id, c.pid)) is not None}
        status = pod_status(uid, pods, ours, started_at)
        if any(container.leaves_processes for container in status.containers):
            ends |= {c.id: self._clock.now().wall for c in self._exiting_infra(ours)}
        status = with_recorded_ends(status, self._records(ours))
        status = with_unseen_ends(status, ends)
        status = with_stuck(status, [c.id for c in status.containers if self._is_stuck(c)])
        status = with_termination_messages(status, self._messages)
        try:
            lost = self._lost.of(status) if self._lost is not None else {}
            return with_start_errors(msgspec.structs.replace(status, lost_attempts=lost), self._pod_logs_dir)
        except OSError as error:
            raise RuntimeCallError(ErrorKind.INTERNAL, "read the logs", str(error)) from error


def with_end(container: InspectedContainer, end: RecordedEnd) -> InspectedContainer:
    """The container as Podman shows it after that end of its process, when it has cleaned up."""
    return msgspec.structs.replace(
        container,
        state="exited",
        pid=0,
        conmon_pid=0,
        start_ticks=0,
        exit_code=end.exit_code,
        oom_killed=end.oom_killed,
        finished_at=end.finished_at,
        ips=(),
    )


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
