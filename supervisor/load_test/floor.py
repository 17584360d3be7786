"""The same pods by bare calls of libpod, with Podman's own defaults: what this host can do at best."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Protocol

import orjson

from ipc.host.clock import monotonic
from ipc.host.libpod import endpoints
from ipc.host.libpod.answers import Created
from ipc.host.libpod.endpoints import DEADLINE_S, ROOT, Endpoint
from ipc.host.libpod.go_json import decode_value
from ipc.host.text.json_types import JsonObject
from supervisor.client.errors import RequestFailed
from supervisor.client.exchange import exchange
from supervisor.config.containers_conf import named_profile
from supervisor.load_test.generate import RUN_LABEL, Load, command

IN_FLIGHT: Final = 4
"""Pods at a time: more are no faster (measured on 2 CPUs)."""
CALL_S: Final = 120.0
"""Longest wait for an answer, in seconds."""
MAX_SHOWN_CHARS: Final = 300


class Progress(Protocol):
    """Shows how far it is."""

    def show(self, phase: str, done: int, total: int) -> None: ...


def podman_socket(admin_socket: Path) -> Path:
    """Socket of the service that an agent uses: its own, else the user's (`supervisor.processes.podman_service`)."""
    own = admin_socket.with_suffix(".podman.sock")
    return own if own.exists() else admin_socket.parent.parent / "podman" / "podman.sock"


class Floor:
    """Starts a load's pods, and takes them away again."""

    def __init__(self, socket: Path, load: Load, progress: Progress) -> None:
        self._socket = socket
        self._load = load
        self._progress = progress
        profile = named_profile(os.environ)
        # Our own service has another default one, that of sandboxes.
        self._profile = {"seccomp_profile_path": profile} if profile else {}
        self._made: list[str] = []
        self._done = itertools.count(1)

    def measure(self) -> float:
        """Seconds from the first call to the last container's start. Raises AgentUnreachable, ConnectionLost, and
        RequestFailed when Podman refuses a call. No pod stays."""
        names = [f"floor-{self._load.run}-{index}" for index in range(self._load.pods)]
        began = monotonic()
        try:
            self._each(self._start, names)
            return monotonic() - began
        finally:
            self._each(self._remove, tuple(self._made))

    def _each(self, act: Callable[[str], None], of: Sequence[str]) -> None:
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            for _ in pool.map(act, of):
                pass

    def _start(self, name: str) -> None:
        labels = {RUN_LABEL: self._load.run}
        pod = self._made_by(endpoints.CREATE_POD, {"name": name, "labels": labels})
        self._made.append(pod)
        self._call(endpoints.START_POD, pod)
        for index in range(self._load.containers):
            container = {"name": f"{name}-c{index}", "image": self._load.image, "pod": pod, "labels": labels}
            container |= self._profile
            made = self._made_by(endpoints.CREATE_CONTAINER, {**container, "entrypoint": command(name)})
            self._call(endpoints.START_CONTAINER, made)
        self._progress.show("floor", next(self._done), self._load.pods)

    def _remove(self, pod: str) -> None:
        self._call(endpoints.REMOVE_POD, pod, query="?force=true&timeout=0")

    def _made_by(self, endpoint: Endpoint[Created], body: JsonObject) -> str:
        """Id of what a call has created."""
        return decode_value(endpoint.answer, self._call(endpoint, content=orjson.dumps(body))).id

    def _call(self, endpoint: Endpoint[object], name: str = "", query: str = "", content: bytes = b"") -> bytes:
        path, deadline_s = endpoint.at(name), min(CALL_S, DEADLINE_S[endpoint.kind])
        with exchange(self._socket, endpoint.method, f"{ROOT}{path}{query}", content, silence_s=deadline_s) as answer:
            text = answer.content()
            if answer.status >= 400:
                said = text.decode(errors="replace")[:MAX_SHOWN_CHARS]
                raise RequestFailed(answer.status, "Podman", f"{path}: {said}")
        return text
