"""Table of the disturbances that may come at any time, by people and by processes, and how often each does."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from ipc.link.messages.pod_worker import Freeze
from tests.fakes.ownership import ownership
from tests.sim.agent import SLOTS
from tests.sim.children import HUNG_S
from tests.sim.faults import ERRORS, Place
from tests.sim.host import CAPACITY, Taken
from tests.sim.options import Options
from tests.sim.poison import UID as POISON
from tests.sim.pressure import LEAST
from tests.sim.probes import ROUGH
from tests.sim.runtime import INSTANCE, NOISY, Odds
from tests.sim.world import World
from workers.kubecontainer import labels
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.specgen.spec import pod_spec

CANNOT_FREEZE: Final = 0.2
"""Part of the pauses that Podman refuses."""
BROKEN_S: Final = 40.0
"""Longest time that a pod meets unexpected errors."""
SQUEEZED_S: Final = 40.0
"""Longest time for which something on the host runs short because of somebody who is no pod."""
UNREADABLE_S: Final = 30.0
"""Longest time that a container cannot be inspected."""
PULL_S: Final = (0.5, 3.0, 40.0)
"""How long pulls take; the first while nothing is wrong, lest a pod that pulls for each of its restarts only waits."""


def change_manifest(world: World) -> None:
    uid, roll = world.rng.choice(world.uids), world.rng.random()
    if uid not in world.desired:
        world.desired[uid] = world.maker.make(uid)
        if uid in world.agent.stated:  # nobody has read that it was gone
            world.edited.add(uid)
    elif roll < 0.7:
        world.desired[uid] = world.maker.edit(world.desired[uid])
        world.edited.add(uid)
    else:
        del world.desired[uid]
    world.read_sources()


def change_claim(world: World) -> None:
    if world.claims is not None:
        world.claims.change()
        world.read_sources()


def restart_container(world: World) -> None:
    """Restart a container of any pod, in any state: perhaps it is refused."""
    if wanted := [pod for uid, pod in sorted(world.desired.items()) if uid != POISON]:
        pod = world.rng.choice(wanted)
        containers = (*pod.spec.containers, *pod.spec.init_containers)
        world.agent.restart_container(pod, world.rng.choice(containers).name)


def change_object(world: World) -> None:
    world.objects.change()
    world.read_sources()


def remove_by_hand(world: World) -> None:
    if uids := sorted(world.existing()):
        world.podman.remove_by_hand(world.rng.choice(uids))


def end_a_process(world: World) -> None:
    strangers = world.podman.strangers
    running = [c for c in world.podman.containers.values() if c.state == "running" and c.id not in strangers]
    if running:
        world.podman.exit(world.rng.choice(running).id, world.rng.choice((0, 1, 42, 137)))


def hide(world: World) -> None:
    """A container that is listed, and every inspect of which fails."""
    if containers := sorted(world.podman.containers):
        id = world.rng.choice(containers)
        world.trace.note(f"{world.podman.containers[id].name} cannot be inspected")
        world.podman.unreadable.add(id)
        world.later(world.rng.uniform(0.0, UNREADABLE_S), lambda: world.podman.unreadable.discard(id))


def break_pod(world: World) -> None:
    """A bug of ours, which one pod meets."""
    uid, place = world.rng.choice(world.uids), world.rng.choice(tuple(Place))
    world.faults.begin(place, uid, world.rng.choice(ERRORS))
    world.later(world.rng.uniform(0.0, BROKEN_S), lambda: world.faults.end(place, uid))


def pause(world: World) -> None:
    if wanted := [pod for uid, pod in sorted(world.desired.items()) if uid != POISON]:
        world.podman.can_freeze = world.rng.random() >= CANNOT_FREEZE
        world.agent.freeze(world.rng.choice(wanted), Freeze.PAUSE)


def resume(world: World) -> None:
    if wanted := [pod for _, pod in sorted(world.desired.items())]:
        world.agent.freeze(world.rng.choice(wanted), Freeze.RESUME)


def leave_orphan(world: World) -> None:
    """Something with our labels that no manifest has ever stated."""
    uid = f"{world.rng.randrange(2):08x}-orphan"
    if uid in world.existing() or world.podman.is_down:
        return
    pod = world.maker.make(uid)
    with contextlib.suppress(RuntimeCallError):
        id = world.podman.create_pod(pod_spec(pod, ownership(INSTANCE), 0, Path("/nonexistent")))
        world.podman.start_container(world.podman.pods[id].infra_id)


def copy(world: World) -> None:
    """Somebody runs a container with the labels of one of ours, or with some that nobody can read."""
    if containers := [c for c in world.podman.containers.values() if not c.is_infra]:
        spoiled = {labels.ATTEMPT: "9" * 5000} if world.rng.random() < 0.5 else {}
        world.podman.copy_container(world.rng.choice(containers), **spoiled)


def swell(world: World) -> None:
    """A pod takes more than is there."""
    taken, uid = world.rng.choice(tuple(Taken)), world.rng.choice(world.uids)
    if world.podman.of_pod(uid):
        world.trace.note(f"{uid[:8]} takes too much: {taken.value}")
        world.host.take(uid, taken, CAPACITY[world.host.signal_of(taken)])


def squeeze(world: World) -> None:
    """Somebody who is no pod takes most of something, for a while."""
    signal = world.rng.choice(tuple(CAPACITY))
    world.trace.note(f"somebody takes most of {signal.value}")
    world.host.squeeze(signal, CAPACITY[signal] - int(world.rng.uniform(0.0, 2.0) * LEAST[signal]))
    world.later(world.rng.uniform(1.0, SQUEEZED_S), lambda: world.host.give_back(signal))


def kill_api_server(world: World) -> None:
    world.agent.api_down()


def hang_worker(world: World) -> None:
    child = world.agent.children[world.rng.choice(SLOTS)]
    if child is None or child.hangs or not child.alive:
        return
    child.hang()
    seconds = world.rng.uniform(0.5, 2 * HUNG_S)
    if seconds > HUNG_S:
        world.later(HUNG_S, child.abort)
    else:
        world.later(seconds, child.go_on)


def kill_podman(world: World) -> None:
    world.podman.die("killed")


def _pull_fate(world: World, reference: str) -> ErrorKind | None:
    world.podman.pull_s = world.rng.choice(PULL_S)
    return world.rng.choice((None, None, ErrorKind.PULL, ErrorKind.TIMEOUT, ErrorKind.UNAVAILABLE))


class _Noise(NamedTuple):
    weight: float
    """How often it happens, relative to the others."""
    needs: Callable[[Options], object] = lambda options: True
    """Whether the simulation has what it disturbs."""


def _has_shutdown(options: Options) -> bool:
    return options.shutdown


def _has_pressure(options: Options) -> bool:
    return options.pressure


def _has_pauses(options: Options) -> bool:
    return bool(options.pauses)


NOISE: Final[Mapping[Callable[[World], None], _Noise]] = {
    change_manifest: _Noise(20),
    change_object: _Noise(10, lambda options: options.objects),
    World.read_sources: _Noise(10),
    end_a_process: _Noise(10),
    remove_by_hand: _Noise(1),
    leave_orphan: _Noise(0.5),
    hide: _Noise(0.5),
    copy: _Noise(0.5),
    break_pod: _Noise(2),
    swell: _Noise(1, _has_pressure),
    squeeze: _Noise(0.5, _has_pressure),
    World.drain: _Noise(0.5, _has_shutdown),
    World.uncordon: _Noise(1, _has_shutdown),
    World.go_down: _Noise(0.5, _has_shutdown),
    World.stay_up: _Noise(1, _has_shutdown),
    restart_container: _Noise(3, lambda options: options.restarts),
    change_claim: _Noise(6, lambda options: options.claims),
    pause: _Noise(4, _has_pauses),
    resume: _Noise(4, _has_pauses),
    World.kill_worker: _Noise(4),
    kill_api_server: _Noise(1),
    hang_worker: _Noise(2),
    kill_podman: _Noise(1),
    World.kill_agent: _Noise(1),
    World.reboot: _Noise(0.3),
}


ACTS: Final[Mapping[str, Callable[[World], None]]] = {act.__name__: act for act in NOISE}
PROBES_FAIL: Final = "probes_fail"
PULLS_FAIL: Final = "pulls_fail"
MISFORTUNES: Final = (*Odds.__struct_fields__, PROBES_FAIL, PULLS_FAIL)
OFTENER: Final = 1.5
"""How much oftener a misfortune comes where there are not all."""


async def make_noise(world: World) -> None:
    """One thing after another happens, while calls fail and probes are rough."""
    chosen = world.options.misfortunes
    world.podman.odds = NOISY if chosen is None else _oftener(chosen)
    if chosen is None or PROBES_FAIL in chosen:
        world.probes.odds = ROUGH
    if chosen is None or PULLS_FAIL in chosen:
        world.podman.pull_fate = partial(_pull_fate, world)
    end_at = world.now + world.options.noise_s
    acts, weights = _acts(world.options)
    while world.now < end_at:
        await world.step(world.rng.uniform(0.0, 2 * world.options.pace_s))
        world.rng.choices(acts, weights)[0](world)


def _acts(options: Options) -> tuple[list[Callable[[World], None]], list[float]]:
    """Kinds of noise, and how often each comes."""
    if options.noises is not None:
        chosen = [ACTS[name] for name in options.noises]
        return chosen, [math.sqrt(NOISE[act].weight) for act in chosen]
    acts = [act for act, noise in NOISE.items() if noise.needs(options)]
    return acts, [NOISE[act].weight for act in acts]


def _oftener(misfortunes: Collection[str]) -> Odds:
    """Odds of these misfortunes of Podman alone."""
    return Odds(**{name: OFTENER * getattr(NOISY, name) for name in Odds.__struct_fields__ if name in misfortunes})
