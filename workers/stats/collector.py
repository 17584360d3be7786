"""One housekeeping: from the pods that run to a snapshot of what they, and the node, use. Blocks: for a thread."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ipc.host.clock import Clock
from workers.proc import cgroups
from workers.proc.procfs import boot_time, parent_of, start_ticks
from workers.stats import flat_files, groups, host, processes
from workers.stats.accounts import Counters, Process, ProcessAccount
from workers.stats.cgroup import OwnCgroup
from workers.stats.files import Files
from workers.stats.groups import GroupAccount, Measured, figures_of
from workers.stats.process_table import ProcessTable, Root
from workers.stats.rates import Rates
from workers.stats.targets import ContainerTarget, PodDirectories, PodTarget
from workers.statsapi.values import (
    ContainerSample,
    Memory,
    Network,
    NodeSample,
    PodSample,
    Processes,
    Snapshot,
    Source,
    SystemContainer,
    decode_snapshot,
    encode_snapshot,
)
from workers.userns.unshare import Unshare

KUBELET: Final = "kubelet"
RUNTIME: Final = "runtime"
PODS: Final = "pods"
"""Names of system containers (statsapi.SystemContainerKubelet and others)."""
NODE: Final = "node"
PODMAN: Final = "podman"


class Collector:
    """Remembers between two rounds what rates and counters need. For one thread at a time."""

    def __init__(
        self,
        node_name: str,
        directories: PodDirectories,
        clock: Clock,
        unshare: Unshare,
        agent_pid: int | None = None,
    ) -> None:
        """``agent_pid``: the master's; by default the parent of this process's parent, which is the zygote."""
        self._node_name = node_name
        self._clock = clock
        self._agent_pid = agent_pid if agent_pid is not None else parent_of(os.getppid())
        self._table = ProcessTable()
        self._accounts: dict[str, ProcessAccount] = {}
        """By container id."""
        self._pods: dict[str, GroupAccount] = {}
        """By uid."""
        self._all_pods = GroupAccount()
        self._cgroups: dict[str, OwnCgroup | None] = {}
        """By container id; None of one that has none of its own."""
        self._measured: dict[str, tuple[Sequence[Process], Measured]] = {}
        """By container id: its processes in the last round, and what they have shown."""
        self._networks: dict[str, tuple[bytes, Network]] = {}
        """By uid: text and content of the last round."""
        self._rates = Rates()
        self._files = Files(directories, clock, unshare)
        self._has_swap = True

    def resume(self, packed: bytes) -> int:
        """Go on after the last snapshot of an earlier incarnation of this process; the number of the next one."""
        try:
            last = decode_snapshot(packed)
        except msgspec.DecodeError:
            return 0
        self.remember(last)
        return last.number + 1

    def collect_encoded(self, pods: Sequence[PodTarget], number: int, max_bytes: int) -> bytes:
        """A snapshot as it lies in shared memory."""
        return encode_snapshot(self.collect(pods, number), max_bytes)

    def remember(self, last: Snapshot) -> None:
        """Go on with these counters."""
        for pod in last.pods:
            members = [*pod.containers, *([pod.infra] if pod.infra is not None else [])]
            for container in members:
                self._accounts[container.id] = ProcessAccount(_counters_of(container))
            figures = {container.id: figures_of(container.cpu, container.memory) for container in members}
            self._pods[pod.uid] = GroupAccount(figures, figures_of(pod.cpu, pod.memory))
        everything = next((c for c in last.node.system_containers if c.name == PODS), None)
        if everything is not None:
            pods = {pod.uid: figures_of(pod.cpu, pod.memory) for pod in last.pods}
            self._all_pods = GroupAccount(pods, figures_of(everything.cpu, everything.memory))

    def rest(self) -> None:
        """Nobody asks any more. Counters stay, so that they never go backwards."""
        self._table.forget()
        self._rates.forget()
        self._measured.clear()
        self._networks.clear()
        for account in self._accounts.values():
            account.forget_processes()
        for own in filter(None, self._cgroups.values()):
            own.forget()

    def collect(self, pods: Sequence[PodTarget], number: int) -> Snapshot:
        """Measure everything once. ``number`` is the snapshot's. Reads many files, raises nothing of theirs."""
        began = self._clock.now()
        containers = {member.id: member for pod in pods for member in pod.members}
        self._retain(containers, pods)
        self._files.begin_round(pods)
        host_memory = host.read_memory(began.wall)
        if host_memory.has_swap != self._has_swap:
            self._has_swap = host_memory.has_swap
            self._measured.clear()
        members = self._table.scan(self._roots(containers.values()))
        measured = {id: self._measure(target, members.get(id, ())) for id, target in containers.items()}
        samples = tuple(self._pod(pod, measured, members) for pod in pods)
        node = self._node(samples, host_memory.memory, members)
        self._rates.round_over()
        return Snapshot(time=began.wall, mono=began.mono, number=number, node=node, pods=samples)

    # --- processes and cgroups ---

    def _retain(self, containers: Mapping[str, ContainerTarget], pods: Sequence[PodTarget]) -> None:
        """Forget what is gone; find the cgroups of what is new."""
        self._cgroups = {
            id: self._cgroups[id] if id in self._cgroups else _own_cgroup(target) for id, target in containers.items()
        }
        wanted = {*containers, KUBELET, RUNTIME}
        self._accounts = {id: account for id, account in self._accounts.items() if id in wanted}
        self._measured = {id: known for id, known in self._measured.items() if id in wanted}
        uids = {pod.uid for pod in pods}
        self._pods = {uid: account for uid, account in self._pods.items() if uid in uids}
        self._networks = {uid: known for uid, known in self._networks.items() if uid in uids}

    def _roots(self, containers: Iterable[ContainerTarget]) -> list[Root]:
        """Containers whose cgroup does not tell everything, and the agent's own processes."""
        owned = ((container, self._cgroups[container.id]) for container in containers)
        roots = [Root(c.id, c.pid, c.start_ticks) for c, own in owned if own is None or not own.has_memory]
        roots.append(Root(KUBELET, self._agent_pid))
        children = [child for zygote in host.children_of(self._agent_pid) for child in host.children_of(zygote)]
        roots += [Root(RUNTIME, pid) for pid in children if host.command_of(pid) == PODMAN][:1]
        return roots

    def _measure(self, target: ContainerTarget, members: Sequence[Process]) -> Measured:
        now = self._clock.now()
        own = self._cgroups[target.id]
        found = self._by_processes(target.id, members, now.wall) if members else Measured()
        if own is not None:
            reported = own.read(now.wall)
            found = Measured(
                cpu=reported.cpu or found.cpu,
                memory=reported.memory or found.memory,
                io=reported.io,
                processes=found.processes or reported.processes,
            )
        if found.cpu is None:
            return found
        return msgspec.structs.replace(found, cpu=self._rates.with_rate(target.id, found.cpu, now.mono))

    def _by_processes(self, name: str, members: Sequence[Process], time: float) -> Measured:
        """Processes that have neither run nor faulted nor another size have everything as before."""
        before, measured = self._measured.get(name, ((), None))
        if measured is not None and before == members:
            return measured.at(time)
        account = self._accounts.get(name)
        if account is None:
            account = self._accounts[name] = ProcessAccount()
        counters = account.add(members)
        measured = Measured(
            cpu=processes.cpu_of(counters, time),
            memory=processes.memory_of(members, counters, time, has_swap=self._has_swap),
            processes=processes.count_of(members),
        )
        self._measured[name] = (members, measured)
        return measured

    # --- pods ---

    def _pod(
        self, pod: PodTarget, measured: Mapping[str, Measured], members: Mapping[str, Sequence[Process]]
    ) -> PodSample:
        now = self._clock.now()
        containers = tuple(self._container(pod, target, measured[target.id]) for target in pod.containers)
        parts = [measured[member.id] for member in pod.members]
        figures = {member.id: figures_of(measured[member.id].cpu, measured[member.id].memory) for member in pod.members}
        account = self._pods.setdefault(pod.uid, GroupAccount())
        summed = account.add(figures)
        volumes = tuple(self._files.volumes(pod))
        return PodSample(
            uid=pod.uid,
            name=pod.name,
            namespace=pod.namespace,
            started_at=pod.started_at,
            containers=containers,
            infra=self._container(pod, pod.infra, measured[pod.infra.id]) if pod.infra is not None else None,
            cpu=self._rates.with_rate(pod.uid, groups.cpu_of(summed, now.wall), now.mono),
            memory=groups.memory_of(summed, [part.memory for part in parts], now.wall),
            network=self._network(pod, members, now.wall),
            processes=_all_processes([part.processes for part in parts]),
            volumes=volumes,
            ephemeral_storage=self._files.ephemeral(pod, containers, volumes),
        )

    def _network(self, pod: PodTarget, members: Mapping[str, Sequence[Process]], time: float) -> Network | None:
        """Counters of the network in which a process that is certainly the pod's lives."""
        if pod.host_network:
            return None
        for member in reversed(pod.members):
            if member.id in members or (member.start_ticks and start_ticks(member.pid) == member.start_ticks):
                return self._network_of(pod.uid, flat_files.read(f"/proc/{member.pid}/net/dev"), time)
        return None

    def _network_of(self, uid: str, text: bytes | None, time: float) -> Network | None:
        before = self._networks.get(uid)
        if before is not None and before[0] == text:
            return msgspec.structs.replace(before[1], time=time)
        network = flat_files.network(text, time)
        if text is not None and network is not None:
            self._networks[uid] = (text, network)
        return network

    def _container(self, pod: PodTarget, target: ContainerTarget, found: Measured) -> ContainerSample:
        return ContainerSample(
            id=target.id,
            name=target.name,
            attempt=target.attempt,
            image=target.image,
            started_at=target.started_at,
            cpu=found.cpu,
            memory=found.memory,
            io=found.io,
            processes=found.processes,
            rootfs=self._files.rootfs(target),
            logs=self._files.logs(pod, target),
        )

    # --- the node ---

    def _node(
        self, pods: Sequence[PodSample], memory: Memory | None, members: Mapping[str, Sequence[Process]]
    ) -> NodeSample:
        now = self._clock.now()
        cpu = host.read_cpu(now.wall)
        return NodeSample(
            name=self._node_name,
            started_at=boot_time(),
            cpu=self._rates.with_rate(NODE, cpu, now.mono) if cpu is not None else None,
            memory=memory,
            io=host.read_io(now.wall),
            network=flat_files.network(flat_files.read("/proc/net/dev"), now.wall),
            fs=self._files.node(),
            image_fs=self._files.images(),
            process_limit=host.read_process_limit(now.wall),
            system_containers=tuple(self._system_containers(pods, members)),
        )

    def _system_containers(
        self, pods: Sequence[PodSample], members: Mapping[str, Sequence[Process]]
    ) -> Iterable[SystemContainer]:
        now = self._clock.now()
        for name in (KUBELET, RUNTIME):
            if found := members.get(name):
                measured = self._by_processes(name, found, now.wall)
                assert measured.cpu is not None
                cpu = self._rates.with_rate(name, measured.cpu, now.mono)
                yield SystemContainer(name=name, cpu=cpu, memory=measured.memory)
        summed = self._all_pods.add({pod.uid: figures_of(pod.cpu, pod.memory) for pod in pods})
        yield SystemContainer(
            name=PODS,
            cpu=self._rates.with_rate(PODS, groups.cpu_of(summed, now.wall), now.mono),
            memory=groups.memory_of(summed, [pod.memory for pod in pods], now.wall),
        )


def _own_cgroup(target: ContainerTarget) -> OwnCgroup | None:
    directory = cgroups.own_cgroup(target.pid, target.id)
    return OwnCgroup(directory, turn=target.pid) if directory else None


def _all_processes(several: Sequence[Processes | None]) -> Processes:
    return Processes(
        source=Source.CONTAINERS,
        count=groups.total([each.count if each is not None else None for each in several]),
        threads=groups.total([each.threads if each is not None else None for each in several]),
    )


def _counters_of(container: ContainerSample) -> Counters:
    """Counters that a sample was made of; none of one that a cgroup has told."""
    cpu, memory = container.cpu, container.memory
    ticks = cpu if cpu is not None and cpu.source is Source.PROCESSES else None
    faults = memory if memory is not None and memory.source is Source.PROCESSES else None
    return Counters(
        user_ticks=(ticks.user_ns or 0) // processes.NS_PER_TICK if ticks is not None else 0,
        system_ticks=(ticks.system_ns or 0) // processes.NS_PER_TICK if ticks is not None else 0,
        page_faults=(faults.page_faults or 0) if faults is not None else 0,
        major_page_faults=(faults.major_page_faults or 0) if faults is not None else 0,
    )
