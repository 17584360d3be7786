"""A host, an agent, and everything that may go wrong between them: one seed, one thread, no time of its own.

The real sync loop, board, pod workers and node worker run on simulated time against a Podman in memory. First there
is noise: pods come, change and go while processes die, calls fail and hosts reboot. Then it is quiet, and everything
has to come to what is wanted within a bound. Then everything is taken down, and nothing may be left.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from ipc.k8s.podresources.node_resources import PodCgroups
from ipc.k8s.podresources.pod_cgroups import pod_slice_uid
from tests.sim.claims import VOLUME_OF, SimClaims
from tests.sim.frame import DOWN_S, SETTLE_S, STEP_S, Outcome, outcome_of
from tests.sim.noise import PULL_S, make_noise
from tests.sim.options import Options, Size, chosen_by, is_small
from tests.sim.probes import CALM
from tests.sim.runtime import QUIET
from tests.sim.scenarios.pauses import resume_all
from tests.sim.scenarios.pressure import recover
from tests.sim.scenarios.table import play
from tests.sim.swarm import begin_small, small
from tests.sim.trace import Trace
from tests.sim.world import WALL, World

COLLECTED_S: Final = 70.0
"""Within which directories of pods that are gone are removed."""


def simulate_seed(seed: int, options: Options) -> Outcome:
    """Run one seed from its beginning to its end, with all that is left to it decided."""
    return simulate_chosen(seed, small(seed, options) if is_small(seed, options.size) else chosen_by(seed, options))


def simulate_chosen(seed: int, options: Options) -> Outcome:
    """Run one seed with exactly these options."""
    scratch = Path(f"/tmp/rootlet-sim-claims-{os.getpid()}-{seed}")  # the same in every run of a process
    trace = Trace(verbose=options.verbose)
    try:
        return outcome_of(seed, trace, lambda directory: _live(World(seed, options, trace, directory, scratch)))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


async def _live(world: World) -> None:
    """From the first noise until everything is gone. Raises Violation."""
    world.listen_for_errors()
    with world.faults.installed(), world.host.installed():
        world.agent.start()
        if world.options.size is Size.SMALL:
            await begin_small(world)
        await make_noise(world)
        await _settle(world)
        await play(world)
        await _take_down(world)
        world.agent.die("the end")


async def _settle(world: World) -> None:
    """Nothing is wrong any more, and everything comes to what is wanted."""
    world.trace.note("quiet from here")
    world.podman.odds = QUIET
    world.probes.odds = CALM
    world.podman.pull_fate = lambda reference: None
    world.podman.pull_s = PULL_S[0]
    world.podman.revive()
    world.podman.unreadable.clear()
    world.faults.clear()
    for child in world.agent.children.values():
        if child is not None:
            child.go_on()
    world.uncordon()
    world.stay_up()
    world.objects.settle()
    if world.claims is not None:
        await _settle_claims(world, world.claims)
    world.agent.state(world.desired)
    if (shutdown := world.shutdown) is not None:
        await world.until(lambda: not shutdown.is_under_way, "the agent knows that the host stays up", SETTLE_S)
    if world.options.pauses:
        await resume_all(world)
    if world.options.pressure:
        await recover(world)
    await world.come_to_rest()


async def _settle_claims(world: World, claims: SimClaims) -> None:
    """Volumes whose claims were gone are nobody's until their own documents are."""
    claims.state(*VOLUME_OF, volumes=())
    world.agent.state(world.desired)
    await world.until(lambda: world.agent.sources_ready, "the agent knows what is wanted", SETTLE_S)
    claims.state(*VOLUME_OF)


async def _take_down(world: World) -> None:
    world.trace.note("everything goes")
    world.desired.clear()
    world.agent.state({})
    end_at = world.now + DOWN_S
    while (world.existing() or world.agent.pods_supervised() or world.agent.told) and world.now < end_at:
        await world.step(STEP_S)
    if left := world.existing() or world.agent.told.keys():
        world.trace.broke(f"{DOWN_S:g} s after everything was taken down there are {sorted(left)}")
    if supervised := world.agent.pods_supervised():
        world.trace.broke(f"{supervised} pods are supervised, and none is there")
    if harmed := world.podman.harmed_strangers():
        world.trace.broke(f"strangers were not left alone: {harmed}")
    await _collect_directories(world)
    await world.until(lambda: not _pod_slices(world), "the slices of all pods are stopped")
    _check_rows(world)
    world.trace.check()


def _pod_slices(world: World) -> list[str]:
    return [name for name in world.podman.slices if pod_slice_uid(name, PodCgroups())]


def _check_rows(world: World) -> None:
    """As many pods as there are rows get one each."""
    world.agent.rows.clear()
    world.agent.state({uid: world.maker.make(uid) for uid in world.uids[: world.given.pod_rows]})
    if sorted(world.agent.rows.values()) != list(range(world.given.pod_rows)):
        world.trace.broke(f"a row is lost: {world.agent.rows}")


async def _collect_directories(world: World) -> None:
    """The files are real, and so are their dates; the collector takes only those older than its list."""
    world.clock.wall_offset_s += 10 * WALL

    def left() -> list[str]:
        return sorted(path.name for name in ("pod-logs", "pods") for path in (world.directory / name).glob("*"))

    end_at = world.now + COLLECTED_S
    while left() and world.now < end_at:
        await world.step(STEP_S)
    if found := left():
        world.trace.broke(f"directories are left: {found}")
