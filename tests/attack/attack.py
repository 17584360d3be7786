"""An attack as a value, and the few expectations that most attacks have of their own pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from tests.attack.ground import Ground
from tests.e2e.agent import Json, container_status, is_ready

Strike = Callable[[Ground], None]

MIB: Final = 1 << 20
GROWTH_BYTES: Final = 32 * MIB
"""PSS that a process of the agent may have more after an attack than before it: what allocators keep, no backlog."""


def _nothing(_ground: Ground) -> None:
    return


class Attack(NamedTuple):
    """An act, and what may come of it."""

    name: str
    deed: str
    """One sentence: who does what."""
    own: str
    """Reactions that the attack's own pod, or its client, may show."""
    strike: Strike = _nothing
    """Carries it out, after the manifests are written, and asserts what is expected of its own pod."""
    manifests: tuple[Json, ...] = ()
    """Written before it strikes."""
    podman_bytes: int = 0
    """PSS that Podman's service may have beyond that, where its own answers are large: Go gives it back late."""
    replaced: frozenset[str] = frozenset()
    """Names of processes that it ends itself: others may have taken their places."""
    longest_gap_s: float = 3.0
    """Between two probes of the canary, which is probed each second, it is too long."""
    is_quick: bool = True
    """One of those that `make test` carries out: some seconds each, 90 s for all of them."""
    restarts: bool = False
    """The agent is another one afterwards: nobody is probed meanwhile, and all its processes are others."""


def all_of(*strikes: Strike) -> Strike:
    """One after the other."""

    def strike(ground: Ground) -> None:
        for each in strikes:
            each(ground)

    return strike


def ready(*names: str) -> Strike:
    """A strike after which these pods are Ready all the same."""
    return lambda ground: ground.agent.until_ready(names)


def refused(*names: str, words: str) -> Strike:
    """An event says why each of these manifests is none."""

    def strike(ground: Ground) -> None:
        for name in names:
            ground.until(lambda name=name: ground.is_refused(name, words), f"{name} is refused: {words}")  # type: ignore[misc]

    return strike


def waits(name: str, reasons: Iterable[str], container: str = "main") -> Strike:
    """The container waits, for one of these reasons."""
    wanted = frozenset(reasons)
    return lambda ground: ground.until(
        lambda: ground.agent.waiting(name, container).get("reason") in wanted, f"{name} waits: {sorted(wanted)}"
    )


def tells(name: str, reason: str, words: str = "") -> Strike:
    """An event about the pod has this reason, and these words."""
    return lambda ground: ground.until(
        lambda: any(words in message for message in ground.agent.messages(name, reason)), f"{name}: {reason} {words}"
    )


def fails(name: str, reason: str = "") -> Strike:
    """The pod has failed."""

    def has_failed(ground: Ground) -> bool:
        status = ground.agent.pods().get(name, {}).get("status", {})
        return bool(
            status.get("phase") == "Failed" and status.get("reason", "") == (reason or status.get("reason", ""))
        )

    return lambda ground: ground.until(lambda: has_failed(ground), f"{name} has failed {reason}")


def ends(name: str, message: str = "") -> Strike:
    """The pod's container has ended at least once, with words in its termination message."""

    def has_ended(ground: Ground) -> bool:
        status = container_status(ground.agent.pods().get(name, {"status": {}}))
        states = (status.get(state, {}).get("terminated", {}) for state in ("state", "lastState"))
        return any(state and message in state.get("message", "") for state in states)

    return lambda ground: ground.until(lambda: has_ended(ground), f"{name} has ended")


def not_ready(name: str) -> Strike:
    """The pod runs, and its probe says no."""

    def is_unready(ground: Ground) -> bool:
        pod = ground.agent.pods().get(name)
        return bool(pod and pod["status"]["phase"] == "Running" and not is_ready(pod))

    return lambda ground: ground.until(lambda: is_unready(ground), f"{name} runs and is not Ready")


def lasts(seconds: float) -> Strike:
    """Go on with it for so long."""
    return lambda ground: ground.last(seconds)
