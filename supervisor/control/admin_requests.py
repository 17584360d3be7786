"""Requests that change something or ask for what only the master knows, and their answers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, assert_never

import msgspec

from ipc.k8s.podobjects.config_objects import ObjectKey, ObjectKind
from ipc.link.eventloop.tasks import BackgroundTasks
from ipc.link.messages.api_server import (
    AdminRequest,
    ApplyManifests,
    CollectGarbage,
    DeleteObject,
    DeletePod,
    DrainNode,
    FreezePod,
    PatchObject,
    PostManifests,
    ReadConfiguration,
    ReadNextStep,
    ReadObject,
    ReadProfile,
    ReloadSettings,
    Reply,
    RestartContainer,
    RestartPod,
    RestartWorker,
    SetLogLevel,
    StopAgent,
    UncordonNode,
)
from supervisor.config.settings import SettingsError
from supervisor.control.agent_control import AgentControl
from supervisor.control.profiles import Profiles
from supervisor.processes.child_manager import ChildManager
from supervisor.processes.worker_pool import API_SLOT
from supervisor.protocol.commands import NOTHING, RestsOn, Send
from supervisor.protocol.refusals import RequestRefused
from supervisor.sources.applied import ApplyOptions
from supervisor.sources.manager import SourceManager


class AdminRequests:
    """Each is answered once, by the API server's request number."""

    def __init__(
        self, agent: AgentControl, sources: SourceManager, children: ChildManager, send: Callable[[Send], None]
    ) -> None:
        """``send``: to a child, when what the message rests on is on disk."""
        self._agent = agent
        self._send = send
        self._sources = sources
        self._children = children
        self.profiles = Profiles(children)
        self._tasks = BackgroundTasks()

    def close(self) -> None:
        """Cancel the requests in progress: their clients are not answered any more."""
        self._tasks.cancel()

    def take(self, request: AdminRequest) -> None:
        match request:
            case ApplyManifests():
                options = ApplyOptions(request.verb, request.namespace, request.dry_run)
                self._begin(request, self._sources.apply(request.file, request.body, options, show=request.show))
            case PatchObject():
                self._begin(request, self._patch(request))
            case RestartPod():
                self._answer(request, self._sources.restart(request.namespace, request.name, request.grace_period_s))
            case RestartContainer():
                self._restart_container(request)
            case FreezePod():
                self._begin(request, self._freeze_pod(request))
            case DeletePod():
                self._begin(request, self._delete(request))
            case DeleteObject():
                key = ObjectKey(request.kind, request.namespace, request.name)
                self._begin(request, self._sources.delete_object(key))
            case PostManifests():
                self._begin(request, self._sources.post(request.body))
            case CollectGarbage():
                self._begin(request, self._collect_garbage(request))
            case ReadConfiguration():
                self._answer(request, Reply(request_id=0, code=200, message=self._agent.configuration()))
            case ReadObject():
                self._answer(request, self._read_object(request))
            case ReadNextStep():
                self._answer(request, self._read_next_step(request))
            case ReadProfile():
                self._begin(request, self.profiles.read(request))
            case RestartWorker():
                self._restart_worker(request)
            case SetLogLevel():
                self._set_log_level(request)
            case DrainNode():
                done = "drained" if self._agent.drain() else "already drained"
                self._answer(request, Reply(request_id=0, code=202, results=(done,)))
            case UncordonNode():
                done = "uncordoned" if self._agent.uncordon() else "already uncordoned"
                self._answer(request, Reply(request_id=0, code=200, results=(done,)))
            case ReloadSettings():
                self._reload(request)
            case StopAgent():
                self._answer(request, Reply(request_id=0, code=202, results=("stopping",)))
                self._agent.stop(pods=request.pods)
            case _:
                assert_never(request)

    def _begin(self, request: AdminRequest, work: Coroutine[Any, Any, Reply]) -> None:
        """Carry out a request that takes time. An unexpected error is this request's alone."""

        async def carried_out() -> None:
            self._answer(request, await work)

        def failed(error: BaseException) -> None:
            words = f"internal error: {type(error).__name__}"
            self._answer(request, Reply(request_id=0, code=500, reason="InternalError", message=words))

        self._tasks.spawn(carried_out(), name=type(request).__name__, on_failure=failed)

    async def _collect_garbage(self, request: CollectGarbage) -> Reply:
        report = await self._agent.collect_garbage(dry_run=request.dry_run)
        return Reply(request_id=0, code=200, message=msgspec.json.encode(report).decode())

    async def _delete(self, request: DeletePod) -> Reply:
        namespace, name = request.namespace, request.name
        going_down = self._agent.is_going_down(namespace, name)
        return await self._sources.delete(namespace, name, request.grace_period_s, going_down=going_down)

    async def _patch(self, request: PatchObject) -> Reply:
        is_pod = request.kind == "Pod"
        pod = (request.namespace, request.name)
        key = pod if is_pod else ObjectKey(ObjectKind(request.kind), *pod)
        return await self._sources.patch(
            key, request.kind, request.patch_type, request.body, dry_run=request.dry_run, values=request.values
        )

    def _read_object(self, request: ReadObject) -> Reply:
        found = self._agent.config_object(ObjectKey(request.kind, request.namespace, request.name))
        if found is None:
            message = f'{request.kind.plural} "{request.name}" not found'
            return Reply(request_id=0, code=404, reason="NotFound", message=message)
        return Reply(request_id=0, code=200, message=msgspec.json.encode(found).decode())

    def _read_next_step(self, request: ReadNextStep) -> Reply:
        found = self._agent.next_step(request.namespace, request.name)
        if found is None:
            return Reply(request_id=0, code=404, reason="NotFound", message=f'pods "{request.name}" not found')
        return Reply(request_id=0, code=200, message=msgspec.json.encode(found).decode())

    def _restart_container(self, request: RestartContainer) -> None:
        name, container = request.name, request.container
        try:
            rests_on = self._agent.restart_container(request.namespace, name, container, request.grace_period_s)
        except RequestRefused as refused:
            self._answer(request, _refusal(refused))
        else:
            answer = Reply(request_id=0, code=202, results=(f"container/{container} of pod/{name} restarting",))
            self._answer(request, answer, rests_on)

    async def _freeze_pod(self, request: FreezePod) -> Reply:
        try:
            await self._agent.freeze_pod(request.namespace, request.name, request.freeze)
        except RequestRefused as refused:
            return _refusal(refused)
        return Reply(request_id=0, code=200, results=(f"pod/{request.name} {request.freeze}d",))

    def _restart_worker(self, request: RestartWorker) -> None:
        """Asked to leave, then killed; its successor follows. Whoever asks sees its incarnation in `get workers`."""
        name, slot = request.name, self._children.slot_named(request.name)
        if slot is None:
            message = f'workers "{name}" not found'
            self._answer(request, Reply(request_id=0, code=404, reason="NotFound", message=message))
        elif not self._children.can_restart(slot):
            message = f'workers "{name}" does not run just now: it is about to begin anew'
            self._answer(request, Reply(request_id=0, code=409, reason="Conflict", message=message))
        else:
            self._answer(request, Reply(request_id=0, code=202, results=(f"worker/{name} restarting",)))
            self._agent.restart_worker(slot)

    def _reload(self, request: ReloadSettings) -> None:
        try:
            changes = self._agent.reload()
        except SettingsError as error:
            message = f"the configuration in effect stays: {error}"
            self._answer(request, Reply(request_id=0, code=422, reason="Invalid", message=message))
        else:
            if request.accept_manifests:
                changes = (*changes, self._sources.accept_manifests())
            self._answer(request, Reply(request_id=0, code=200, results=changes))

    def _set_log_level(self, request: SetLogLevel) -> None:
        try:
            verbosity = self._agent.set_log_level(request.area, request.level)
        except ValueError as error:
            self._answer(request, Reply(request_id=0, code=400, reason="BadRequest", message=str(error)))
        else:
            self._answer(request, Reply(request_id=0, code=200, results=verbosity.words))

    def _answer(self, request: AdminRequest, answer: Reply, rests_on: RestsOn = NOTHING) -> None:
        self._send(Send(API_SLOT, msgspec.structs.replace(answer, request_id=request.request_id), rests_on))


def _refusal(refused: RequestRefused) -> Reply:
    return Reply(request_id=0, code=refused.code, reason=refused.reason, message=str(refused))
