"""Answers of a real Podman when a call fails, and the kind that each gets.

``ROOTLET_RECORD_ERRORS=DIR`` writes the answers down as ``DIR/<version>.json``: the data of the unit tests.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.support.podman_service import PodmanService
from tests.support.raw_libpod import Libpod
from workers.kubecontainer.labels import INSTANCE
from workers.kubecontainer.runtime import ErrorKind
from workers.libpod import failures

pytestmark = [pytest.mark.podman]

RECORD: Final = "ROOTLET_RECORD_ERRORS"


class Answer(NamedTuple):
    status: int
    body: bytes


class World:
    """One pod with a container that runs, and one that was only created."""

    def __init__(self, service: PodmanService) -> None:
        self.image = service.image
        self.instance = service.new_instance()
        self.socket = service.socket
        self.pod = f"{self.instance}-pod"
        self.made(self.ask("POST", "pods/create", {"name": self.pod, "labels": {INSTANCE: self.instance}}))
        self.running = self.create("running", command=["sleep", "1000"])
        self.made(self.ask("POST", f"containers/{self.running}/start"))
        self.created = self.create("created", command=["sleep", "1000"])

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        """A raw exchange."""
        with contextlib.closing(Libpod(self.socket)) as raw:
            connection: http.client.HTTPConnection = raw._connection
            data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            connection.request(method, f"/v4.0.0/libpod/{path}", data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return Answer(answer.status, answer.read())

    def made(self, answer: Answer) -> str:
        assert answer.status < 400, answer
        return str(json.loads(answer.body or b"{}").get("Id", ""))

    def spec(self, name: str, **fields: Any) -> dict[str, Any]:
        return {
            "name": f"{self.instance}-{name}",
            "image": self.image,
            "pod": self.pod,
            "labels": {INSTANCE: self.instance},
            **fields,
        }

    def create(self, name: str, **fields: Any) -> str:
        return self.made(self.ask("POST", "containers/create", self.spec(name, **fields)))

    def start_new(self, name: str, **fields: Any) -> Answer:
        return self.ask("POST", f"containers/{self.create(name, **fields)}/start")

    def version(self) -> str:
        found = json.loads(self.ask("GET", "version").body)
        return str(found["Version"])


class Case(NamedTuple):
    kind: ErrorKind
    provoke: Callable[[World], Answer]


CASES: Final[dict[str, Case]] = {
    "inspect container, unknown": Case(ErrorKind.NOT_FOUND, lambda w: w.ask("GET", "containers/no-such/json")),
    "inspect pod, unknown": Case(ErrorKind.NOT_FOUND, lambda w: w.ask("GET", "pods/no-such/json")),
    "inspect image, unknown": Case(ErrorKind.IMAGE_UNKNOWN, lambda w: w.ask("GET", "images/localhost/no-such/json")),
    "start container, unknown": Case(ErrorKind.NOT_FOUND, lambda w: w.ask("POST", "containers/no-such/start")),
    "kill container, unknown": Case(ErrorKind.NOT_FOUND, lambda w: w.ask("POST", "containers/no-such/kill")),
    "remove container, unknown": Case(ErrorKind.NOT_FOUND, lambda w: w.ask("DELETE", "containers/no-such?force=true")),
    "remove pod, unknown": Case(ErrorKind.NOT_FOUND, lambda w: w.ask("DELETE", "pods/no-such?force=true")),
    "exec, unknown container": Case(
        ErrorKind.NOT_FOUND, lambda w: w.ask("POST", "containers/no-such/exec", {"Cmd": ["true"]})
    ),
    "exec session, unknown": Case(ErrorKind.NOT_FOUND, lambda w: w.ask("GET", f"exec/{'0a' * 32}/json")),
    "exec, container does not run": Case(
        ErrorKind.WRONG_STATE, lambda w: w.ask("POST", f"containers/{w.created}/exec", {"Cmd": ["true"]})
    ),
    "kill container, does not run": Case(
        ErrorKind.WRONG_STATE, lambda w: w.ask("POST", f"containers/{w.created}/kill?signal=SIGTERM")
    ),
    "kill container, no such signal": Case(
        ErrorKind.INVALID, lambda w: w.ask("POST", f"containers/{w.running}/kill?signal=NOSIG")
    ),
    "create pod, name in use": Case(ErrorKind.NAME_IN_USE, lambda w: w.ask("POST", "pods/create", {"name": w.pod})),
    "create container, name in use": Case(
        ErrorKind.NAME_IN_USE, lambda w: w.ask("POST", "containers/create", w.spec("running", command=["true"]))
    ),
    "create container, image unknown": Case(
        ErrorKind.IMAGE_UNKNOWN, lambda w: w.ask("POST", "containers/create", w.spec("x", image="localhost/no-such:1"))
    ),
    "create container, pod unknown": Case(
        ErrorKind.NOT_FOUND, lambda w: w.ask("POST", "containers/create", w.spec("x", pod="no-such"))
    ),
    "create container, a field of another type": Case(
        ErrorKind.INVALID, lambda w: w.ask("POST", "containers/create", w.spec("x", command=5))
    ),
    "create pod, bad name": Case(ErrorKind.INVALID, lambda w: w.ask("POST", "pods/create", {"name": "a b"})),
    "start container, command not found": Case(ErrorKind.COMMAND, lambda w: w.start_new("c1", command=["/no/such"])),
    "start container, command not executable": Case(
        ErrorKind.COMMAND, lambda w: w.start_new("c2", command=["/etc/passwd"])
    ),
    "start container, user unknown": Case(
        ErrorKind.COMMAND, lambda w: w.start_new("c3", user="nosuch", command=["true"])
    ),
}


@pytest.fixture(scope="module")
def world(podman_service: PodmanService) -> World:
    return World(podman_service)


@pytest.fixture(scope="module")
def record(world: World) -> Iterator[dict[str, Any]]:
    answers: dict[str, Any] = {}
    yield answers
    if directory := os.environ.get(RECORD):
        text = json.dumps(answers, indent=1, sort_keys=True, ensure_ascii=False)
        Path(directory, f"{world.version()}.json").write_text(text.replace(world.instance, "test") + "\n")


@pytest.mark.parametrize("case", CASES)
def test_the_kind_of_a_real_answer(case: str, world: World, record: dict[str, Any]) -> None:
    status, body = CASES[case].provoke(world)
    assert status >= 400, body
    record[case] = {"status": status, "body": body.decode(), "kind": CASES[case].kind.value}
    error = failures.call_error(case, status, body)
    assert error.kind is CASES[case].kind, (status, body)
