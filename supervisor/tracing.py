"""Spans of a trace (`ipc.link.shm.trace`) about what the master does and waits for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ipc.host.clock import monotonic, thread_cpu
from ipc.link.messages.api_server import PodChanged
from ipc.link.messages.catalogue import ChildCommand
from ipc.link.messages.node_worker import Observe
from ipc.link.messages.pod_worker import SyncDone, SyncPod
from ipc.link.shm.trace import TRACER
from supervisor.protocol.events import LoopEvent, Observations
from supervisor.protocol.source_updates import PodUpdate

AT_WORKER = "its worker has it"
"""A span: from the message that asks for a sync to its answer."""
AT_NODE_WORKER = "the node worker has it"
"""A span: from the request of an observation to the next one of that pod."""


@contextlib.contextmanager
def traced_event(event: LoopEvent) -> Iterator[None]:
    """Around the handling of an event and the carrying out of what follows, as a span of each of its pods. What a
    handling of several pods costs is divided."""
    if not TRACER.on:
        yield
        return
    pods = _pods_of(event)
    _end_waits(event, pods)
    begin, cpu_begin = monotonic(), thread_cpu()
    yield
    end, cpu_s = monotonic(), thread_cpu() - cpu_begin
    for pod in pods or ("",):
        TRACER.tell(f"handles {type(event).__name__}", pod, begin, end, cpu_s / max(1, len(pods)))


def trace_sent(message: ChildCommand) -> None:
    """A message goes to a child now."""
    if TRACER.on:
        match message:
            case SyncPod(uid=uid):
                TRACER.begin(AT_WORKER, uid)
            case Observe(uids=uids):
                for uid in uids:
                    TRACER.begin(AT_NODE_WORKER, uid)
            case PodChanged(pod=pod):
                TRACER.instant("sends its status", pod.metadata.uid)
            case _:
                pass


def _pods_of(event: LoopEvent) -> tuple[str, ...]:
    match event:
        case PodUpdate(pods=pods):
            return tuple(pod.metadata.uid for pod in pods)
        case Observations(observations=observations):
            return tuple(observation.uid for observation in observations)
        case _:
            uid = getattr(event, "uid", "")
            return (uid,) if uid else ()


def _end_waits(event: LoopEvent, pods: tuple[str, ...]) -> None:
    if isinstance(event, SyncDone):
        TRACER.end(AT_WORKER, event.uid)
    if isinstance(event, Observations):
        for pod in pods:
            TRACER.end(AT_NODE_WORKER, pod)
