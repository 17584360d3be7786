"""The admin socket's client: what the CLI and the load test ask of a running agent. Synchronous; safe for threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

import msgspec

from ipc.host.text.json_types import Json, JsonObject
from ipc.k8s.resources import registry
from supervisor.client.errors import ConnectionLost, RequestFailed, decode_object, raise_for_status, raise_status
from supervisor.client.exchange import exchange, upload

REQUEST_TIMEOUT_S: Final = 45.0
"""How long one answer may take: longer than the API server itself waits for the master."""
COLLECTION_TIMEOUT_S: Final = 630.0
"""How long a collection of garbage may take, in seconds."""
WATCH_TIMEOUT_S: Final = 15.0
"""How long a watch may be silent; it carries a bookmark every second."""
MAX_READ_ATTEMPTS: Final = 4
"""How often a read is asked again when the API server dies over it. Its successor takes the connection."""
TRACE_PATH: Final = "/rootlet/v1/trace"
WITHOUT_NAMESPACE: Final = frozenset(each.plural for each in registry.RESOURCES if not each.is_namespaced)
"""Resources whose objects belong to no namespace."""
_ALL: Final = "All"
"""Value of ``dryRun``: every stage of the request."""
NODES_PATH: Final = "/api/v1/nodes"
STATISTICS_PATH: Final = "/rootlet/v1/statistics"
LOG_LEVEL_PATH: Final = "/rootlet/v1/loglevel"
GARBAGE_PATH: Final = "/rootlet/v1/garbage"

PodKey = tuple[str, str]
"""Namespace and name."""
Query = Mapping[str, str | int | bool | None]


class WatchEvent(msgspec.Struct, frozen=True, rename="camel"):
    """One line of a watch (meta/v1 WatchEvent)."""

    type: str
    """ADDED, MODIFIED, DELETED or BOOKMARK; an ERROR is raised instead."""
    object: JsonObject
    observed_at: float = 0.0
    """Monotonic seconds: when the observation began that the object's status tells of; 0.0 when not said."""


class ActionResult(msgspec.Struct, frozen=True):
    """Outcome of a change of several objects."""

    code: int
    reason: str = ""
    message: str = ""
    results: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    objects: tuple[JsonObject, ...] = ()
    """As they became, where that was asked for."""

    @property
    def failed(self) -> bool:
        """Whether some part of it was not done."""
        return self.code >= 400


class AgentClient:
    """Every request raises AgentUnreachable, ConnectionLost or RequestFailed."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket

    def get(self, path: str, query: Query | None = None, accept: str = "") -> JsonObject:
        """A JSON object, in a form that ``accept`` names. Asked again when the API server dies over it."""
        return decode_object(self._get(_target(path, query or {}), MAX_READ_ATTEMPTS, accept))

    def raw(self, target: str) -> bytes:
        """Return the content of that URL, query and all."""
        return self._get(target, MAX_READ_ATTEMPTS)

    def apply(
        self,
        body: bytes,
        file: str,
        *,
        verb: str = "apply",
        namespace: str = "",
        dry_run: bool = False,
        show: bool = False,
    ) -> ActionResult:
        """Apply manifests, or ``create`` or ``replace`` what they state; ``file`` is their name in errors.

        ``namespace`` is for objects that state none; others must state it. ``show``: the result has the objects.
        """
        query = {"file": file, "verb": verb, "namespace": namespace, "dryRun": _ALL if dry_run else None, "show": show}
        return self._act("/rootlet/v1/apply", {key: value for key, value in query.items() if value}, body)

    def patch(
        self,
        kind: str,
        namespace: str,
        name: str,
        patch: bytes,
        *,
        patch_type: str = "strategic",
        dry_run: bool = False,
        values: bool = False,
    ) -> ActionResult:
        """Change an object that was applied; the result has it as it became, a Secret's values only with ``values``.
        Raises RequestFailed, too, when nothing was changed because of an error."""
        query: dict[str, str | bool] = {"kind": kind, "namespace": namespace, "name": name, "type": patch_type}
        query |= {"values": values, "dryRun": _ALL if dry_run else ""}
        result = self._act("/rootlet/v1/patch", {key: value for key, value in query.items() if value}, patch)
        if result.failed:
            raise RequestFailed(result.code, result.reason, result.message)
        return result

    def path_stat(self, namespace: str, name: str, query: Query) -> JsonObject:
        """Kind of a path of a container (containers/common stat, FileInfo). Raises RequestFailed 404 for none."""
        return self.get(_archive_path(namespace, name), {**query, "stat": True})

    def read_archive(self, namespace: str, name: str, query: Query) -> Iterator[bytes]:
        """Tar of a path of a container, piece by piece."""
        return self._streamed(_target(_archive_path(namespace, name), query), COLLECTION_TIMEOUT_S)

    def write_archive(self, namespace: str, name: str, query: Query, pieces: Iterable[bytes]) -> None:
        """Unpack a tar below a directory of a container."""
        target = _target(_archive_path(namespace, name), query)
        with upload(self.socket, target, pieces, silence_s=COLLECTION_TIMEOUT_S) as answer:
            raise_for_status(answer.status, answer.content())

    def restart_pod(self, namespace: str, name: str, grace_period_s: int | None = None) -> None:
        """Ask for the end of a pod and its begin anew; returns when it has begun to end."""
        self._act(f"{details_path(namespace, name)}/restart", {"gracePeriodSeconds": grace_period_s})

    def restart_container(self, namespace: str, pod: str, container: str, grace_period_s: int | None = None) -> None:
        """Ask for another container in place of one; returns before that has begun to end."""
        path = f"{details_path(namespace, pod)}/containers/{quote(container, safe='')}/restart"
        self._act(path, {"gracePeriodSeconds": grace_period_s})

    def pause_pod(self, namespace: str, name: str) -> None:
        """Pause the processes of a pod; returns when they are."""
        self._act(f"{details_path(namespace, name)}/pause", {})

    def resume_pod(self, namespace: str, name: str) -> None:
        """Let the processes of a paused pod go on; returns when they do."""
        self._act(f"{details_path(namespace, name)}/resume", {})

    def stop(self, pods: bool) -> ActionResult:
        """Ask the agent to stop, with ``pods`` after terminating every pod."""
        return self._act("/rootlet/v1/stop", {"pods": pods})

    def drain(self) -> ActionResult:
        """Ask for the end of all pods, in order; returns when it has begun."""
        return self._act("/rootlet/v1/drain", {})

    def uncordon(self) -> ActionResult:
        """Ask for the pods of a drained node."""
        return self._act("/rootlet/v1/uncordon", {})

    def reload(self, *, accept_manifests: bool = False) -> ActionResult:
        """Have the agent read its configuration file again, and take the manifests as they are now."""
        return self._act("/rootlet/v1/reload", {"acceptManifests": True} if accept_manifests else {})

    def workers(self) -> list[JsonObject]:
        """The agent's own processes."""
        found: list[JsonObject] = self.get("/rootlet/v1/workers")["items"]
        return found

    def restart_worker(self, name: str) -> None:
        """Ask for the next incarnation of a worker; returns before it is up."""
        self._act(f"/rootlet/v1/workers/{quote(name, safe='')}/restart", {})

    def log_levels(self) -> JsonObject:
        """The level of all lines, and those of areas."""
        return self.get(LOG_LEVEL_PATH)

    def set_log_level(self, area: str, level: str) -> str:
        """Change the level of an area, or of everything when it is empty. What is wrong with them, or nothing."""
        result = self._act(LOG_LEVEL_PATH, {"area": area, "level": level})
        return result.message if result.failed else ""

    def delete_pod(self, namespace: str, name: str, grace_period_s: int | None = None) -> None:
        """Ask for the deletion of a pod; returns before it is gone."""
        self._ask("DELETE", _target(pod_path(namespace, name), {"gracePeriodSeconds": grace_period_s}))

    def start_trace(self) -> None:
        """Have the agent's processes tell what they do, from now on."""
        self._ask("POST", TRACE_PATH)

    def take_trace(self) -> bytes:
        """End the trace, and return what the processes have told: an `ipc.link.shm.trace.Trace` as JSON."""
        found = self._get(TRACE_PATH, MAX_READ_ATTEMPTS)
        self._ask("DELETE", TRACE_PATH)
        return found

    def delete_config_object(self, resource: str, namespace: str, name: str) -> None:
        """Delete an object beside pods that was applied."""
        self._ask("DELETE", config_object_path(resource, namespace, name))

    def watch(self, path: str, query: Query, accept: str = "") -> Iterator[WatchEvent]:
        """Events from ``resourceVersion`` on, bookmarks among them, until the server ends the watch."""
        decoder = msgspec.json.Decoder(WatchEvent)
        target = _target(path, {**query, "watch": True, "allowWatchBookmarks": True})
        for line in _lines(self._streamed(target, WATCH_TIMEOUT_S, accept)):
            event = decoder.decode(line)
            if event.type == "ERROR":
                raise_status(event.object)
            yield event

    def stream_log(self, namespace: str, name: str, query: Query) -> Iterator[bytes]:
        """A container's log, piece by piece. A followed one may be silent for ever: reading has no deadline."""
        return self._streamed(_target(f"{pod_path(namespace, name)}/log", query), None)

    def _get(self, target: str, attempts: int, accept: str = "") -> bytes:
        try:
            return self._ask("GET", target, accept=accept)
        except ConnectionLost:
            if attempts <= 1:
                raise
        return self._get(target, attempts - 1, accept)

    def garbage(self) -> JsonObject:
        """Ask for a dry run of a collection, with every image: a `GarbageReport`."""
        return decode_object(self._ask("GET", GARBAGE_PATH, COLLECTION_TIMEOUT_S))

    def collect_garbage(self) -> JsonObject:
        """Remove garbage: a `GarbageReport`."""
        return decode_object(self._ask("POST", GARBAGE_PATH, COLLECTION_TIMEOUT_S))

    def _ask(self, method: str, target: str, silence_s: float = REQUEST_TIMEOUT_S, accept: str = "") -> bytes:
        with exchange(self.socket, method, target, silence_s=silence_s, accept=accept) as answer:
            content = answer.content()
        raise_for_status(answer.status, content)
        return content

    def _act(self, path: str, query: Query, body: bytes = b"") -> ActionResult:
        with exchange(self.socket, "POST", _target(path, query), body, silence_s=REQUEST_TIMEOUT_S) as answer:
            found = decode_object(answer.content())
        if found.get("kind") != "ActionResult":
            raise_status(found)
        return msgspec.convert(found, ActionResult)

    def _streamed(self, target: str, silence_s: float | None, accept: str = "") -> Iterator[bytes]:
        with exchange(self.socket, "GET", target, silence_s=silence_s, accept=accept) as answer:
            if answer.status >= 400:
                raise_for_status(answer.status, answer.content())
            yield from answer.pieces()


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Cut at newlines only: JSON may contain what Unicode calls line separators."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines


def pod_key(pod: Json) -> PodKey:
    """Identity of that pod."""
    return str(pod["metadata"].get("namespace", "")), str(pod["metadata"]["name"])


def pod_path(namespace: str, name: str) -> str:
    """The URL of one pod."""
    return f"{pods_path(namespace)}/{quote(name, safe='')}"


def pods_path(namespace: str | None) -> str:
    """The URL of a namespace's pods, or of all of them."""
    return _namespaced(namespace, "pods")


def events_path(namespace: str | None) -> str:
    """The URL of a namespace's events, or of all of them."""
    return _namespaced(namespace, "events")


def config_objects_path(resource: str, namespace: str | None) -> str:
    """The URL of a namespace's ``configmaps`` and the like, or of all of them; of WITHOUT_NAMESPACE of all."""
    return _namespaced(None if resource in WITHOUT_NAMESPACE else namespace, resource, "/rootlet/v1")


def config_object_path(resource: str, namespace: str, name: str) -> str:
    """The URL of one of them."""
    return f"{config_objects_path(resource, namespace)}/{quote(name, safe='')}"


def _archive_path(namespace: str, name: str) -> str:
    return f"{details_path(namespace, name)}/archive"


def details_path(namespace: str, name: str) -> str:
    """The URL of what only Rootlet knows of a pod."""
    return f"/rootlet/v1/pods/{quote(namespace, safe='')}/{quote(name, safe='')}"


def _namespaced(namespace: str | None, resource: str, root: str = "/api/v1") -> str:
    return f"{root}/{resource}" if namespace is None else f"{root}/namespaces/{quote(namespace, safe='')}/{resource}"


def _target(path: str, query: Query) -> str:
    said = {key: _text(value) for key, value in query.items() if value is not None}
    return f"{path}?{urlencode(said)}" if said else path


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
