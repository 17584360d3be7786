"""The containers that were inspected: whose each is, and how it has ended where Podman does not say so yet."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import TypeVar

import msgspec

from ipc.host.clock import Clock
from ipc.k8s.kubecontainer.pod_status import UNKNOWN_EXIT_CODE, ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.link.eventloop.tasks import FailureLog
from workers.cm.oom_kills import KILLED, OomKills
from workers.containers.exit_watch import ExitWatch
from workers.containers.runs import SETTLED_STATES, cut_short, is_run_of, without_earlier_end
from workers.containers.unknown_containers import UnknownContainers
from workers.fs.fs_executor import FsExecutor
from workers.kubecontainer.convert import container_state, has_lost_end, pod_status
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
from workers.logs import layout
from workers.logs.termination_message import read_termination_messages, unreadable, with_termination_messages

T = TypeVar("T", InspectedContainer, RecordedEnd)


class KnownContainers:
    """The containers of the node that were inspected and are not known to be gone, by id."""

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
        on_change: Callable[[], None] = lambda: None,
        stuck_slack_s: float = STUCK_SLACK_S,
    ) -> None:
        """``on_exit`` gets the uid of a pod of which a process has just ended; ``on_record`` that of a pod of which the
        end of a container was recorded, which `with_records` adds; ``on_forgotten`` that of a pod with a process whose
        container Podman does not know any more. After every change of `settled` ``on_change`` is called."""
        self._runtime = runtime
        self._clock = clock
        self.ownership = ownership
        self.pod_logs_dir = pod_logs_dir
        self._pods_dir = pods_dir
        self._on_forgotten = on_forgotten
        self._on_change = on_change
        self._stuck_slack_s = stuck_slack_s
        self._exits = ExitWatch(runtime, clock, on_exit, on_record=on_record)
        self._oom_kills = OomKills(runtime)
        self._inspected: dict[str, InspectedContainer] = {}
        self._inspected_at: dict[str, float] = {}
        """When the newest inspect of each container began, in monotonic seconds."""
        self._ours: dict[str, frozenset[str]] = {}
        """Ids of containers that the agent has made, by uid: a pod may have other members."""
        self.unknown_containers = UnknownContainers(ownership)
        self.unexplained = Unexplained()
        self.files = FsExecutor()
        """Reads what lies beside containers, in one thread: its disk may not answer."""
        self._messages: dict[str, str] = {}
        """Termination messages of containers that have ended, by id: read once, after each inspect."""
        self._unread: dict[str, InspectedContainer] = {}
        """Containers that have ended and whose messages are to be read, by id."""
        self._cut_short: frozenset[str] = frozenset()
        self._stopping: dict[str, float] = {}
        """Since when each container is being stopped, in monotonic seconds, as observed."""

    @property
    def inspected(self) -> Mapping[str, InspectedContainer]:
        """The newest inspect of each container, infra containers included, by id."""
        return self._inspected

    def of_pod(self, uid: str) -> frozenset[str]:
        """Ids of the containers of that pod that the agent has made."""
        return self._ours.get(uid, frozenset())

    def ours(self) -> frozenset[str]:
        """Ids of all containers that the agent has made."""
        return frozenset[str]().union(*self._ours.values())

    def is_ours(self, id: str) -> bool:
        """Whether the agent has made that container."""
        known = self._inspected.get(id)
        return known is not None and id in self._ours.get(read_uid(known.labels), frozenset())

    def settled(self) -> list[InspectedContainer]:
        """Inspects of our containers in states that last, for a later process to remember."""
        ours = self.ours()
        return [c for id, c in self._inspected.items() if id in ours and c.state in SETTLED_STATES]

    def has_inspected_since(self, container_id: str, wall: float) -> bool:
        """Whether that container was inspected after this epoch second, put on the monotonic clock as it goes now."""
        now = self._clock.now()
        return wall < now.wall - (now.mono - self._inspected_at.get(container_id, -math.inf))

    @property
    def has_unwatched(self) -> bool:
        """Whether a container runs without a pidfd: only a relist finds its end."""
        return bool(self._exits.unwatched)

    @property
    def unconfirmed(self) -> Set[str]:
        """Ids of containers whose processes have ended, and whose end Podman has not confirmed."""
        return self._exits.unconfirmed

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

    def relies_on_records(self, uid: str) -> bool:
        """Whether the end of a container of that pod is known from its monitor's record alone."""
        return bool(self.reported(uid))

    def relying_on_records(self) -> list[str]:
        """Uids of all pods of which that is so, in their order."""
        ended = self._exits.unconfirmed & self._inspected.keys()
        return sorted({read_uid(self._inspected[id].labels) for id in ended if self._exits.is_reported(id)})

    def is_reported_run(self, listed: ListedContainer) -> bool:
        """Whether the monitor has recorded the end of the run that a list shows, whether it knows of it or not."""
        known = self._inspected.get(listed.id)
        return known is not None and self._exits.is_reported(listed.id) and is_run_of(known, listed)

    def is_settled(self, id: str, state: str) -> bool:
        """Whether the last inspect of a container still holds in that state."""
        known = self._inspected.get(id)
        if known is None or known.state != state:
            return False
        if state == "running":
            return self._exits.is_running(id, known.pid) or self._exits.end_of(id, known.pid) is not None
        return state == "exited"

    def lasts(self, known: InspectedContainer) -> bool:
        """Whether a container is as it was inspected, unless it was touched. A process that has ended by now counts as
        ended, also when nobody was told yet: the status is of this moment."""
        if known.id in self._exits.unconfirmed:
            return self._exits.is_reported(known.id)
        if not self.is_settled(known.id, known.state):
            return False
        return not self._exits.is_running(known.id, known.pid) or self._exits.is_alive(known.id)

    async def inspect(self, ids: Iterable[str]) -> dict[str, RuntimeCallError]:
        """Inspect these containers; the errors by id. A container that is gone is forgotten, which is no error."""
        wanted = list(ids)
        errors = await asyncio.gather(*(self._inspect_one(id) for id in wanted))
        return {id: error for id, error in zip(wanted, errors, strict=True) if error is not None}

    async def _inspect_one(self, id: str) -> RuntimeCallError | None:
        """By id or name."""
        began_at = self._clock.now().mono
        try:
            found = await self._runtime.inspect_container(id)
            self._take(found, began_at)
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                return error
            self.forget({id})
        except Exception as error:  # of this container, and of no other
            self._inspected.pop(id, None)
            return self.unexplained.note(f"inspect container {id[:12]}", id, error)
        self.unexplained.forget(id)
        return None

    def take_look(self, look: Look) -> None:
        """Take a look as an inspect of that time. An end since then shows itself: the process is watched from now
        on."""
        if look.at > self._inspected_at.get(look.container.id, -math.inf):
            self._take(look.container, look.at)

    def recall(self, remembered: InspectedContainer, at: float) -> None:
        """A container of ours that is at ``at`` (monotonic seconds) as an earlier process has inspected it."""
        try:
            self._take(remembered, at, is_ours=True)
        except Exception as error:
            self.unexplained.note(f"remember container {remembered.id[:12]}", remembered.id, error)

    def _take(self, found: InspectedContainer, at: float, *, is_ours: bool = False) -> None:
        """``is_ours``: its labels were verified in a list. Raises what `_inspect_ended` raises; then nothing is known
        of the container."""
        self._inspected[found.id], self._inspected_at[found.id] = found, at
        try:
            self._inspect_ended(found.id, found, ours=is_ours or self.ownership.owns(found))
        except Exception:
            del self._inspected[found.id], self._inspected_at[found.id]
            raise

    def _inspect_ended(self, id: str, found: InspectedContainer, *, ours: bool) -> None:
        """Update everything that depends on an inspect: owner, pidfd, termination message."""
        self._on_change()
        uid, state = read_uid(found.labels), container_state(found.state)
        reported = found
        if has_lost_end(self._shown(found)):
            state, reported = ContainerState.EXITED, msgspec.structs.replace(found, exit_code=UNKNOWN_EXIT_CODE)
        if ours:
            self._ours[uid] = self._ours.get(uid, frozenset()) | {id}
        else:
            self.unknown_containers.inspected(id)
            if self.is_ours(id):  # it was renamed
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
            found = reported = msgspec.structs.replace(found, exit_code=UNKNOWN_EXIT_CODE)
            state = ContainerState.EXITED
        if ours and state is ContainerState.EXITED and not found.is_infra:
            self._unread[id] = reported
            self._inspected[id] = self._with_oom_kill(uid, id, found)
        else:
            self._forget_message(id)

    def _shown(self, found: InspectedContainer) -> InspectedContainer:
        """The container without an end that is none of its newest run."""
        return without_earlier_end(found) if found.id in self._cut_short else found

    def _with_oom_kill(self, uid: str, id: str, end: T) -> T:
        """An end of a container as Podman or its monitor tells it, with what these may not know."""
        is_killed = self._oom_kills.has_killed(uid, id) and end.exit_code == KILLED
        return msgspec.structs.replace(end, oom_killed=True) if is_killed else end

    def forget(self, ids: Set[str]) -> None:
        """The containers are gone."""
        if ids:
            self._on_change()
        for id in ids:
            known = self._inspected.pop(id, None)
            uid = read_uid(known.labels) if known is not None else self._owner_of(id)
            if self._exits.is_alive(id):
                self._on_forgotten(uid)
            self._disown(uid, id)
            self._oom_kills.forget(uid, id)
            self._forget_message(id)
            self.unexplained.forget(id)
            self._stopping.pop(id, None)
            self._inspected_at.pop(id, None)
            self._exits.forget(id)

    def forget_removed(self, uid: str, removed: Set[str]) -> Set[str]:
        """Podman has answered that these containers, and everything in these sandboxes, were removed: an id never comes
        back. The ids of those containers that were known."""
        known = (self._inspected[id] for id in self._ours.get(uid, frozenset()) & self._inspected.keys())
        gone = {container.id for container in known if removed & {container.id, container.pod_id}}
        self.forget(gone)
        return gone

    def listed(self, containers: Iterable[ListedContainer]) -> None:
        """Everything was listed. To be called before what the list has shown is inspected."""
        self._cut_short = cut_short(containers)

    def retain(self, ids: Set[str]) -> None:
        """Everything was listed, and these are there: the others are gone."""
        self._watch_again()
        self.forget(self._inspected.keys() - ids)
        self._exits.retain(ids)

    def everything_was_listed(self) -> None:
        """Pods that are seen from now on are new."""
        self._oom_kills.adopted()
        self._oom_kills.drop_gone()

    def _watch_again(self) -> None:
        """Watch containers again for which there was no file descriptor."""
        for id in sorted(self._exits.unwatched & self._inspected.keys()):
            try:
                self._exits.watch(self._inspected[id], read_uid(self._inspected[id].labels))
            except Exception as error:
                self.unexplained.note(f"watch container {id[:12]}", id, error)

    def _disown(self, uid: str, id: str) -> None:
        if left := self._ours.pop(uid, frozenset()) - {id}:
            self._ours[uid] = left

    def _owner_of(self, id: str) -> str:
        """UID of the pod of a container of ours whose last inspect failed; empty for every other one."""
        return next((uid for uid, ids in self._ours.items() if id in ids), "")

    def close(self) -> None:
        """Stop watching processes."""
        self._exits.close()
        self.files.close()

    def believe_old_records(self, uid: str) -> None:
        """Take records that have stood for what Podman says as an inspect. It notes an end from the same file: an
        inspect would say the same, and a list that shows another run has it inspected."""
        for id in self._exits.unconfirmed & self._ours.get(uid, frozenset()) & self._inspected.keys():
            end = self._exits.record_of(id, self._inspected[id].pid)
            if end is not None and not self._exits.is_reported(id):
                self._inspected[id] = with_end(self._inspected[id], end)
                self._inspect_ended(id, self._inspected[id], ours=True)

    async def read_messages(self, uid: str) -> None:
        """Read the termination messages of containers of that pod that have ended. To be called before its `status` or
        `with_records`. A disk that does not answer is what the message says."""
        unread = {id: self._unread[id] for id in self._ours.get(uid, frozenset()) & self._unread.keys()}
        if not (ended := self._recorded(uid) | unread):
            return
        try:
            messages = await self.files.run_unless_hung(
                layout.SUBJECT, read_termination_messages, ended, self._pods_dir, self.pod_logs_dir
            )
        except OSError as error:
            messages = dict.fromkeys(ended, unreadable(error))
        for id, message in messages.items():
            if id in self._inspected:  # else it was forgotten meanwhile
                self._messages[id] = message
            if self._unread.get(id) is ended[id]:
                del self._unread[id]

    def _forget_message(self, id: str) -> None:
        self._messages.pop(id, None)
        self._unread.pop(id, None)

    def reported(self, uid: str) -> Set[str]:
        """Containers of that pod whose ends are known from records alone. Reads records that nobody has read yet."""
        ended = self._exits.unconfirmed & self._ours.get(uid, frozenset()) & self._inspected.keys()
        return {id for id in ended if self._exits.is_reported(id)}

    def with_records(self, status: RuntimePodStatus) -> RuntimePodStatus:
        """A pod's newest status with the ends that monitors have recorded since. Its time is not renewed: the rest of
        the pod was not observed again.

        Ends are not added where the sandbox's end is that of all containers, and shows itself a moment later: there
        only an observation is right.
        """
        noted = self._exits.noted & self._inspected.keys() & self._messages.keys()
        ids = [c.id for c in status.containers if c.id in noted and not c.leaves_processes] if noted else []
        if not ids:
            return status
        records = self._records(self._inspected[id] for id in ids)
        return with_termination_messages(with_recorded_ends(status, records), self._messages)

    def status(self, uid: str, pods: Iterable[ListedPod], ids: Iterable[str], started_at: float) -> RuntimePodStatus:
        """Status from these pods and containers, with what Podman does not know or forgets."""
        members = self._ours.get(uid, frozenset())
        ours = [self._shown(self._inspected[id]) for id in ids if id in members]
        ends = {c.id: end for c in ours if (end := self._exits.end_of(c.id, c.pid)) is not None}
        status = pod_status(uid, pods, ours, started_at)
        if any(container.leaves_processes for container in status.containers):
            ends |= {c.id: self._clock.now().wall for c in self._exiting_infra(ours)}
        status = with_recorded_ends(status, self._records(ours))
        status = with_unseen_ends(status, ends)
        status = with_stuck(status, [c.id for c in status.containers if self._is_stuck(c)])
        return with_termination_messages(status, self._messages)

    def _records(self, containers: Iterable[InspectedContainer]) -> dict[str, RecordedEnd]:
        """Recorded ends by id, of containers whose end Podman does not show yet."""
        ends = {c.id: end for c in containers if (end := self._exits.record_of(c.id, c.pid)) is not None}
        return {id: self._with_oom_kill(read_uid(self._inspected[id].labels), id, end) for id, end in ends.items()}

    def _recorded(self, uid: str) -> dict[str, InspectedContainer]:
        """Containers of that pod whose end is known from a record alone, and whose message was not read yet."""
        ours = self._ours.get(uid, frozenset()) & self._inspected.keys()
        unread = (self._inspected[id] for id in ours - self._messages.keys())
        ended = self._records(container for container in unread if not container.is_infra)
        return {id: msgspec.structs.replace(self._inspected[id], exit_code=end.exit_code) for id, end in ended.items()}

    def _is_stuck(self, container: RuntimeContainerStatus) -> bool:
        """Whether the container's stop was begun by another client and not ended."""
        since = self._stopping.get(container.id)
        patience_s = container.grace_period_s + self._stuck_slack_s
        return since is not None and self._clock.now().mono - since >= patience_s

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


class Unexplained:
    """Unexpected errors by the id of the container or the uid of the pod, until it can be observed. Logged once."""

    def __init__(self) -> None:
        self._logs: dict[str, FailureLog] = {}

    def note(self, call: str, id: str, error: Exception) -> RuntimeCallError:
        """The error as a failed call. A row of the same errors is logged once."""
        self._logs.setdefault(id, FailureLog(call)).note(error)
        return unexpected(error, call)

    def forget(self, id: str) -> None:
        """The container or pod could be observed, or is gone."""
        self._logs.pop(id, None)
