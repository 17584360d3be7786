"""Effects of a decision's actions on what is observed, one at a time, with faults; and a watch over them.

The steps are those of ``workers.kuberuntime.sync_pod``. The model remembers what a runtime would not show any more
(which init container came to its end in which sandbox, which attempts had a log), so the watch does not believe the
decision.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from ipc.k8s.api.pod_containers import find_container
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.hashing import hash_in
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus, SandboxState
from ipc.k8s.kubecontainer.restart_policy import (
    is_restartable_init,
    should_all_containers_restart,
    should_container_be_restarted,
)
from ipc.k8s.podresources.allocation import resizable_part
from tests.support.pods import UID, sandbox
from workers.compute.crash_loop_backoff import crash_loop_limits
from workers.compute.kill_spec import ALIVE, kill_all
from workers.compute.pod_actions import compute_pod_actions
from workers.compute.types import ContainerStart, PodActions
from workers.logs.start_error import START_ERROR_EXIT_CODE

LIMITS = crash_loop_limits(300.0)
ROUND_S = 301.0
"""Between two syncs, in seconds: longer than any back-off."""
FIRST_WALL = 1_800_000_000.0


class Flavour(enum.Enum):
    """How one call goes wrong."""

    FAILED = "failed"
    LOST = "timed out, or died before it"
    UNHEARD = "timed out, or died after it, with its effect"


class SyncOver(Exception):
    """The sync ends before its last step."""


@dataclass
class Model:
    """One pod's runtime. ``exits``: container name -> exit codes of its runs, one after the other; the last one is
    for all later runs, None is to run on."""

    of: Pod
    exits: Mapping[str, tuple[int | None, ...]]
    faults: dict[int, Flavour] = field(default_factory=dict)
    """Call number -> what happens to it."""
    edits: dict[int, Pod] = field(default_factory=dict)
    """Call number -> the manifest from then on; the sync under way is cancelled."""
    calls: int = 0
    wall: float = FIRST_WALL
    status: RuntimePodStatus = field(default_factory=lambda: RuntimePodStatus(uid=UID))
    forgets: bool = False
    """The master is another one at each sync, and knows nothing of a restart that has begun."""
    restarting: bool = False
    """Whether the master reports AllContainersRestarting."""
    is_over: bool = False
    """The pod was stopped for good."""
    started: list[str] = field(default_factory=list)
    failed_starts: list[str] = field(default_factory=list)
    _runs: dict[str, int] = field(default_factory=dict)
    _attempts: dict[str, int] = field(default_factory=dict)
    """Container name -> newest attempt that has a log."""
    _done: dict[tuple[str, str], str] = field(default_factory=dict)
    """(sandbox, init container) -> the hash with which it came to its end there, or started as a sidecar."""
    _recorded: dict[str, str] = field(default_factory=dict)
    """Init container -> the hash with which it came to its end in a sandbox of which nothing is left."""
    _goes_down: bool = False
    """A restart of all containers was seen to be due, and something is left of before."""
    _initialized: set[str] = field(default_factory=set)
    """Sandboxes in which a regular container was made."""

    # --- deciding and carrying out, as workers.kuberuntime.sync_pod does ---

    def sync(self) -> PodActions:
        """One whole sync, unless a fault ends it."""
        self.wall += ROUND_S
        self._master_looks()
        actions = compute_pod_actions(self.of, self.status, self.wall, LIMITS, restarting_all=self.restarting)
        self._check_decision(actions)
        try:
            self._carry_out(actions)
        except SyncOver:
            return actions
        self.is_over = actions.kill_pod and not actions.create_sandbox
        return actions

    def advance(self) -> bool:
        """Processes that come to an end do so; whether one did."""
        ending = [
            (c, code) for c in self.status.containers if c.state in ALIVE and (code := self._exit_code(c)) is not None
        ]
        for container, code in ending:
            self._end(container, code)
        return bool(ending)

    @classmethod
    def in_the_middle(cls, of: Pod, exits: Mapping[str, tuple[int | None, ...]], status: RuntimePodStatus) -> Model:
        """Nobody knows how it came to that, so what exists says nothing of what has to come first in its sandboxes."""
        made = cls(of, exits, status=status)
        made._initialized |= {box.id for box in status.sandboxes}
        for container in (c for c in status.containers if c.state is not ContainerState.CREATED):
            made._attempts[container.name] = max(container.attempt, made._attempts.get(container.name, 0))
        return made

    def running(self) -> list[str]:
        return sorted(c.name for c in self.status.containers if c.state in ALIVE)

    def outdated(self) -> list[str]:
        """Names of what runs by another definition than the manifest's."""
        alive = [c for c in self.status.containers if c.state in ALIVE]
        return [c.name for c in alive if c.hash != hash_in(self.of.spec, self._definition(c.name))]

    def end(self, name: str, exit_code: int) -> None:
        """A process ends by itself."""
        for container in self.status.containers:
            if container.name == name and container.state in ALIVE:
                self._end(container, exit_code)

    def lose_sandbox(self) -> None:
        """With everything in it, as a reboot does."""
        for container in self.status.containers:
            if container.state in ALIVE:
                self._end(container, 137)
        self._take_sandbox_down(self.status.sandboxes[0].id)

    def lose_everything(self) -> None:
        """Nothing is left but the record of ends: in the next sandbox what has come to its end counts as done."""
        for container in self.status.containers:
            if container.state is ContainerState.RUNNING:
                self._end(container, 137)
        ran = (c for c in self.status.containers if c.state is ContainerState.EXITED)
        inits = {c.name for c in self.of.spec.init_containers if not is_restartable_init(c)}
        self._recorded |= {name: hash for (_, name), hash in self._done.items() if name in inits}
        self._put(sandboxes=(), containers=tuple(msgspec.structs.replace(c, is_remembered=True) for c in ran))

    def _master_looks(self) -> None:
        """supervisor.status: True from the first sight of the reason until nothing is left."""
        names = {c.name for c in (*self.of.spec.init_containers, *self.of.spec.containers)}
        is_left = any(c.name in names for c in self.status.containers)
        before = self.restarting and not self.forgets
        self.restarting = is_left and should_all_containers_restart(self.of.spec, self.status, before)
        self._goes_down |= self.restarting

    def _carry_out(self, actions: PodActions) -> None:
        resets = [reset.kill for reset in actions.containers_to_reset if reset.kill is not None]
        if actions.kill_pod:
            for kill in kill_all(self.of, self.status):
                self._must(lambda id=kill.id: self._kill(id))  # type: ignore[misc]
            for box in self.status.sandboxes:
                self._must(lambda id=box.id: self._take_sandbox_down(id))  # type: ignore[misc]
        for kill in () if actions.kill_pod else (*actions.containers_to_kill, *resets):
            self._must(lambda id=kill.id: self._kill(id))  # type: ignore[misc]
            if kill.remove:
                self._must(lambda id=kill.id: self._remove(id))  # type: ignore[misc]
        for reset in actions.containers_to_reset:
            self._must(lambda id=reset.container.id: self._reset(id))  # type: ignore[misc]
        for pruned in actions.init_containers_to_prune:
            self._call(lambda id=pruned.id: self._remove(id))  # type: ignore[misc]
        if actions.create_sandbox:
            self._must(lambda: self._make_sandbox(actions.attempt))
        self._start_each(actions.ephemeral_containers_to_start)
        self._start_init(actions.init_containers_to_start)
        self._start_each(actions.containers_to_start)
        for dead in actions.containers_to_remove:
            self._call(lambda id=dead.id: self._remove(id))  # type: ignore[misc]
        for box in actions.sandboxes_to_remove:
            self._call(lambda id=box.id: self._remove_sandbox(id))  # type: ignore[misc]

    def _start_each(self, starts: Iterable[ContainerStart]) -> None:
        for start in starts:
            self._start_container(start)

    def _start_init(self, starts: Iterable[ContainerStart]) -> None:
        for start in starts:
            if not self._start_container(start) and not is_restartable_init(self._definition(start.name)):
                return

    def _start_container(self, start: ContainerStart) -> bool:
        id = start.created_id or f"{start.name}-{self._next_attempt(start)}"
        if not start.created_id and not self._call(lambda: self._make(start, id)):
            return False
        return self._call(lambda: self._start(id), failing=lambda: self._start_failed(id))

    def _must(self, effect: Callable[[], None]) -> None:
        """A call without whose success the sync cannot go on."""
        if not self._call(effect):
            raise SyncOver

    def _call(self, effect: Callable[[], None], failing: Callable[[], None] | None = None) -> bool:
        """False when it failed; ``failing`` is what it leaves then."""
        self.calls += 1
        if self.calls in self.edits:
            self.of = self.edits[self.calls]
            raise SyncOver
        fault = self.faults.get(self.calls)
        if fault is Flavour.FAILED:
            if failing is not None:
                failing()
            return False
        if fault is not Flavour.LOST:
            effect()
        if fault is not None:
            raise SyncOver
        return True

    # --- effects ---

    def _make_sandbox(self, attempt: int) -> None:
        assert all(box.attempt != attempt for box in self.status.sandboxes), "name in use"
        made = sandbox(self.of, attempt, id=f"made-by-call-{self.calls}")
        self._put(sandboxes=(made, *self.status.sandboxes))

    def _take_sandbox_down(self, id: str) -> None:
        down = {box.id: box for box in self.status.sandboxes}
        down[id] = msgspec.structs.replace(down[id], state=SandboxState.NOT_READY)
        self._put(sandboxes=tuple(down.values()))

    def _remove_sandbox(self, id: str) -> None:
        assert not [c for c in self.status.containers if c.sandbox_id == id and c.state in ALIVE]
        self._put(
            sandboxes=tuple(box for box in self.status.sandboxes if box.id != id),
            containers=tuple(c for c in self.status.containers if c.sandbox_id != id),
        )

    def _make(self, start: ContainerStart, id: str) -> None:
        definition, attempt = self._definition(start.name), self._next_attempt(start)
        assert attempt > self._attempts.get(start.name, -1), f"attempt {attempt} of {start.name} for the second time"
        assert all(c.id != id for c in self.status.containers), "name in use"
        if start.name in self._regular_names():
            self._initialized.add(self.status.sandboxes[0].id)
        made = RuntimeContainerStatus(
            id=id,
            name=start.name,
            attempt=attempt,
            state=ContainerState.CREATED,
            sandbox_id=self.status.sandboxes[0].id,
            hash=hash_in(self.of.spec, definition),
            backoff_s=start.backoff_s,
            created_at=self.wall,
            resources=resizable_part(definition.resources),
        )
        ordered = sorted((*self.status.containers, made), key=lambda c: (c.name, -c.attempt))
        self._put(containers=tuple(ordered))

    def _start(self, id: str) -> None:
        container = self._find(id)
        self._check_start(container)
        self.started.append(container.name)
        self._runs[container.name] = self._runs.get(container.name, 0) + 1
        self._attempts[container.name] = container.attempt
        if is_restartable_init(self._definition(container.name)):
            self._done[container.sandbox_id, container.name] = container.hash
        self._change(container, state=ContainerState.RUNNING, started_at=self.wall)

    def _start_failed(self, id: str) -> None:
        """As workers.logs.start_error shows it."""
        container = self._find(id)
        self.failed_starts.append(container.name)
        self._attempts[container.name] = container.attempt
        self._end(container, START_ERROR_EXIT_CODE)

    def _kill(self, id: str) -> None:
        self._end(self._find(id), 137)

    def _end(self, container: RuntimeContainerStatus, exit_code: int) -> None:
        if exit_code == 0 and container.state is ContainerState.RUNNING:
            self._done[container.sandbox_id, container.name] = container.hash
        self._change(container, state=ContainerState.EXITED, exit_code=exit_code, finished_at=self.wall)

    def _reset(self, id: str) -> None:
        self._done.pop((self._find(id).sandbox_id, self._find(id).name), None)
        self._remove(id)
        names = {c.name for c in (*self.of.spec.init_containers, *self.of.spec.containers)}
        if not [c for c in self.status.containers if c.name in names]:
            self._done.clear()
            self._initialized.clear()
            self._goes_down = False

    def _remove(self, id: str) -> None:
        assert self._find(id).state not in ALIVE, "removes what may run"
        self._put(containers=tuple(c for c in self.status.containers if c.id != id))

    def _change(self, container: RuntimeContainerStatus, **fields: object) -> None:
        changed = msgspec.structs.replace(container, **fields)
        self._put(containers=tuple(changed if c.id == container.id else c for c in self.status.containers))

    def _put(self, **fields: object) -> None:
        self.status = msgspec.structs.replace(self.status, **fields)

    def _find(self, id: str) -> RuntimeContainerStatus:
        return next(c for c in self.status.containers if c.id == id)

    def _definition(self, name: str) -> Container:
        found = find_container(self.of.spec, name)
        assert found is not None, f"{name} is not in the manifest"
        return found.container

    def _next_attempt(self, start: ContainerStart) -> int:
        """The newest container may be gone: then the logs tell more."""
        return max(start.attempt, self._attempts.get(start.name, -1) + 1)

    def _exit_code(self, container: RuntimeContainerStatus) -> int | None:
        codes = self.exits.get(container.name, (None,))
        return codes[min(self._runs.get(container.name, 1), len(codes)) - 1]

    def _regular_names(self) -> set[str]:
        return {container.name for container in self.of.spec.containers}

    # --- the watch ---

    def _check_decision(self, actions: PodActions) -> None:
        starts = (
            *actions.ephemeral_containers_to_start,
            *actions.init_containers_to_start,
            *actions.containers_to_start,
        )
        names = [start.name for start in starts]
        assert len(names) == len(set(names)), f"starts one name twice: {names}"

    def _check_start(self, container: RuntimeContainerStatus) -> None:
        assert container.name not in self.running(), f"{container.name} runs twice"
        assert not self._goes_down, f"{container.name} starts while all containers are to be restarted"
        home = container.sandbox_id
        if container.name in self._regular_names():
            behind = self.of.spec.init_containers
        else:
            names = [c.name for c in self.of.spec.init_containers]
            position = names.index(container.name) if container.name in names else 0
            behind = self.of.spec.init_containers[:position]
        if home not in self._initialized:
            missing = [c.name for c in behind if not self._is_done(home, c)]
            assert not missing, f"{container.name} starts before {missing}"
        if container.name not in self._regular_names():
            assert not self._mains_are_done(), f"{container.name} starts after the regular containers are done"

    def _is_done(self, home: str, container: Container) -> bool:
        done = self._done.get((home, container.name), self._recorded.get(container.name))
        return done == hash_in(self.of.spec, container) or (done is not None and is_restartable_init(container))

    def _mains_are_done(self) -> bool:
        home = self.status.sandboxes[0].id
        newest = [(c, self.status.newest(c.name)) for c in self.of.spec.containers]
        return all(
            n is not None
            and n.state is ContainerState.EXITED
            and n.sandbox_id == home
            and n.hash == hash_in(self.of.spec, c)
            and not should_container_be_restarted(c, self.of.spec, n)
            for c, n in newest
        ) and not should_all_containers_restart(self.of.spec, self.status, self.restarting)
