"""Every text about a pod that comes from a worker, made fit for people before the master does anything with it.

All that containers, registries and Podman say reaches events, statuses, `describe` and the log through the master: the
workers' reports and the observations. Here the values of the pod's Secrets are taken out
(`ipc.k8s.podobjects.redaction`). While one of them is not known, because its source was not read yet, a text that may
hold it is withheld, and so is one about a pod that nobody knows any more. Normal events are the agent's own words. A
termination message stays data otherwise, as upstream has it: programs read it. Whoever prints it makes it safe.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.host.text.safe_text import safe_text
from ipc.k8s.kubecontainer.pod_status import RuntimeContainerStatus, RuntimePodStatus
from ipc.k8s.podobjects.redaction import Blocks, redacted
from ipc.link.messages.base import EventReport
from ipc.link.messages.event_reasons import EventType
from ipc.link.messages.node_worker import ObservationFailed
from ipc.link.messages.pod_worker import PullFailure, SyncDone, SyncResult
from supervisor.managers.object_store import ObjectStore
from supervisor.pods.parts import Readable
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.protocol.events import LoopEvent

MAX_TEXT_CHARS: Final = 2048
"""Longest text that is taken of a worker's; half of what the workers cut theirs to, so that each cut is known here."""

Known = tuple[Blocks, ...] | None


class PodTexts:
    """Redacts texts by the Secrets of their pod. Owns the newest readable observation of each pod."""

    def __init__(self, pod_table: PodTable, objects: ObjectStore) -> None:
        self._pod_table = pod_table
        self._objects = objects

    def made_fit(self, event: LoopEvent) -> LoopEvent:
        """A worker's report about a pod; every other event is as it was."""
        match event:
            case EventReport(uid=uid, kind="") if uid:
                known = self._known(uid)
                return event if known is None and event.type == EventType.NORMAL else _with_message(event, known)
            case ObservationFailed(uid=uid):
                return _with_message(event, self._known(uid))
            case SyncDone(uid=uid) if _has_texts(event):
                return _answer(event, self._known(uid))
            case _:
                return event

    def readable(self, state: PodRecord, view: RuntimePodStatus) -> RuntimePodStatus:
        """The view with the texts of its containers made fit for people, and for files."""
        if all(container.has_fit_texts or not (container.message or container.error) for container in view.containers):
            return view
        known, readable = self._known(state.uid), state.parts.readable
        if readable is None or readable.view is not view or readable.known != known:
            fit = tuple(_container(container, known) for container in view.containers)
            readable = Readable(view, known, msgspec.structs.replace(view, containers=fit))
            state.parts.readable = readable
        return readable.made

    def _known(self, uid: str) -> Known:
        state = self._pod_table.get(uid)
        if state is None:
            return None
        # An orphan's manifest is gone, and with it which Secrets it had; nothing of it is probed, started or reported.
        if state.pod is None or not state.all_references:
            return ()
        return self._objects.values_known(state.pod.metadata.namespace, state.all_references)


def _text(text: str, known: Known) -> str:
    return safe_text(redacted(text[:MAX_TEXT_CHARS], known, cut_end=len(text) > MAX_TEXT_CHARS))


def _with_message(report: EventReport | ObservationFailed, known: Known) -> EventReport | ObservationFailed:
    message = _text(report.message, known)
    return report if message == report.message else msgspec.structs.replace(report, message=message)


def _has_texts(done: SyncDone) -> bool:
    """Whether a sync has more to say than that it found nothing to do."""
    is_reported = any(result.message for result in done.results)
    return bool(done.message or is_reported or any(failure.message for failure in done.pull_failures))


def _answer(done: SyncDone, known: Known) -> SyncDone:
    def of(found: SyncResult | PullFailure) -> SyncResult | PullFailure:
        return msgspec.structs.replace(found, message=_text(found.message, known)) if found.message else found

    return msgspec.structs.replace(
        done,
        message=_text(done.message, known),
        results=tuple(map(of, done.results)),
        pull_failures=tuple(map(of, done.pull_failures)),
    )


def _container(container: RuntimeContainerStatus, known: Known) -> RuntimeContainerStatus:
    if container.has_fit_texts or not (container.message or container.error):
        return container
    is_cut = container.message_cut
    return msgspec.structs.replace(
        container,
        error=_text(container.error, known),
        message=redacted(container.message, known, cut_start=is_cut, cut_end=is_cut),
        has_fit_texts=True,
    )
