"""Decodes answers of the libpod API: JSON bodies to `workers.kubecontainer.runtime` structs, failures to their kind.
Pure.

Only the fields that are used are named here; msgspec skips the rest while parsing, so that 200 containers become
checked structs in 0.3 ms, which is what a parser needs for the bare dictionaries. The shapes are those of API version
4.0.0, which servers from 4.3 to 5.8 answer when the path asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from ipc.host.clock import parse_rfc3339
from ipc.host.id_ranges import IdRange, IdRanges, merged
from workers.kubecontainer.runtime import (
    ErrorKind,
    ExecResult,
    ImageInfo,
    ImageUser,
    InspectedContainer,
    InspectedPod,
    ListedContainer,
    ListedImage,
    ListedPod,
    RuntimeCallError,
    RuntimeEvent,
    VolumeInfo,
)
from workers.kubecontainer.signal_names import signal_name

_DIGEST: Final = "sha256:"
MAX_MESSAGE_CHARS: Final = 4096
"""Longest error text kept of an answer, in characters: a registry or an OCI runtime chose its words."""

MAX_PROGRESS_CHARS: Final = 256
"""Longest text kept of a pull's progress, in characters."""
_USERINFO: Final = re.compile(r"//[^/@\s]*@")
_STARTED_TWICE: Final = "container is running"
"""Error that Podman 5.4 notes for good for a container that is started again while it runs."""

_FRAME_HEADER_BYTES: Final = 8
_EXEC_ERROR: Final = b"Error: "
"""How the service begins what it has to say in the output of an exec session."""
_NOT_STARTED: Final = frozenset({126, 127})

T = TypeVar("T")


class _Wire(msgspec.Struct, frozen=True, rename="pascal"):
    """A JSON object of Go's: absent and null fields are its zero values."""


class _PodMember(_Wire, frozen=True):
    id: str
    status: str = ""


class _ListPod(_Wire, frozen=True):
    id: str
    name: str = ""
    infra_id: str = ""
    labels: dict[str, str] | None = None
    created: str = ""
    containers: tuple[_PodMember, ...] | None = None


class _ListContainer(_Wire, frozen=True):
    id: str
    state: str
    names: tuple[str, ...] | None = None
    pod: str = ""
    pod_name: str = ""
    is_infra: bool = False
    pid: int = 0
    exit_code: int = 0
    created: datetime | None = None
    started_at: int = 0
    exited_at: int = 0
    image: str = ""
    image_id: str = msgspec.field(default="", name="ImageID")
    labels: dict[str, str] | None = None


class _ListedIdentity(_Wire, frozen=True):
    """Fields of a `_ListContainer` that have to be right in any case: they say whose it is."""

    id: str
    pod: str = ""
    pod_name: str = ""
    is_infra: bool = False
    labels: dict[str, str] | None = None


class _State(_Wire, frozen=True):
    status: str
    pid: int = 0
    conmon_pid: int = 0
    exit_code: int = 0
    oom_killed: bool = msgspec.field(default=False, name="OOMKilled")
    error: str = ""
    started_at: str = ""
    finished_at: str = ""


class _Config(_Wire, frozen=True):
    labels: dict[str, str] | None = None
    stop_signal: int | str = 0
    """A number up to API version 4, a name from 5 on."""


class _LogConfig(_Wire, frozen=True):
    path: str = ""


class _HostConfig(_Wire, frozen=True):
    log_config: _LogConfig | None = None


class _Network(_Wire, frozen=True):
    ip_address: str = msgspec.field(default="", name="IPAddress")
    ipv6_address: str = msgspec.field(default="", name="GlobalIPv6Address")


class _NetworkSettings(_Network, frozen=True):
    networks: dict[str, _Network] | None = None


class _GraphDriver(_Wire, frozen=True):
    data: dict[str, str] | None = None


class _InspectContainer(_Wire, frozen=True):
    id: str
    state: _State
    name: str = ""
    pod: str = ""
    is_infra: bool = False
    created: str = ""
    image: str = ""
    image_name: str = ""
    image_digest: str = ""
    config: _Config | None = None
    host_config: _HostConfig | None = None
    network_settings: _NetworkSettings | None = None
    resolv_conf_path: str = ""
    oci_config_path: str = msgspec.field(default="", name="OCIConfigPath")
    graph_driver: _GraphDriver | None = None


class _InspectPodMember(_Wire, frozen=True):
    id: str
    state: str = ""


class _InspectPod(_Wire, frozen=True):
    id: str
    name: str = ""
    created: str = ""
    labels: dict[str, str] | None = None
    infra_id: str = msgspec.field(default="", name="InfraContainerID")
    containers: tuple[_InspectPodMember, ...] | None = None


class _ImageConfig(_Wire, frozen=True):
    user: str = ""
    stop_signal: str = ""


class _Image(_Wire, frozen=True):
    id: str
    repo_digests: tuple[str, ...] | None = None
    user: str = ""
    size: int = 0
    config: _ImageConfig | None = None


class _ListImage(_Wire, frozen=True):
    id: str
    names: tuple[str, ...] | None = None
    repo_tags: tuple[str, ...] | None = None
    repo_digests: tuple[str, ...] | None = None
    size: int = 0
    read_only: bool = False


class _ImageUser(_Wire, frozen=True):
    id: str
    names: tuple[str, ...] | None = None
    image_id: str = msgspec.field(default="", name="ImageID")
    labels: dict[str, str] | None = None


class _Mount(_Wire, frozen=True):
    type: str = ""
    source: str = ""


class _Mounts(_Wire, frozen=True):
    mounts: tuple[_Mount, ...] | None = None


class _ImagesRemoved(_Wire, frozen=True):
    errors: tuple[str, ...] | None = None


class _Volume(_Wire, frozen=True):
    name: str
    driver: str = ""
    mountpoint: str = ""
    options: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class _IdMap(msgspec.Struct, frozen=True):
    container_id: int
    size: int


class _IdMappings(msgspec.Struct, frozen=True):
    uidmap: tuple[_IdMap, ...] | None = None
    gidmap: tuple[_IdMap, ...] | None = None


class _StoreInfo(msgspec.Struct, frozen=True, rename="camel"):
    graph_root: str = ""
    graph_driver_name: str = ""


class _Host(msgspec.Struct, frozen=True):
    id_mappings: _IdMappings = msgspec.field(default=_IdMappings(), name="idMappings")


class _Info(msgspec.Struct, frozen=True):
    host: _Host
    store: _StoreInfo = _StoreInfo()


class _Created(_Wire, frozen=True):
    id: str


class _Report(_Wire, frozen=True):
    """One target of a DELETE. ``Err`` is a Go error: null, or whatever its type shows as JSON, often just ``{}``."""

    id: str = ""
    err: msgspec.Raw = msgspec.Raw(b"null")
    removed: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict, name="RemovedCtrs")
    """Errors of a pod's members by id, from 4.5 on."""


class _ExecSession(_Wire, frozen=True):
    running: bool = False
    exit_code: int = 0
    pid: int = 0


class _PullReport(msgspec.Struct, frozen=True):
    id: str = ""
    images: tuple[str, ...] | None = None
    error: str = ""
    stream: str = ""


class _Actor(_Wire, frozen=True):
    id: str = msgspec.field(default="", name="ID")
    attributes: dict[str, str] | None = None


class _Event(msgspec.Struct, frozen=True):
    action: str = msgspec.field(name="Action")
    actor: _Actor = msgspec.field(name="Actor")
    time_ns: int = msgspec.field(default=0, name="timeNano")


class _Failure(msgspec.Struct, frozen=True):
    cause: str = ""
    message: str = ""


def decode_pods(body: bytes) -> tuple[ListedPod, ...]:
    """GET pods/json. Like every decode function here it raises msgspec.DecodeError or ValueError."""
    return tuple(_listed_pod(pod) for pod in _decode_list(_ListPod, body))


def decode_containers(body: bytes) -> tuple[ListedContainer, ...]:
    """GET containers/json. A container with invalid fields has an empty ``state`` and must be inspected."""
    try:
        return tuple(_listed_container(c) for c in _decode_list(_ListContainer, body))
    except (msgspec.ValidationError, ValueError, OverflowError):
        return tuple(_one_listed(entry) for entry in _decode_list(msgspec.Raw, body))


def decode_container(body: bytes) -> InspectedContainer:
    """GET containers/{id}/json."""
    sock = _decode(_InspectContainer, body)
    state = sock.state
    log_config = sock.host_config.log_config if sock.host_config else None
    return InspectedContainer(
        id=sock.id,
        name=sock.name,
        pod_id=sock.pod,
        is_infra=sock.is_infra,
        state=state.status,
        pid=state.pid,
        conmon_pid=state.conmon_pid,
        exit_code=state.exit_code,
        oom_killed=state.oom_killed,
        error="" if state.error.endswith(_STARTED_TWICE) else state.error,
        created_at=_epoch_s(sock.created),
        started_at=_epoch_s(state.started_at),
        finished_at=_epoch_s(state.finished_at),
        image=sock.image_name,
        image_id=sock.image,
        image_digest=sock.image_digest,
        labels=(sock.config.labels if sock.config else None) or {},
        ips=_ips(sock.network_settings),
        log_path=log_config.path if log_config else "",
        resolv_conf=sock.resolv_conf_path,
        stop_signal=signal_name(sock.config.stop_signal) if sock.config else "",
        config_path=sock.oci_config_path,
        layer=((sock.graph_driver.data if sock.graph_driver else None) or {}).get("UpperDir", ""),
    )


def decode_pod(body: bytes) -> InspectedPod:
    """GET pods/{id}/json."""
    sock = _decode(_InspectPod, body)
    return InspectedPod(
        id=sock.id,
        name=sock.name,
        infra_id=sock.infra_id,
        labels=sock.labels or {},
        created_at=_epoch_s(sock.created),
        containers=tuple((member.id, member.state) for member in sock.containers or ()),
    )


def decode_image(body: bytes) -> ImageInfo:
    """GET images/{name}/json."""
    sock = _decode(_Image, body)
    config = sock.config or _ImageConfig()
    return ImageInfo(
        id=sock.id,
        digests=sock.repo_digests or (),
        user=sock.user or config.user,
        stop_signal=config.stop_signal,
        size_bytes=sock.size,
    )


def decode_images(body: bytes) -> tuple[ListedImage, ...]:
    """GET images/json."""
    return tuple(
        ListedImage(
            id=sock.id.removeprefix(_DIGEST),
            names=sock.names or sock.repo_tags or (),
            digests=sock.repo_digests or (),
            size_bytes=sock.size,
            is_read_only=sock.read_only,
        )
        for sock in _decode_list(_ListImage, body)
    )


def decode_image_users(body: bytes) -> tuple[tuple[ImageUser, Mapping[str, str]], ...]:
    """GET containers/json?external=true: each container as a user of its image, with its labels."""
    return tuple(
        (
            ImageUser(
                id=sock.id,
                name=next(iter(sock.names or ()), sock.id),
                images=(sock.image_id.removeprefix(_DIGEST),),
            ),
            sock.labels or {},
        )
        for sock in _decode_list(_ImageUser, body)
    )


def decode_mounted_images(body: bytes) -> tuple[str, ...]:
    """GET containers/{id}/json: images that are mounted into it, as whoever made it has named them."""
    return tuple(mount.source for mount in _decode(_Mounts, body).mounts or () if mount.type == "image")


def check_images_removed(call: str, body: bytes) -> None:
    """DELETE images/remove, which answers 200 in any case. Raises RuntimeCallError for its errors but those of images
    that are gone."""
    for error in _decode(_ImagesRemoved, body).errors or ():
        kind = _by_cause(error) or ErrorKind.INTERNAL
        if kind is not ErrorKind.IMAGE_UNKNOWN:
            raise RuntimeCallError(kind, call, error[:MAX_MESSAGE_CHARS])


def decode_store(body: bytes) -> tuple[str, str]:
    """GET info: root and driver of the storage."""
    store = _decode(_Info, body).store
    return store.graph_root, store.graph_driver_name


def decode_volume(body: bytes) -> VolumeInfo:
    """GET volumes/{name}/json and POST volumes/create."""
    sock = _decode(_Volume, body)
    return VolumeInfo(
        name=sock.name,
        mount_point=sock.mountpoint,
        driver=sock.driver or "local",
        options=sock.options or {},
        labels=sock.labels or {},
    )


def decode_id_ranges(body: bytes) -> IdRanges:
    """GET info. A Podman that has no map of its own has all ids."""
    maps = _decode(_Info, body).host.id_mappings
    return IdRanges(users=_id_ranges(maps.uidmap), groups=_id_ranges(maps.gidmap))


def _id_ranges(maps: tuple[_IdMap, ...] | None) -> tuple[IdRange, ...]:
    return merged(IdRange(one.container_id, one.size) for one in maps) if maps else (IdRange(0, 2**32 - 1),)


def decode_created_id(body: bytes) -> str:
    """POST pods/create and containers/create."""
    return _decode(_Created, body).id


def decode_removal_errors(body: bytes) -> tuple[str, ...]:
    """DELETE containers/{id} (a list of reports) and pods/{id} (one): what went wrong, although the status is 200."""
    reports = (_decode(_Report, body),) if body.startswith(b"{") else _decode_list(_Report, body or b"null")
    errors = [found for report in reports for found in ((report.id, report.err), *report.removed.items())]
    return tuple(f"{id[:12]}: {bytes(error).decode()}" for id, error in errors if bytes(error) != b"null")


class _FreezeReport(msgspec.Struct, frozen=True):
    errors: tuple[str, ...] | None = msgspec.field(default=None, name="Errs")


def decode_freeze_errors(body: bytes) -> tuple[str, ...]:
    """POST pods/{id}/pause and unpause: what went wrong, as far as it is told apart."""
    return tuple(dict.fromkeys(_decode(_FreezeReport, body).errors or ()))


def decode_progress(line: bytes) -> str:
    """One line of POST images/pull before its last: what is being done; empty when it does not say."""
    try:
        words = _decode(_PullReport, line).stream
    except msgspec.DecodeError:
        return ""  # The last line tells; this one is only for people.
    return " ".join(words.split())[:MAX_PROGRESS_CHARS]


def decode_pull(line: bytes) -> str:
    """The last line of POST images/pull, which answers 200 in any case: the image id. Raises PULL for its error."""
    report = _decode(_PullReport, line) if line else _PullReport()
    if report.error:
        raise RuntimeCallError(ErrorKind.PULL, "pull image", without_userinfo(report.error)[:MAX_MESSAGE_CHARS])
    image_id = report.id or next(iter(report.images or ()), "")
    if not image_id:
        raise RuntimeCallError(ErrorKind.PULL, "pull image", "the pull ended without an image and without an error")
    return image_id


def decode_exec_pid(body: bytes) -> int:
    """GET exec/{id}/json: the pid of its process in the host's pid namespace; 0 when it does not run."""
    session = _decode(_ExecSession, body)
    return session.pid if session.running else 0


def decode_exec_result(body: bytes, framed: bytes, max_output_bytes: int) -> ExecResult:
    """GET exec/{id}/json after its end, and what its start answered. Raises COMMAND when there was no start.

    Then the service writes the OCI runtime's message into the output, and an exit code that the command might have had
    itself: 126, 127.
    """
    session = _decode(_ExecSession, body)
    if session.running:
        raise RuntimeCallError(ErrorKind.UNAVAILABLE, "exec", "the output broke off, and the command still runs")
    output = _unframe(framed)
    if session.exit_code in _NOT_STARTED and output.startswith(_EXEC_ERROR):
        words = output.removeprefix(_EXEC_ERROR).partition(b"\n")[0].decode(errors="replace")
        if _by_cause(words) is ErrorKind.COMMAND:
            raise RuntimeCallError(ErrorKind.COMMAND, "exec", words[:MAX_MESSAGE_CHARS])
    kept = output[:max_output_bytes]
    return ExecResult(exit_code=session.exit_code, output=kept, limited=len(output) > max_output_bytes)


def _unframe(framed: bytes) -> bytes:
    """Both streams of an output that travels as frames: stream number, three zeros, length, bytes."""
    parts, at = [], 0
    while at + _FRAME_HEADER_BYTES <= len(framed):
        begin = at + _FRAME_HEADER_BYTES
        at = begin + int.from_bytes(framed[begin - 4 : begin], "big")
        parts.append(framed[begin:at])
    return b"".join(parts)


def without_userinfo(text: str) -> str:
    """URLs without user and password: those of a proxy may be in an error."""
    return _USERINFO.sub("//", text)


def decode_event(line: bytes) -> RuntimeEvent:
    """One line of GET events."""
    sock = _decode(_Event, line)
    return RuntimeEvent(
        action=sock.action,
        container_id=sock.actor.id,
        labels=sock.actor.attributes or {},
        time=sock.time_ns / 1e9,
    )


# The root cause that libpod names, not the status, says what happened: 4.3 answers 500 to a missing image and to a name
# in use. First match wins. Sources: libpod/define/errors.go; measured on 4.3.1 and 5.4.2.
_KIND_BY_CAUSE: Final = (
    ("image not known", ErrorKind.IMAGE_UNKNOWN),
    ("no such image", ErrorKind.IMAGE_UNKNOWN),
    ("image is in use", ErrorKind.WRONG_STATE),
    ("image used by", ErrorKind.WRONG_STATE),
    ("name is already in use", ErrorKind.NAME_IN_USE),
    ("pod already exists", ErrorKind.NAME_IN_USE),
    ("container already exists", ErrorKind.NAME_IN_USE),
    ("volume already exists", ErrorKind.NAME_IN_USE),
    ("no such container", ErrorKind.NOT_FOUND),
    ("no such pod", ErrorKind.NOT_FOUND),
    ("no such volume", ErrorKind.NOT_FOUND),
    ("has already been removed", ErrorKind.NOT_FOUND),
    ("state improper", ErrorKind.WRONG_STATE),
    ("no such exec session", ErrorKind.NOT_FOUND),
    ("invoke a command that was not found", ErrorKind.COMMAND),
    ("OCI permission denied", ErrorKind.COMMAND),
    ("OCI runtime permission denied", ErrorKind.COMMAND),
    ("no matching entries in passwd file", ErrorKind.COMMAND),
    ('workdir "', ErrorKind.COMMAND),
    ("invalid argument", ErrorKind.INVALID),
    ("invalid configuration", ErrorKind.INVALID),
    ("invalid pod spec", ErrorKind.INVALID),
    ("invalid container config", ErrorKind.INVALID),
    ("invalid signal", ErrorKind.INVALID),
    ("no command or entrypoint provided", ErrorKind.INVALID),
    ("json: cannot unmarshal", ErrorKind.INVALID),
)
# No sentinel error of libpod's stands behind these: the OCI runtime's words, and how libpod reports any failed command.
_LEFTOVER: Final = re.compile(r"already exists: OCI runtime error|/[a-z]+ start [0-9a-f]{64}` failed: exit status")
# Whoever ends Podman ends what it has just run as well: that says nothing about the container.
_BROKEN_OFF: Final = re.compile(r"` failed: signal: (?:terminated|killed)")
_KIND_BY_STATUS: Final = {400: ErrorKind.INVALID, 404: ErrorKind.NOT_FOUND, 409: ErrorKind.WRONG_STATE}


def call_error(call: str, status: int, body: bytes) -> RuntimeCallError:
    """The error behind an answer of 400 or more.

    Only the first JSON document counts: 4.3 writes a second one after some (pkg/api/handlers/utils/errors.go).
    """
    try:
        failure = _decode(_Failure, body.partition(b"\n")[0])
    except (msgspec.DecodeError, ValueError):
        failure = _Failure()
    text = (
        failure.message or failure.cause or body.decode(errors="replace") or f"Podman gives no reason (HTTP {status})"
    )
    return RuntimeCallError(_kind(status, failure), call, text[:MAX_MESSAGE_CHARS])


def _kind(status: int, failure: _Failure) -> ErrorKind:
    """Kind of a failure: by the cause, else by the message, and last by the status."""
    kind = _by_cause(failure.cause)
    if kind is None and _LEFTOVER.search(failure.message):
        kind = ErrorKind.LEFTOVER
    if kind is None and _BROKEN_OFF.search(failure.message):
        kind = ErrorKind.UNAVAILABLE
    return kind or _KIND_BY_STATUS.get(status, ErrorKind.INTERNAL)


def _by_cause(cause: str) -> ErrorKind | None:
    return next((kind for fragment, kind in _KIND_BY_CAUSE if fragment in cause), None)


def _listed_pod(sock: _ListPod) -> ListedPod:
    return ListedPod(
        id=sock.id,
        name=sock.name,
        infra_id=sock.infra_id,
        labels=sock.labels or {},
        created_at=_epoch_s(sock.created),
        containers=tuple((member.id, member.status) for member in sock.containers or ()),
    )


def _one_listed(entry: bytes) -> ListedContainer:
    try:
        return _listed_container(_decode(_ListContainer, entry))
    except (msgspec.ValidationError, ValueError, OverflowError):
        found = _decode(_ListedIdentity, entry)
    return _listed_container(
        _ListContainer(
            id=found.id,
            state="",
            pod=found.pod,
            pod_name=found.pod_name,
            is_infra=found.is_infra,
            labels=found.labels,
        )
    )


def _listed_container(sock: _ListContainer) -> ListedContainer:
    return ListedContainer(
        id=sock.id,
        name=next(iter(sock.names or ()), ""),
        pod_id=sock.pod,
        pod_name=sock.pod_name,
        is_infra=sock.is_infra,
        state=sock.state,
        pid=sock.pid,
        exit_code=sock.exit_code,
        created_at=max(0.0, sock.created.timestamp()) if sock.created else 0.0,
        started_at=max(0.0, float(sock.started_at)),
        exited_at=max(0.0, float(sock.exited_at)),
        image=sock.image,
        image_id=sock.image_id,
        labels=sock.labels or {},
    )


def _ips(settings: _NetworkSettings | None) -> tuple[str, ...]:
    """Addresses on bridge networks, IPv4 first; slirp4netns and pasta show none."""
    if settings is None:
        return ()
    networks: Mapping[str, _Network] = settings.networks or {"": settings}
    found = [n.ip_address for n in networks.values()] + [n.ipv6_address for n in networks.values()]
    return tuple(dict.fromkeys(address for address in found if address))


def _epoch_s(text: str) -> float:
    """Go's time as JSON to epoch seconds; its zero value and nothing at all are 0.0."""
    return parse_rfc3339(text) if text else 0.0


def _decode(shape: type[T], body: bytes) -> T:
    return msgspec.json.decode(body, type=shape)


def _decode_list(item: type[T], body: bytes) -> tuple[T, ...]:
    """Go's empty slice is null."""
    shape: Any = tuple[item, ...] | None  # type: ignore[valid-type]
    found: tuple[T, ...] | None = msgspec.json.decode(body, type=shape)
    return found or ()
