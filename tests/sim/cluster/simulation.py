"""A node of a cluster whose API server fails in every way: one seed, one thread, no time of its own.

    python -m tests.sim --cluster --seeds 1..40

The real part that speaks to the cluster, the real source, merge, checkpoint, sync loop and workers, on simulated
time. Noise first; then the server is well, perhaps for long, and everything has to agree; then there may be another
host of the same node name; then the server is away for long, perhaps with a death of the agent; then it loses the Node;
then it is restored from an older backup; then all pods are deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from ipc.k8s.api.annotations import CONFIG_HASH
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import TERMINAL_PHASES
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.link.messages.api_server import PodChanged
from ipc.link.messages.event_reasons import UNSUPPORTED_FIELD
from ipc.link.wire.cluster_settings import ClusterSettings
from supervisor.config.settings import ClusterSection, CrashLoopBackOffSettings, Seconds, Settings, WorkersSettings
from supervisor.processes.worker_pool import NODE_SLOT
from tests.fakes.clock import SimClock
from tests.sim.agent import POD_SLOTS, SLOTS
from tests.sim.children import HUNG_S
from tests.sim.cluster.machine import machine_installed
from tests.sim.cluster.master import NodeAgent
from tests.sim.cluster.network import CALM, STORM, Reach, SimNetwork
from tests.sim.cluster.rules import ServerRules, differences
from tests.sim.cluster.server import LEASES, NODE, SimServer
from tests.sim.cluster.twin import Twin
from tests.sim.cluster.values import FOREIGN_VOLUME, OWN_VOLUME, PodValues
from tests.sim.disk import NO_FILES
from tests.sim.faults import Faults
from tests.sim.frame import DOWN_S, STEP_S, Frame, Outcome, outcome_of
from tests.sim.given import Given
from tests.sim.host import SimHost
from tests.sim.loop import NOBODY
from tests.sim.objects import SimObjects
from tests.sim.oracle import MAX_BACKOFF_S, complaints
from tests.sim.pods import PRESENT, PROGRAMS, PULLED, PodMaker
from tests.sim.pressure import Marks
from tests.sim.probes import SimProbes
from tests.sim.runtime import NOISY, QUIET, SimPodman, uid_of
from tests.sim.trace import Trace
from tests.sim.watch import Watch
from tests.sim.worker_settings import worker_settings
from tests.sim.world import PODS_PER_WORKER, WALL
from tests.support.servers.kube_api.failures import JsonObject, Refusal
from tests.support.servers.kube_api.pod_updates import MIRROR

HOUR_S: Final = 3600.0
AN_HOUR: Final = 0.3
"""Part of the simulations in which the server is away for an hour; in the others it is for some minutes."""
MINUTES_S: Final = 400.0
TWO: Final = 0.4
"""Part of the simulations in which there is another host of the same node name."""
TOGETHER_S: Final = 40.0
WELL_STEP_S: Final = 20.0
KILLED: Final = 0.5
"""Part of them in which the agent dies meanwhile."""
CUT_OFF_S: Final = 60.0
DEAD_S: Final = 20.0
"""Longest partition and longest death of the server in the noise."""
BACKUP_PERIOD_S: Final = 30.0
LEASE_S: Final = 40
NAMES: Final = ("kube-a", "kube-b", "kube-c")
"""A name may come again, with another UID."""
CAPACITY: Final = NodeResources(capacity={"cpu": "2", "memory": "1Gi", "ephemeral-storage": "10Gi"})
STEADY: Final = ("serve",)
"""Arguments of a program that runs as long as nobody stops it."""


class ClusterOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How wild. What is None is drawn by the seed."""

    noise_s: float = 90.0
    away_s: float | None = None
    """How long the server is away, seconds."""
    skew_s: float | None = None
    """How far the server's clock is ahead, seconds."""
    verbose: bool = False


def simulate_cluster(seed: int, options: ClusterOptions) -> Outcome:
    """Run one seed from its beginning to its end."""
    trace = Trace(verbose=options.verbose)
    random.seed(seed)  # what the process draws jitter from
    return outcome_of(seed, trace, lambda directory: _run(seed, options, trace, directory))


async def _run(seed: int, options: ClusterOptions, trace: Trace, directory: Path) -> None:
    await ClusterSimulation(seed, options, trace, directory).run()


class ClusterSimulation(Frame):
    """The driver."""

    def __init__(self, seed: int, options: ClusterOptions, trace: Trace, directory: Path) -> None:
        self._rng = rng = random.Random(seed)
        self._options = options
        clock = SimClock()
        clock.wall_offset_s = WALL
        super().__init__(trace, clock)
        self._directory = directory
        self._maker = PodMaker(random.Random(rng.random()))
        self._static: dict[str, Pod] = {}
        self._made = 0
        self._faults = Faults(trace, self.clock)
        watch = Watch(trace, self.clock, lambda uid: self._agent.in_flight.get(uid))
        watch.excused = self._faults.excuses
        self._podman = SimPodman(self.clock, rng, watch, images=[PRESENT], registry=PULLED)
        self._podman.commands.update(PROGRAMS)
        watch.podman = self._podman
        self._rules = ServerRules(trace, self._podman)
        self._server = SimServer(rng, self.clock, self._rules)
        if options.skew_s is not None:
            self._server.skew_s = options.skew_s
        self._network = SimNetwork(rng, self._server, trace.note, self._rules)
        self._values = PodValues(self._server, self._network, trace, directory)
        self._host = SimHost(rng, self._podman, self.clock)
        self._host.is_quiet = True
        self._return: asyncio.TimerHandle | None = None
        """When the server of the noise is back."""
        self._backups: list[tuple[float, int]] = []
        kubeconfig = self._server.kubeconfig(directory)
        settings = Settings(
            workers=WorkersSettings(count=len(POD_SLOTS), pods_per_worker=PODS_PER_WORKER),
            crash_loop_back_off=CrashLoopBackOffSettings(max_container_restart_period_s=Seconds(MAX_BACKOFF_S)),
            cluster=ClusterSection(kubeconfig=kubeconfig),
        )
        cluster = ClusterSettings(
            kubeconfig=kubeconfig,
            pki_dir=str(directory / "pki"),
            lease_duration_s=LEASE_S,
            kubernetes_service=("192.0.2.1", 6443),
        )
        self._given = Given(
            rng=rng,
            trace=trace,
            watch=watch,
            podman=self._podman,
            probes=SimProbes(self._podman, rng, watch.probes),
            poison=None,
            objects=SimObjects(rng),
            host=self._host,
            marks=Marks(trace),
            clock=self.clock,
            settings=settings,
            worker_settings=msgspec.structs.replace(
                worker_settings(directory),
                max_container_restart_period_s=MAX_BACKOFF_S,
                node=CAPACITY,
                memory_dir=str(directory / "memory"),
                cluster=cluster,
            ),
            pod_rows=len(NAMES) + 1,
        )
        self._agent = self._new_agent()

    async def run(self) -> None:
        """Raises Violation."""
        self.listen_for_errors()
        installed = (self._faults.installed(), self._host.installed(), self._network.installed(), machine_installed())
        with contextlib.ExitStack() as stack:
            for context in (*installed, self._values.silent()):
                stack.enter_context(context)
            self._values.begin()
            self._agent.start()
            await self._make_noise()
            await self._settle()
            await self._be_well()
            await self._be_two()
            await self._be_away()
            await self._lose_node()
            await self._restore()
            await self._take_down()
            self._agent.die("the end")

    # --- the parts ---

    async def _make_noise(self) -> None:
        self._podman.odds, self._network.weather = NOISY, STORM
        end_at = self.now + self._options.noise_s
        acts, weights = list(NOISE), list(NOISE.values())
        while self.now < end_at:
            await self.step(self._rng.uniform(0.0, 2 * STEP_S))
            self._rng.choices(acts, weights)[0](self)

    async def _settle(self) -> None:
        self.trace.note("quiet from here")
        self._podman.odds, self._network.weather = QUIET, CALM
        self._podman.revive()
        self._faults.clear()
        self._forget_return()
        self._network.become(Reach.FINE)
        self._values.mend_claim()
        for child in self._agent.children.values():
            if child is not None:
                child.go_on()
        self._agent.state(self._static)
        await self.come_to_rest()

    async def _be_well(self) -> None:
        """For longer than tokens are good: each is renewed in time."""
        if self._rng.random() >= AN_HOUR:
            return
        steady, end_at = self._steady(), self.now + 1.5 * HOUR_S
        while self.now < end_at:
            await self.step(WELL_STEP_S)
            for uid, sync in self._agent.newest.items():
                if uid in self._server.pods() and (why := next(self._values.expired(sync.objects), "")):
                    self.trace.broke(f"{uid[:8]}: {why}")
        self._compare(steady, self._steady(), "while the server was well")

    async def _be_two(self) -> None:
        """Another host takes itself for this node, for a while: both run the same pods, each says so once in a period,
        and no pod ends on either because of the other. A pod that is deleted ends on both."""
        if self._rng.random() >= TWO:
            return
        self.trace.note("another host has the same name")
        directory = self._directory / "twin"
        directory.mkdir()
        twin = Twin(self._given, self._rules, self._server, self._values, self.trace, directory)
        self._rules.has_twin = True
        with twin.connected(self._network):
            twin.agent.start()
            twin.agent.state(self._static)
            ours = self._restarting(self._steady())
            await self.until(
                lambda: ours.keys() <= steady(twin.agent, twin.podman).keys(),
                "the other host runs the same pods",
                DOWN_S,
            )
            self._rules.true_status, twin.rules.true_status = self._agent.told.get, twin.agent.told.get
            theirs = self._restarting(steady(twin.agent, twin.podman))
            await self.step(self._rng.uniform(0.0, TOGETHER_S))
            self.change_pod()
            await self.step(TOGETHER_S)
            self._compare(ours, self._steady(), "while there were two nodes of one name")
            self._compare(theirs, steady(twin.agent, twin.podman), "on the other host of that name")
            self._rules.true_status = None
            twin.agent.die("its host is switched off")
        self._rules.has_twin = False
        self._clear_up()
        await self.come_to_rest()
        self._compare(ours, self._steady(), "when the other host was gone")

    def _clear_up(self) -> None:
        """Somebody deletes what has ended: of a pod that ran on two hosts two truths are left."""
        for pod in self._server.pods().values():
            if pod["status"].get("phase") in TERMINAL_PHASES and not _is_mirror(pod):
                with contextlib.suppress(Refusal):
                    self._server.delete(pod["metadata"]["name"])

    def _restarting(self, found: dict[str, frozenset[str]]) -> dict[str, frozenset[str]]:
        """Without pods that never restart: a host that joins takes one that runs elsewhere for lost, as upstream, and
        then it has failed for the cluster."""
        stated = self._agent.stated
        return {uid: ids for uid, ids in found.items() if uid in stated and stated[uid].spec.restart_policy != "Never"}

    async def _be_away(self) -> None:
        """Nobody answers for long: what runs goes on, also in the next agent; what was wanted meanwhile comes after."""
        steady = self._steady()
        away_s = HOUR_S if self._rng.random() < AN_HOUR else self._rng.uniform(0.0, MINUTES_S)
        away_s = away_s if self._options.away_s is None else self._options.away_s
        self._network.become(self._rng.choice((Reach.SILENT, Reach.DEAD)))
        await self.step(self._rng.uniform(0.0, away_s))
        if self._rng.random() < KILLED:
            self._agent.die("killed while the server is away")
            self._restart_agent()
            self._agent.state(self._static)
        self.change_pod()
        self.change_config()
        self.change_secret()
        await self.step(away_s)
        self._compare(steady, self._steady(), "while the server was away")
        self._network.become(Reach.FINE)
        await self.come_to_rest()
        self._compare(steady, self._steady(), "when the server was back")

    async def _lose_node(self) -> None:
        """Somebody deletes the Node: it is made again when the agent begins anew, and no pod notices either. Not before
        this agent has found it: one that was away for long registers with its first words. That agent hears of the
        server before it hears of Podman."""
        registers = self._registrations_before
        await self.until(lambda: self._rules.registrations > registers, "the agent has registered", DOWN_S)
        steady = self._steady()
        self.trace.note("somebody deletes the Node")
        self._server.store.delete("nodes", "", NODE)
        await self.step(self._rng.uniform(1.0, MINUTES_S))
        self._compare(steady, self._steady(), "while there was no Node")
        if self._server.store.has("nodes", "", NODE):
            self.trace.broke("the Node was made again by an agent that was told of its deletion")
        self._agent.die("to register its Node again")
        self._podman.die("as the agent starts")
        running = self._in_phase("Running")
        self._restart_agent()
        self._agent.state(self._static)
        await self.until(lambda: not self._podman.is_down, "Podman is back", DOWN_S)
        if told := (running & self._in_phase("Pending")) - self._initializing():
            self.trace.broke(f"the server is told of {sorted(told)} what nobody has observed")
        await self.come_to_rest()
        self._compare(steady, self._steady(), "when there was a Node again")

    def _in_phase(self, phase: str) -> frozenset[str]:
        return frozenset(uid for uid, pod in self._server.pods().items() if pod["status"].get("phase") == phase)

    def _initializing(self) -> frozenset[str]:
        """Pods of which the server knows an init container that runs: somebody has observed it."""
        return frozenset(
            uid
            for uid, pod in self._server.pods().items()
            for container in pod["status"].get("initContainerStatuses", ())
            if container["state"].get("running")
        )

    async def _restore(self) -> None:
        """An older backup takes the place of the server's store; the lease shows it."""
        lease = self._server.lease_revision()
        found = [revision for at, revision in self._backups if revision < lease]
        if not found:
            return
        before, steady = self._server.pods(), self._steady()
        revision = self._rng.choice(found)
        self.trace.note(f"the store of {self._server.store.revision} is that of {revision} again")
        self._server.restore(revision)
        self._values.mend_claim()
        self._network.break_all()
        self._backups.clear()
        await self.come_to_rest()
        same = {uid for uid, pod in self._server.pods().items() if uid in before and pod["spec"] == before[uid]["spec"]}
        kept = {uid: ids for uid, ids in steady.items() if uid in same}
        self._compare(kept, self._steady(), "by the restore")

    async def _take_down(self) -> None:
        self.trace.note("everything goes")
        self._static.clear()
        self._agent.state({})
        for pod in self._server.pods().values():
            with contextlib.suppress(Refusal):
                self._server.delete(pod["metadata"]["name"])
        await self.until(lambda: not self._server.pods(), "the server has no pods", DOWN_S)
        await self.until(lambda: not (self._podman.uids() or self._agent.told), "nothing is left", DOWN_S)

    def unsettled(self, before: Mapping[str, str] | None) -> Mapping[str, str]:
        """There is a moment at which all agree."""
        return {"all": "not looked at"} if before is None else self._wrong()

    def _wrong(self) -> dict[str, str]:
        pods = self._server.pods()
        mirrors = {pod["metadata"]["name"]: pod for pod in pods.values() if _is_mirror(pod)}
        found = {uid: "; ".join(self._wrong_pod(uid, pod)) for uid, pod in pods.items() if not _is_mirror(pod)}
        found |= {uid: "; ".join(self._wrong_static(uid, mirrors)) for uid in self._static}
        wanted = {f"{pod.metadata.name}-{NODE}" for pod in self._static.values()}
        found |= {f"mirror {name}": "it mirrors nothing" for name in sorted(mirrors.keys() - wanted)}
        known = pods.keys() | self._static.keys()
        found |= dict.fromkeys(sorted(self._podman.uids() - known), "it is there and nobody wants it")
        found["node"] = "; ".join(self._wrong_node())
        found["values"] = "; ".join(self._values.wrong())
        return {uid: why for uid, why in found.items() if why}

    def _wrong_pod(self, uid: str, there: JsonObject) -> Iterator[str]:
        pod, told = self._agent.stated.get(uid), self._agent.told.get(uid)
        if there["metadata"].get("deletionTimestamp"):
            yield "it is deleted, and the server still has it"
            return
        if there["status"].get("reason") == UNSUPPORTED_FIELD.reason:  # it never gets to the master
            return
        if pod is None:
            yield "the agent does not know it"
            return
        if pod.metadata.labels != (there["metadata"].get("labels") or {}):
            yield "its labels are others"
        yield from self._complaints(pod, told)
        yield from differences(there, told, is_static=False)
        if told is not None and told.status.phase == "Running":
            newest = self._agent.newest.get(uid)
            yield from self._values.wrong_pod(None if newest is None else newest.objects)

    def _wrong_static(self, uid: str, mirrors: dict[str, JsonObject]) -> Iterator[str]:
        pod, told = self._static[uid], self._agent.told.get(uid)
        yield from self._complaints(self._agent.refused.get(uid, pod), told)
        mirror = mirrors.get(f"{pod.metadata.name}-{NODE}")
        if mirror is None:
            yield "it has no mirror"
        else:
            yield from differences(mirror, told, is_static=True)

    def _complaints(self, pod: Pod, told: PodChanged | None) -> Iterator[str]:
        return complaints(pod, self._podman, told, self.clock.now().wall, edited=True)

    def _wrong_node(self) -> Iterator[str]:
        """The Node is there and ready, its lease was renewed, by the clock of the node."""
        try:
            node = self._server.store.get("nodes", "", NODE)
            lease = self._server.store.get("leases", LEASES, NODE)
        except Refusal as refusal:
            yield str(refusal)
            return
        ready = [each["status"] for each in node["status"].get("conditions", ()) if each["type"] == "Ready"]
        if ready != ["True"]:
            yield f"Ready is {ready}"
        age_s = self.clock.now().wall - datetime.fromisoformat(lease["spec"]["renewTime"]).timestamp()
        if age_s > LEASE_S:
            yield f"its lease was renewed {age_s:.0f} s ago"

    def _steady(self) -> dict[str, frozenset[str]]:
        return steady(self._agent, self._podman)

    def _compare(self, before: dict[str, frozenset[str]], after: dict[str, frozenset[str]], when: str) -> None:
        """Nobody restarts, but for pods that somebody wanted otherwise."""
        lost = [
            uid
            for uid, ids in before.items()
            if uid not in self._rules.unwanted and not ids <= after.get(uid, frozenset())
        ]
        if lost:
            self.trace.broke(f"containers of {lost} have ended {when}")
        self.trace.check()

    def look(self) -> None:
        if not self._backups or self.now > self._backups[-1][0] + BACKUP_PERIOD_S:
            self._backups.append((self.now, self._server.store.revision))

    # --- what people do ---

    def change_pod(self) -> None:
        name = self._rng.choice(NAMES)
        pod = next((pod for pod in self._server.pods().values() if pod["metadata"]["name"] == name), None)
        if pod is None:
            self.trace.note(f"somebody makes {name}")
            self._server.schedule(self._manifest(name))
        elif self._rng.random() < 0.5:
            self.trace.note(f"somebody deletes {name}, {pod['metadata']['uid'][:8]}")
            self._server.delete(name, self._rng.choice((None, None, 1, 60)))
        else:
            self.trace.note(f"somebody labels {name}")
            self._server.edit(name, self._label)

    def _label(self, pod: JsonObject) -> None:
        pod["metadata"]["labels"] = {"edit": str(self._rng.randrange(1000))}

    def _manifest(self, name: str) -> JsonObject:
        pod = self._maker.make("")
        found: JsonObject = msgspec.json.decode(msgspec.json.encode(pod))
        for container in found["spec"]["containers"]:
            PodValues.refer(container)
        for each in (*found["spec"].get("initContainers", ()), *found["spec"]["containers"]):
            each["image"] = PRESENT
        found["spec"].pop("ephemeralContainers", None)
        found["spec"].setdefault("volumes", []).extend(PodValues.volumes())
        return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": found["spec"]}

    def change_config(self) -> None:
        self._values.change_config()

    def change_secret(self) -> None:
        self._values.change_secret()

    def change_claim(self) -> None:
        """The claim names another claim's volume, or its own one again."""
        self._values.bind_claim(self._rng.choice((OWN_VOLUME, FOREIGN_VOLUME)))

    def change_manifest(self) -> None:
        """A static pod comes, changes or goes."""
        uid = "00000001-file"
        if uid in self._static and self._rng.random() < 0.5:
            del self._static[uid]
        else:
            pod = self._maker.make(uid)
            self._made += 1
            metadata = msgspec.structs.replace(pod.metadata, annotations={CONFIG_HASH: str(self._made)})
            containers = tuple(msgspec.structs.replace(each, image=PRESENT) for each in pod.spec.containers)
            self._static[uid] = msgspec.structs.replace(
                pod,
                metadata=metadata,
                spec=msgspec.structs.replace(pod.spec, containers=containers, ephemeral_containers=()),
            )
        self.read_sources()

    def read_sources(self) -> None:
        if self._agent.alive:
            self._agent.state(self._static)

    def delete_mirror(self) -> None:
        for pod in self._server.pods().values():
            if _is_mirror(pod):
                self.trace.note(f"somebody deletes mirror {pod['metadata']['name']}")
                self._server.delete(pod["metadata"]["name"], self._rng.choice((None, 0)))

    def write_status(self) -> None:
        """Somebody else, who should not."""
        for pod in self._server.pods().values():
            if pod["status"].get("phase") == "Running":
                self._server.store.update(pod | {"status": pod["status"] | {"phase": "Pending", "podIP": "192.0.2.9"}})
                return

    def renew_for_another(self) -> None:
        """A second node of this name renews the lease."""
        with contextlib.suppress(Refusal):
            lease = self._server.store.get("leases", LEASES, NODE)
            lease["metadata"]["labels"] = {"renewed": str(self._rng.randrange(1000))}
            self._server.store.update(lease)

    # --- what fails ---

    def cut_off(self) -> None:
        self._become(Reach.SILENT, CUT_OFF_S)

    def kill_server(self) -> None:
        self._become(Reach.DEAD, DEAD_S)

    def _become(self, reach: Reach, most_s: float) -> None:
        self._forget_return()
        self._network.become(reach)
        delay_s = self._rng.uniform(0.1, most_s)
        loop = asyncio.get_running_loop()
        self._return = loop.call_later(delay_s, self._network.become, Reach.FINE, context=NOBODY)

    def _forget_return(self) -> None:
        """Nothing of the noise ends a later partition."""
        if self._return is not None:
            self._return.cancel()

    def break_connections(self) -> None:
        self._network.break_all()

    def expire(self) -> None:
        self.trace.note("the server forgets its history")
        self._server.expire()

    def kill_worker(self) -> None:
        self._agent.kill(self._rng.choice((*SLOTS, NODE_SLOT, NODE_SLOT)))

    def hang_cluster(self) -> None:
        child = self._agent.children[NODE_SLOT]
        if child is not None and child.alive and not child.hangs:
            child.hang()
            asyncio.get_running_loop().call_later(self._rng.uniform(0.5, HUNG_S), child.go_on, context=NOBODY)

    def end_a_process(self) -> None:
        if running := [c for c in self._podman.containers.values() if c.state == "running"]:
            self._podman.exit(self._rng.choice(running).id, self._rng.choice((0, 1, 137)))

    def kill_agent(self) -> None:
        self._agent.die("killed")
        self._restart_agent()

    def _restart_agent(self) -> None:
        self._agent = self._new_agent(self._agent)
        self._agent.start()

    def _new_agent(self, before: NodeAgent | None = None) -> NodeAgent:
        self._registrations_before = self._rules.registrations
        verdicts, files = (None, NO_FILES) if before is None else (before.kept_verdicts(), before.files)
        return NodeAgent(self._given, self._rules, self._values, self._directory / "desired.json", verdicts, files)


def steady(agent: NodeAgent, podman: SimPodman) -> dict[str, frozenset[str]]:
    """Containers by pod, of pods all of whose containers run for ever, as long as the pod may. One whose sandbox is
    dead begins anew as soon as the agent sees it, whatever the server does."""
    found = {}
    infra = [each for each in podman.containers.values() if each.is_infra]
    broken = {uid_of(each) for each in infra if each.state != "running"}
    for uid, pod in agent.stated.items():
        told = agent.told.get(uid)
        running = frozenset(c.id for c in podman.of_pod(uid) if c.state == "running")
        every = (*pod.spec.init_containers, *pod.spec.containers)
        is_running = told is not None and told.status.phase == "Running"
        is_bounded = pod.spec.active_deadline_seconds is not None or uid in broken
        if is_running and not is_bounded and all(map(_is_steady, every)):
            found[uid] = running
    return found


def _is_steady(container: Container) -> bool:
    """Whether it ends by nothing of its own: a hook that fails has its container killed."""
    has_hook = container.lifecycle is not None and container.lifecycle.post_start is not None
    return container.args == STEADY and not has_hook


def _is_mirror(pod: JsonObject) -> bool:
    return MIRROR in (pod["metadata"].get("annotations") or {})


NOISE: Final[dict[Callable[[ClusterSimulation], None], float]] = {
    ClusterSimulation.change_pod: 20,
    ClusterSimulation.change_config: 4,
    ClusterSimulation.change_secret: 4,
    ClusterSimulation.change_claim: 2,
    ClusterSimulation.change_manifest: 4,
    ClusterSimulation.read_sources: 4,
    ClusterSimulation.delete_mirror: 2,
    ClusterSimulation.write_status: 2,
    ClusterSimulation.renew_for_another: 2,
    ClusterSimulation.cut_off: 2,
    ClusterSimulation.kill_server: 1,
    ClusterSimulation.break_connections: 2,
    ClusterSimulation.expire: 2,
    ClusterSimulation.kill_worker: 4,
    ClusterSimulation.hang_cluster: 1,
    ClusterSimulation.end_a_process: 6,
    ClusterSimulation.kill_agent: 1,
}
"""Acts, and how often each happens relative to the others."""
