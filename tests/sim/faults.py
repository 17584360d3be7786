"""Bugs that one pod meets: unexpected errors, thrown where the product works on a single pod, for a while.

Nothing of the product expects them. Whatever is thrown here, every promise holds for all other pods meanwhile, and for
this one too as soon as it stops.
"""

from __future__ import annotations

import contextlib
import enum
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final
from unittest.mock import patch

from ipc.host.clock import Clock
from supervisor.managers import container_gc
from supervisor.managers.object_delivery import ObjectDelivery
from supervisor.podcontrol.pod_reporter import RETRY_S
from supervisor.record.status_manager import StatusManager
from tests.sim.trace import Trace
from workers import pod_worker
from workers.containers import known_containers
from workers.containers.known_containers import KnownContainers
from workers.kubecontainer import labels


class Place(enum.StrEnum):
    """Where it is thrown."""

    DECODE = enum.auto()
    """Podman's words about a container."""
    OBSERVE = enum.auto()
    """Observation of the container's pod."""
    SYNC = enum.auto()
    """In its worker."""
    STATUS = enum.auto()
    """Words about the pod."""
    DELIVER = enum.auto()
    """Objects that go along with the pod's sync."""
    COLLECT = enum.auto()
    """Dead containers of the pod."""


ERRORS: Final = (RuntimeError, ValueError, KeyError, UnicodeEncodeError, RecursionError)


RETRIED_S: Final = RETRY_S + 5.0
"""Within which a pod is tried again."""


class Injected(Exception):
    """Mixed into every error that is thrown here."""


def _error(kind: type[Exception]) -> Exception:
    """One of that kind, and an `Injected` one."""
    made = type(
        f"Injected{kind.__name__}", (Injected, kind), {"__init__": lambda self: None, "__str__": lambda self: ""}
    )
    error: Exception = made()
    return error


class Faults:
    """Pods that meet one now. Made for one simulation."""

    def __init__(self, trace: Trace, clock: Clock) -> None:
        self._trace = trace
        self._clock = clock
        self._ended_at: dict[str, float] = {}
        self._broken: dict[tuple[Place, str], type[Exception]] = {}
        self.thrown: set[Place] = set()
        """For whoever wants to know whether anything was."""

    def last_met(self, uid: str) -> float:
        """When that pod may have met one last, in monotonic seconds: until then only it may have been told nothing."""
        is_broken = any(broken == uid for _, broken in self._broken)
        return self._clock.now().mono if is_broken else self._ended_at.get(uid, 0.0)

    def excuses(self, uid: str) -> bool:
        """Whether what is told of it may be old: it meets one, or has not been tried again."""
        return self._clock.now().mono - self.last_met(uid) < RETRIED_S

    def begin(self, place: Place, uid: str, kind: type[Exception]) -> None:
        self._trace.note(f"{kind.__name__} in {place.value} of {uid[:8]}")
        self._broken[place, uid] = kind

    def end(self, place: Place, uid: str) -> None:
        if self._broken.pop((place, uid), None) is not None:
            self._ended_at[uid] = self._clock.now().mono

    def clear(self) -> None:
        for place, uid in tuple(self._broken):
            self.end(place, uid)

    def meet(self, place: Place, uids: Collection[str]) -> None:
        """Raises what one of these meets there."""
        for uid in uids:
            if kind := self._broken.get((place, uid)):
                self.thrown.add(place)
                raise _error(kind)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """In the product's own functions."""
        with contextlib.ExitStack() as stack:
            for owner, name, place, uids in _HOOKS:
                stack.enter_context(patch.object(owner, name, self._hooked(getattr(owner, name), place, uids)))
            stack.enter_context(_nothing_else_fails(self._trace))
            yield

    def _hooked(
        self, original: Callable[..., Any], place: Place, uids: Callable[..., Collection[str]]
    ) -> Callable[..., Any]:
        def hooked(*args: Any, **kwargs: Any) -> Any:
            self.meet(place, uids(*args))
            return original(*args, **kwargs)

        return hooked


_HOOKS: Final[tuple[tuple[Any, str, Place, Callable[..., Collection[str]]], ...]] = (
    (KnownContainers, "_inspect_ended", Place.DECODE, lambda _, __, found: (found.labels.get(labels.POD_UID, ""),)),
    (known_containers, "pod_status", Place.OBSERVE, lambda uid, *_: (uid,)),
    (pod_worker, "_sync_pod", Place.SYNC, lambda run, _: (run.request.uid,)),
    (StatusManager, "_basis", Place.STATUS, lambda _, state, *__: (state.uid,)),
    (ObjectDelivery, "load", Place.DELIVER, lambda _, state, __: (state.uid,)),
    (container_gc, "dead_beyond_maximum", Place.COLLECT, lambda views, *_: _uids_of(views)),
)
"""Owner of a function, its name, the place that it is, and the pods that a call is about."""


def _uids_of(views: Mapping[str, Any]) -> Collection[str]:
    return views.keys()


@contextlib.contextmanager
def _nothing_else_fails(trace: Trace) -> Iterator[None]:
    """An unexpected error that was not thrown here is a bug, although the product goes on."""

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info else None
            if error is not None and not isinstance(error, Injected):
                trace.broke(f"{record.getMessage()}: {error!r}")

    log, listener = logging.getLogger("ipc.link.eventloop.tasks"), Listener(logging.DEBUG)
    before = log.propagate
    log.addHandler(listener)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(listener)
        log.propagate = before
