"""Decodes answers of the libpod API: JSON bodies to `workers.kubecontainer.runtime` structs. Pure.

Answers about images are decoded in `workers.libpod.decode_images`, failures in `workers.libpod.failures`.

Only the fields that are used are named here; msgspec skips the rest while parsing, so that 200 containers become
checked structs in 0.3 ms, which is what a parser needs for the bare dictionaries. The shapes are those of API version
4.0.0, which servers from 4.3 to 5.8 answer when the path asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from ipc.host.clock import parse_rfc3339
from ipc.host.id_ranges import IdRange, IdRanges, merged
from workers.kubecontainer.runtime import (
    ErrorKind,
    ExecResult,
    InspectedContainer,
    InspectedPod,
    ListedContainer,
    ListedPod,
    NetworkPrograms,
    RuntimeCallError,
    RuntimeEvent,
    VolumeInfo,
)
from workers.kubecontainer.signal_names import signal_name
from workers.libpod.failures import MAX_MESSAGE_CHARS, kind_by_cause
from workers.libpod.go_json import GoObject, decode_list, decode_value

_STARTED_TWICE: Final = "container is running"
"""Error that Podman 5.4 notes for good for a container that is started again while it runs."""

_FRAME_HEADER_BYTES: Final = 8
_EXEC_ERROR: Final = b"Error: "
"""How the service begins what it has to say in the output of an exec session."""
_NOT_STARTED: Final = frozenset({126, 127})


class _PodMember(GoObject, frozen=True):
    id: str
    status: str = ""


class _ListPod(GoObject, frozen=True):
    id: str
    name: str = ""
    infra_id: str = ""
    labels: dict[str, str] | None = None
    created: str = ""
    containers: tuple[_PodMember, ...] | None = None


class _ListContainer(GoObject, frozen=True):
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


class _ListedIdentity(GoObject, frozen=True):
    """Fields of a `_ListContainer` that have to be right in any case: they say whose it is."""

    id: str
    pod: str = ""
    pod_name: str = ""
    is_infra: bool = False
    labels: dict[str, str] | None = None


class _State(GoObject, frozen=True):
    status: str
    pid: int = 0
    conmon_pid: int = 0
    exit_code: int = 0
    oom_killed: bool = msgspec.field(default=False, name="OOMKilled")
    error: str = ""
    started_at: str = ""
    finished_at: str = ""


class _Config(GoObject, frozen=True):
    labels: dict[str, str] | None = None
    stop_signal: int | str = 0
    """A number up to API version 4, a name from 5 on."""


class _LogConfig(GoObject, frozen=True):
    path: str = ""


class _HostConfig(GoObject, frozen=True):
    log_config: _LogConfig | None = None


class _Network(GoObject, frozen=True):
    ip_address: str = msgspec.field(default="", name="IPAddress")
    ipv6_address: str = msgspec.field(default="", name="GlobalIPv6Address")


class _NetworkSettings(_Network, frozen=True):
    networks: dict[str, _Network] | None = None


class _GraphDriver(GoObject, frozen=True):
    data: dict[str, str] | None = None


class _InspectContainer(GoObject, frozen=True):
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


class _InspectPodMember(GoObject, frozen=True):
    id: str
    state: str = ""


class _InspectPod(GoObject, frozen=True):
    id: str
    name: str = ""
    created: str = ""
    labels: dict[str, str] | None = None
    infra_id: str = msgspec.field(default="", name="InfraContainerID")
    containers: tuple[_InspectPodMember, ...] | None = None


class _Volume(GoObject, frozen=True):
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


class _Program(msgspec.Struct, frozen=True):
    executable: str = ""


class _Host(msgspec.Struct, frozen=True):
    id_mappings: _IdMappings = msgspec.field(default=_IdMappings(), name="idMappings")
    rootless_network_cmd: str = msgspec.field(default="", name="rootlessNetworkCmd")
    slirp4netns: _Program = _Program()
    pasta: _Program = _Program()


class _Info(msgspec.Struct, frozen=True):
    host: _Host
    store: _StoreInfo = _StoreInfo()


class _Created(GoObject, frozen=True):
    id: str


class _Report(GoObject, frozen=True):
    """One target of a DELETE. ``Err`` is a Go error: null, or whatever its type shows as JSON, often just ``{}``."""

    id: str = ""
    err: msgspec.Raw = msgspec.Raw(b"null")
    removed: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict, name="RemovedCtrs")
    """Errors of a pod's members by id, from 4.5 on."""


class _ExecSession(GoObject, frozen=True):
    running: bool = False
    exit_code: int = 0
    pid: int = 0


class _Actor(GoObject, frozen=True):
    id: str = msgspec.field(default="", name="ID")
    attributes: dict[str, str] | None = None


class _Event(msgspec.Struct, frozen=True):
    action: str = msgspec.field(name="Action")
    actor: _Actor = msgspec.field(name="Actor")
    time_ns: int = msgspec.field(default=0, name="timeNano")


def decode_pods(body: bytes) -> tuple[ListedPod, ...]:
    """GET pods/json. Like every decode function here it raises msgspec.DecodeError or ValueError."""
    return tuple(_listed_pod(pod) for pod in decode_list(_ListPod, body))


def decode_containers(body: bytes) -> tuple[ListedContainer, ...]:
    """GET containers/json. A container with invalid fields has an empty ``state`` and must be inspected."""
    try:
        return tuple(_listed_container(c) for c in decode_list(_ListContainer, body))
    except (msgspec.ValidationError, ValueError, OverflowError):
        return tuple(_one_listed(entry) for entry in decode_list(msgspec.Raw, body))


def decode_container(body: bytes) -> InspectedContainer:
    """GET containers/{id}/json."""
    sock = decode_value(_InspectContainer, body)
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
    sock = decode_value(_InspectPod, body)
    return InspectedPod(
        id=sock.id,
        name=sock.name,
        infra_id=sock.infra_id,
        labels=sock.labels or {},
        created_at=_epoch_s(sock.created),
        containers=tuple((member.id, member.state) for member in sock.containers or ()),
    )


def decode_store(body: bytes) -> tuple[str, str]:
    """GET info: root and driver of the storage."""
    store = decode_value(_Info, body).store
    return store.graph_root, store.graph_driver_name


def decode_volume(body: bytes) -> VolumeInfo:
    """GET volumes/{name}/json and POST volumes/create."""
    sock = decode_value(_Volume, body)
    return VolumeInfo(
        name=sock.name,
        mount_point=sock.mountpoint,
        driver=sock.driver or "local",
        options=sock.options or {},
        labels=sock.labels or {},
    )


def decode_id_ranges(body: bytes) -> IdRanges:
    """GET info. A Podman that has no map of its own has all ids."""
    maps = decode_value(_Info, body).host.id_mappings
    return IdRanges(users=_id_ranges(maps.uidmap), groups=_id_ranges(maps.gidmap))


def decode_network_programs(body: bytes) -> NetworkPrograms:
    """GET info. Before version 5 Podman says nothing of pasta and of its default."""
    host = decode_value(_Info, body).host
    programs = {"slirp4netns": host.slirp4netns, "pasta": host.pasta}
    found = frozenset(name for name, program in programs.items() if program.executable)
    return NetworkPrograms(default=host.rootless_network_cmd, found=found)


def _id_ranges(maps: tuple[_IdMap, ...] | None) -> tuple[IdRange, ...]:
    return merged(IdRange(one.container_id, one.size) for one in maps) if maps else (IdRange(0, 2**32 - 1),)


def decode_created_id(body: bytes) -> str:
    """POST pods/create and containers/create."""
    return decode_value(_Created, body).id


def decode_removal_errors(body: bytes) -> tuple[str, ...]:
    """DELETE containers/{id} (a list of reports) and pods/{id} (one): what went wrong, although the status is 200."""
    reports = (decode_value(_Report, body),) if body.startswith(b"{") else decode_list(_Report, body or b"null")
    errors = [found for report in reports for found in ((report.id, report.err), *report.removed.items())]
    return tuple(f"{id[:12]}: {bytes(error).decode()}" for id, error in errors if bytes(error) != b"null")


class _FreezeReport(msgspec.Struct, frozen=True):
    errors: tuple[str, ...] | None = msgspec.field(default=None, name="Errs")


def decode_freeze_errors(body: bytes) -> tuple[str, ...]:
    """POST pods/{id}/pause and unpause: what went wrong, as far as it is told apart."""
    return tuple(dict.fromkeys(decode_value(_FreezeReport, body).errors or ()))


def decode_exec_pid(body: bytes) -> int:
    """GET exec/{id}/json: the pid of its process in the host's pid namespace; 0 when it does not run."""
    session = decode_value(_ExecSession, body)
    return session.pid if session.running else 0


def decode_exec_result(body: bytes, framed: bytes, max_output_bytes: int) -> ExecResult:
    """GET exec/{id}/json after its end, and what its start answered. Raises COMMAND when there was no start.

    Then the service writes the OCI runtime's message into the output, and an exit code that the command might have had
    itself: 126, 127.
    """
    session = decode_value(_ExecSession, body)
    if session.running:
        raise RuntimeCallError(ErrorKind.UNAVAILABLE, "exec", "the output broke off, and the command still runs")
    output = _unframe(framed)
    if session.exit_code in _NOT_STARTED and output.startswith(_EXEC_ERROR):
        words = output.removeprefix(_EXEC_ERROR).partition(b"\n")[0].decode(errors="replace")
        if kind_by_cause(words) is ErrorKind.COMMAND:
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


def decode_event(line: bytes) -> RuntimeEvent:
    """One line of GET events."""
    sock = decode_value(_Event, line)
    return RuntimeEvent(
        action=sock.action,
        container_id=sock.actor.id,
        labels=sock.actor.attributes or {},
        time=sock.time_ns / 1e9,
    )


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
        return _listed_container(decode_value(_ListContainer, entry))
    except (msgspec.ValidationError, ValueError, OverflowError):
        found = decode_value(_ListedIdentity, entry)
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
