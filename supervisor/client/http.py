"""The admin socket's client: what the CLI and the load test ask of a running agent. Synchronous; safe for threads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx
import msgspec

from supervisor.client.errors import AgentUnreachable, ConnectionLost, decode_object, raise_for_status, raise_status

CONNECT_TIMEOUT_S: Final = 5.0
REQUEST_TIMEOUT_S: Final = 45.0
"""How long one answer may take: longer than the API server itself waits for the master."""
WATCH_TIMEOUT_S: Final = 15.0
"""How long a watch may be silent; it carries a bookmark every second."""
MAX_READ_ATTEMPTS: Final = 4
"""How often a read is asked again when the API server dies over it. Its successor takes the connection."""
MAX_CONNECTIONS: Final = 32
TRACE_PATH: Final = "/rootlet/v1/trace"

Json = Mapping[str, Any]
PodKey = tuple[str, str]
"""Namespace and name."""
Query = Mapping[str, str | int | bool | None]

_LOST: Final = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError, httpx.ReadTimeout)
_ABSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout)


class WatchEvent(msgspec.Struct, frozen=True, rename="camel"):
    """One line of a watch (meta/v1 WatchEvent)."""

    type: str
    """ADDED, MODIFIED, DELETED or BOOKMARK; an ERROR is raised instead."""
    object: dict[str, Any]
    observed_at: float = 0.0
    """Monotonic seconds: when the observation began that the object's status tells of; 0.0 when not said."""


class ActionResult(msgspec.Struct, frozen=True):
    """Outcome of a change of several objects."""

    code: int
    reason: str = ""
    message: str = ""
    results: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether some part of it was not done."""
        return self.code >= 400


class AgentClient:
    """Every request raises AgentUnreachable, ConnectionLost or RequestFailed."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        timeout = httpx.Timeout(REQUEST_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        limits = httpx.Limits(max_connections=MAX_CONNECTIONS)
        transport = httpx.HTTPTransport(uds=str(socket), limits=limits, verify=False)  # no TLS on a Unix socket
        self._http = httpx.Client(transport=transport, base_url="http://rootlet", timeout=timeout, trust_env=False)

    def __enter__(self) -> AgentClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up every connection."""
        self._http.close()

    def get(self, path: str, query: Query | None = None) -> dict[str, Any]:
        """A JSON object. Asked again when the API server dies over it."""
        response = self._get(path, query or {}, MAX_READ_ATTEMPTS)
        found: dict[str, Any] = decode_object(response.content)
        return found

    def apply(self, body: bytes, file: str) -> ActionResult:
        """Apply manifests; ``file`` is their name in errors."""
        return self._act("/rootlet/v1/apply", {"file": file}, body)

    def stop(self, pods: bool) -> ActionResult:
        """Ask the agent to stop, with ``pods`` after terminating every pod."""
        return self._act("/rootlet/v1/stop", {"pods": pods})

    def workers(self) -> list[dict[str, Any]]:
        """The agent's own processes."""
        found: list[dict[str, Any]] = self.get("/rootlet/v1/workers")["items"]
        return found

    def restart_worker(self, name: str) -> None:
        """Ask for the next incarnation of a worker; returns before it is up."""
        self._act(f"/rootlet/v1/workers/{quote(name, safe='')}/restart", {})

    def delete_pod(self, namespace: str, name: str, grace_period_s: int | None = None) -> None:
        """Ask for the deletion of a pod; returns before it is gone."""
        query: Query = {"gracePeriodSeconds": grace_period_s}
        with self._translated():
            response = self._http.delete(pod_path(namespace, name), params=_params(query))
        raise_for_status(response.status_code, response.content)

    def start_trace(self) -> None:
        """Have the agent's processes tell what they do, from now on."""
        with self._translated():
            response = self._http.post(TRACE_PATH)
        raise_for_status(response.status_code, response.content)

    def take_trace(self) -> bytes:
        """End it, and return what they have told: an `ipc.shm.trace.Trace` as JSON."""
        found = self._get(TRACE_PATH, {}, MAX_READ_ATTEMPTS).content
        with self._translated():
            response = self._http.delete(TRACE_PATH)
        raise_for_status(response.status_code, response.content)
        return found

    def delete_config_object(self, resource: str, namespace: str, name: str) -> None:
        """Delete a ConfigMap or Secret that was applied."""
        with self._translated():
            response = self._http.delete(config_object_path(resource, namespace, name))
        raise_for_status(response.status_code, response.content)

    def watch(self, path: str, query: Query) -> Iterator[WatchEvent]:
        """Events from ``resourceVersion`` on, bookmarks among them, until the server ends the watch."""
        decoder = msgspec.json.Decoder(WatchEvent)
        timeout = httpx.Timeout(WATCH_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        query = {**query, "watch": True, "allowWatchBookmarks": True}
        with self._streamed(path, query, timeout) as response, self._translated():
            for line in _lines(response.iter_raw()):
                event = decoder.decode(line)
                if event.type == "ERROR":
                    raise_status(event.object)
                yield event

    def stream_log(self, namespace: str, name: str, query: Query) -> Iterator[bytes]:
        """A container's log, piece by piece. A followed one may be silent for ever: reading has no deadline."""
        timeout = httpx.Timeout(None, connect=CONNECT_TIMEOUT_S)
        with self._streamed(f"{pod_path(namespace, name)}/log", query, timeout) as response, self._translated():
            yield from response.iter_raw()

    def _get(self, path: str, query: Query, attempts: int) -> httpx.Response:
        try:
            with self._translated():
                response = self._http.get(path, params=_params(query))
        except ConnectionLost:
            if attempts <= 1:
                raise
            return self._get(path, query, attempts - 1)
        raise_for_status(response.status_code, response.content)
        return response

    def _act(self, path: str, query: Query, body: bytes = b"") -> ActionResult:
        with self._translated():
            response = self._http.post(path, params=_params(query), content=body)
        found = decode_object(response.content)
        if found.get("kind") != "ActionResult":
            raise_status(found)
        return msgspec.convert(found, ActionResult)

    @contextlib.contextmanager
    def _streamed(self, path: str, query: Query, timeout: httpx.Timeout) -> Iterator[httpx.Response]:
        request = self._http.build_request("GET", path, params=_params(query), timeout=timeout)
        with self._translated():
            response = self._http.send(request, stream=True)
        try:
            if response.status_code >= 400:
                with self._translated():
                    response.read()
                raise_for_status(response.status_code, response.content)
            yield response
        finally:
            response.close()

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except _ABSENT:
            raise AgentUnreachable(self.socket) from None
        except _LOST as error:
            raise ConnectionLost(f"the agent's API server went away before it had answered ({error})") from None


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Cut at newlines only: JSON may contain what Unicode calls line separators."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines


def pod_key(pod: Json) -> PodKey:
    """Which pod that is."""
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
    """The URL of a namespace's ``configmaps`` or ``secrets``, or of all of them."""
    return _namespaced(namespace, resource, "/rootlet/v1")


def config_object_path(resource: str, namespace: str, name: str) -> str:
    """The URL of one of them."""
    return f"{config_objects_path(resource, namespace)}/{quote(name, safe='')}"


def details_path(namespace: str, name: str) -> str:
    """The URL of what only Rootlet knows of a pod."""
    return f"/rootlet/v1/pods/{quote(namespace, safe='')}/{quote(name, safe='')}"


def _namespaced(namespace: str | None, resource: str, root: str = "/api/v1") -> str:
    return f"{root}/{resource}" if namespace is None else f"{root}/namespaces/{quote(namespace, safe='')}/{resource}"


def _params(query: Query) -> dict[str, str]:
    return {key: _text(value) for key, value in query.items() if value is not None}


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
