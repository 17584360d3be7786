"""Endpoints of the libpod API, each stated once for all who ask it: the workers' calls on their loops, podman-py's,
streams of the API server, `rootlet load-test`, benches. Pure.

A row has verb, path, deadline and the shape of the answer's JSON. Bodies of requests are made in `workers.specgen`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from typing import Final, Generic, TypeVar
from urllib.parse import quote

import msgspec

from ipc.host.libpod import answers, image_answers

API_VERSION: Final = "4.0.0"
"""Every server from 4.3 to 5.8 answers it in the shapes that are named here."""
ROOT: Final = f"/v{API_VERSION}/libpod/"
"""Root of all paths."""
NAME: Final = "{}"
"""Place of an id, a name or an image reference in a path."""

A = TypeVar("A", covariant=True)
B = TypeVar("B")


class Kind(enum.StrEnum):
    """Kinds of call. The last three are streams, which have the deadlines of their callers."""

    PING = "ping"
    LIST = "list"
    INSPECT = "inspect"
    CREATE = "create"
    START = "start"
    KILL = "kill"
    UPDATE = "update"
    REMOVE = "remove"
    EXEC = "exec"
    """Making an exec session and asking about it, not the command."""
    EXEC_OUTPUT = "exec-output"
    EVENTS = "events"
    PULL = "pull"


DEADLINE_S: Final[Mapping[Kind, float]] = {
    Kind.PING: 3.0,  # takes no lock, 0.4 ms
    Kind.LIST: 75.0,  # waits for the lock of every container, also of strangers, 0.5 ms each: for 100,000 of them
    Kind.INSPECT: 15.0,  # waits for one container's lock, which a create, start or remove of it holds
    Kind.CREATE: math.inf,  # the storage driver vfs copies the whole image
    Kind.START: math.inf,
    Kind.KILL: 30.0,  # a signal, once it has the container's lock
    Kind.REMOVE: math.inf,  # kills, unmounts, deletes what may be gigabytes
    Kind.UPDATE: 30.0,  # a few files of a cgroup, written by the OCI runtime under the container's lock
    Kind.EXEC: 30.0,
    Kind.EXEC_OUTPUT: math.inf,
    Kind.EVENTS: math.inf,
    Kind.PULL: math.inf,
}
"""How long the whole of an answer may take, in seconds; runtimeRequestTimeout when that is less. An answer that comes
byte by byte gets no more."""


class Endpoint(msgspec.Struct, Generic[A], frozen=True):
    """One verb of one path."""

    call: str
    """For people: "create container"."""
    method: str
    path: str
    """Below `ROOT`, with `NAME` in it."""
    kind: Kind
    answer: type[A]
    """Shape of the answer's JSON; of a list and of a stream of lines, that of one entry; None without JSON."""

    def at(self, name: str = "") -> str:
        """The path of that id, name or reference."""
        return self.path.replace(NAME, quote(name, safe="/:@"), 1)

    def read_as(self, shape: type[B]) -> Endpoint[B]:
        """An endpoint that differs in the part of its answer that is read."""
        return Endpoint(self.call, self.method, self.path, self.kind, shape)


Nothing: Final = type(None)

PING: Final = Endpoint("ping", "GET", "_ping", Kind.PING, Nothing)
INFO: Final = Endpoint("info", "GET", "info", Kind.INSPECT, answers.Info)
EVENTS: Final = Endpoint("events", "GET", "events", Kind.EVENTS, answers.Event)

LIST_PODS: Final = Endpoint("list pods", "GET", "pods/json", Kind.LIST, answers.ListPod)
LIST_EMPTY_PODS: Final = msgspec.structs.replace(LIST_PODS, call="list empty pods")
INSPECT_POD: Final = Endpoint("inspect pod", "GET", "pods/{}/json", Kind.INSPECT, answers.InspectPod)
CREATE_POD: Final = Endpoint("create pod", "POST", "pods/create", Kind.CREATE, answers.Created)
START_POD: Final = Endpoint("start pod", "POST", "pods/{}/start", Kind.START, Nothing)
PAUSE_POD: Final = Endpoint("pause pod", "POST", "pods/{}/pause", Kind.UPDATE, answers.FreezeReport)
RESUME_POD: Final = Endpoint("resume pod", "POST", "pods/{}/unpause", Kind.UPDATE, answers.FreezeReport)
REMOVE_POD: Final = Endpoint("remove pod", "DELETE", "pods/{}", Kind.REMOVE, answers.RemovalReport)

LIST_CONTAINERS: Final = Endpoint("list containers", "GET", "containers/json", Kind.LIST, answers.ListContainer)
LIST_IMAGE_USERS: Final = LIST_CONTAINERS.read_as(image_answers.ImageUser)
INSPECT_CONTAINER: Final = Endpoint(
    "inspect container", "GET", "containers/{}/json", Kind.INSPECT, answers.InspectContainer
)
INSPECT_WORKING_DIRECTORY: Final = INSPECT_CONTAINER.read_as(answers.InspectWorkingDirectory)
INSPECT_MOUNTS: Final = INSPECT_CONTAINER.read_as(image_answers.Mounts)
CREATE_CONTAINER: Final = Endpoint("create container", "POST", "containers/create", Kind.CREATE, answers.Created)
START_CONTAINER: Final = Endpoint("start container", "POST", "containers/{}/start", Kind.START, Nothing)
KILL_CONTAINER: Final = Endpoint("kill container", "POST", "containers/{}/kill", Kind.KILL, Nothing)
UPDATE_CONTAINER: Final = Endpoint("update container", "POST", "containers/{}/update", Kind.UPDATE, str)
REMOVE_CONTAINER: Final = Endpoint("remove container", "DELETE", "containers/{}", Kind.REMOVE, answers.RemovalReport)
ATTACH: Final = Endpoint("attach", "POST", "containers/{}/attach", Kind.EXEC_OUTPUT, Nothing)
RESIZE_CONTAINER: Final = Endpoint("resize container", "POST", "containers/{}/resize", Kind.EXEC, Nothing)
STAT_PATH: Final = Endpoint("stat path", "HEAD", "containers/{}/archive", Kind.EXEC, Nothing)
READ_ARCHIVE: Final = Endpoint("read archive", "GET", "containers/{}/archive", Kind.EXEC_OUTPUT, Nothing)
WRITE_ARCHIVE: Final = Endpoint("write archive", "PUT", "containers/{}/archive", Kind.EXEC_OUTPUT, Nothing)

CREATE_EXEC: Final = Endpoint("create exec", "POST", "containers/{}/exec", Kind.EXEC, answers.Created)
START_EXEC: Final = Endpoint("start exec", "POST", "exec/{}/start", Kind.EXEC_OUTPUT, Nothing)
INSPECT_EXEC: Final = Endpoint("inspect exec", "GET", "exec/{}/json", Kind.EXEC, answers.ExecSession)
RESIZE_EXEC: Final = Endpoint("resize exec", "POST", "exec/{}/resize", Kind.EXEC, Nothing)

LIST_IMAGES: Final = Endpoint("list images", "GET", "images/json", Kind.LIST, image_answers.ListImage)
INSPECT_IMAGE: Final = Endpoint("inspect image", "GET", "images/{}/json", Kind.INSPECT, image_answers.InspectImage)
PULL_IMAGE: Final = Endpoint("pull image", "POST", "images/pull", Kind.PULL, image_answers.PullLine)
REMOVE_IMAGES: Final = Endpoint("remove image", "DELETE", "images/remove", Kind.REMOVE, image_answers.ImagesRemoved)

INSPECT_VOLUME: Final = Endpoint("inspect volume", "GET", "volumes/{}/json", Kind.INSPECT, answers.Volume)
CREATE_VOLUME: Final = Endpoint("create volume", "POST", "volumes/create", Kind.CREATE, answers.Volume)
REMOVE_VOLUME: Final = Endpoint("remove volume", "DELETE", "volumes/{}", Kind.REMOVE, Nothing)
