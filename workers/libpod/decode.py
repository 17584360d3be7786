"""Decodes answers of the libpod API: JSON bodies to `workers.kubecontainer.runtime` structs. Pure.

Answers about images are decoded in `workers.libpod.decode_images`, failures in `workers.libpod.failures`.

The shapes of the bodies stand in `ipc.host.libpod.answers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ipc.host.clock import parse_rfc3339
from ipc.host.libpod import answers, endpoints
from ipc.host.libpod.go_json import decode_list, decode_value
from ipc.host.text.userinfo import without_userinfo
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
from workers.libpod.failures import MAX_MESSAGE_CHARS, kind_by_cause
from workers.proc.signal_names import signal_name
from workers.userns.id_ranges import IdRange, IdRanges, merged

_STARTED_TWICE: Final = "container is running"
"""Error that Podman 5.4 notes for good for a container that is started again while it runs."""

_FRAME_HEADER_BYTES: Final = 8
_EXEC_ERROR: Final = b"Error: "
"""How the service begins what it has to say in the output of an exec session."""
_NOT_STARTED: Final = frozenset({126, 127})


def decode_pods(body: bytes) -> tuple[ListedPod, ...]:
    """GET pods/json. Like every decode function here it raises msgspec.DecodeError or ValueError."""
    return tuple(_listed_pod(pod) for pod in decode_list(endpoints.LIST_PODS.answer, body))


def decode_containers(body: bytes) -> tuple[ListedContainer, ...]:
    """GET containers/json. A container with invalid fields has an empty ``state`` and must be inspected."""
    try:
        return tuple(_listed_container(c) for c in decode_list(endpoints.LIST_CONTAINERS.answer, body))
    except (msgspec.ValidationError, ValueError, OverflowError):
        return tuple(_one_listed(entry) for entry in decode_list(msgspec.Raw, body))


def decode_container(body: bytes) -> InspectedContainer:
    """GET containers/{id}/json."""
    answer = decode_value(endpoints.INSPECT_CONTAINER.answer, body)
    state = answer.state
    log_config = answer.host_config.log_config if answer.host_config else None
    return InspectedContainer(
        id=answer.id,
        name=answer.name,
        pod_id=answer.pod,
        is_infra=answer.is_infra,
        state=state.status,
        pid=state.pid,
        conmon_pid=state.conmon_pid,
        exit_code=state.exit_code,
        oom_killed=state.oom_killed,
        error="" if state.error.endswith(_STARTED_TWICE) else without_userinfo(state.error),
        created_at=_epoch_s(answer.created),
        started_at=_epoch_s(state.started_at),
        finished_at=_epoch_s(state.finished_at),
        image=answer.image_name,
        image_id=answer.image,
        image_digest=answer.image_digest,
        labels=(answer.config.labels if answer.config else None) or {},
        ips=_ips(answer.network_settings),
        log_path=log_config.path if log_config else "",
        resolv_conf=answer.resolv_conf_path,
        hostname_file=answer.hostname_path,
        stop_signal=signal_name(answer.config.stop_signal) if answer.config else "",
        config_path=answer.oci_config_path,
        layer=((answer.graph_driver.data if answer.graph_driver else None) or {}).get("UpperDir", ""),
    )


def decode_pod(body: bytes) -> InspectedPod:
    """GET pods/{id}/json."""
    answer = decode_value(endpoints.INSPECT_POD.answer, body)
    return InspectedPod(
        id=answer.id,
        name=answer.name,
        infra_id=answer.infra_id,
        labels=answer.labels or {},
        created_at=_epoch_s(answer.created),
        containers=tuple((member.id, member.state) for member in answer.containers or ()),
    )


def decode_store(body: bytes) -> tuple[str, str]:
    """GET info: root and driver of the storage."""
    store = decode_value(endpoints.INFO.answer, body).store
    return store.graph_root, store.graph_driver_name


def decode_volume(body: bytes) -> VolumeInfo:
    """GET volumes/{name}/json and POST volumes/create."""
    answer = decode_value(endpoints.INSPECT_VOLUME.answer, body)
    return VolumeInfo(
        name=answer.name,
        mount_point=answer.mountpoint,
        driver=answer.driver or "local",
        options=answer.options or {},
        labels=answer.labels or {},
    )


def decode_id_ranges(body: bytes) -> IdRanges:
    """GET info. A Podman that has no map of its own has all ids."""
    maps = decode_value(endpoints.INFO.answer, body).host.id_mappings
    return IdRanges(users=_id_ranges(maps.uidmap), groups=_id_ranges(maps.gidmap))


def decode_network_programs(body: bytes) -> NetworkPrograms:
    """GET info. Before version 5 Podman says nothing of pasta and of its default."""
    host = decode_value(endpoints.INFO.answer, body).host
    programs = {"slirp4netns": host.slirp4netns, "pasta": host.pasta}
    found = frozenset(name for name, program in programs.items() if program.executable)
    return NetworkPrograms(default=host.rootless_network_cmd, found=found)


def _id_ranges(maps: tuple[answers.IdMap, ...] | None) -> tuple[IdRange, ...]:
    return merged(IdRange(one.container_id, one.size) for one in maps) if maps else (IdRange(0, 2**32 - 1),)


def decode_created_id(body: bytes) -> str:
    """POST pods/create and containers/create."""
    return decode_value(endpoints.CREATE_CONTAINER.answer, body).id


def decode_removal_errors(body: bytes) -> tuple[str, ...]:
    """DELETE containers/{id} (a list of reports) and pods/{id} (one): what went wrong, although the status is 200."""
    shape = endpoints.REMOVE_CONTAINER.answer
    reports = (decode_value(shape, body),) if body.startswith(b"{") else decode_list(shape, body or b"null")
    errors = [found for report in reports for found in ((report.id, report.err), *report.removed.items())]
    return tuple(f"{id[:12]}: {bytes(error).decode()}" for id, error in errors if bytes(error) != b"null")


def decode_freeze_errors(body: bytes) -> tuple[str, ...]:
    """POST pods/{id}/pause and unpause: what went wrong, as far as it is told apart."""
    return tuple(dict.fromkeys(decode_value(endpoints.PAUSE_POD.answer, body).errors or ()))


def decode_exec_pid(body: bytes) -> int:
    """GET exec/{id}/json: the pid of its process in the host's pid namespace; 0 when it does not run."""
    session = decode_value(endpoints.INSPECT_EXEC.answer, body)
    return session.pid if session.running else 0


def decode_exec_result(body: bytes, framed: bytes, max_output_bytes: int) -> ExecResult:
    """GET exec/{id}/json after its end, and what its start answered. Raises COMMAND when there was no start.

    Then the service writes the OCI runtime's message into the output, and an exit code that the command might have had
    itself: 126, 127.
    """
    session = decode_value(endpoints.INSPECT_EXEC.answer, body)
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
    answer = decode_value(endpoints.EVENTS.answer, line)
    return RuntimeEvent(
        action=answer.action,
        container_id=answer.actor.id,
        labels=answer.actor.attributes or {},
        time=answer.time_ns / 1e9,
    )


def _listed_pod(answer: answers.ListPod) -> ListedPod:
    return ListedPod(
        id=answer.id,
        name=answer.name,
        infra_id=answer.infra_id,
        labels=answer.labels or {},
        created_at=_epoch_s(answer.created),
        containers=tuple((member.id, member.status) for member in answer.containers or ()),
    )


def _one_listed(entry: bytes) -> ListedContainer:
    try:
        return _listed_container(decode_value(answers.ListContainer, entry))
    except (msgspec.ValidationError, ValueError, OverflowError):
        found = decode_value(answers.ListedIdentity, entry)
    return _listed_container(
        answers.ListContainer(
            id=found.id,
            state="",
            pod=found.pod,
            pod_name=found.pod_name,
            is_infra=found.is_infra,
            labels=found.labels,
        )
    )


def _listed_container(answer: answers.ListContainer) -> ListedContainer:
    return ListedContainer(
        id=answer.id,
        name=next(iter(answer.names or ()), ""),
        pod_id=answer.pod,
        pod_name=answer.pod_name,
        is_infra=answer.is_infra,
        state=answer.state,
        pid=answer.pid,
        has_end=answer.exited,
        exit_code=answer.exit_code,
        created_at=max(0.0, answer.created.timestamp()) if answer.created else 0.0,
        started_at=max(0.0, float(answer.started_at)),
        exited_at=max(0.0, float(answer.exited_at)),
        image=answer.image,
        image_id=answer.image_id,
        labels=answer.labels or {},
    )


def _ips(settings: answers.NetworkSettings | None) -> tuple[str, ...]:
    """Addresses on bridge networks, IPv4 first; slirp4netns and pasta show none."""
    if settings is None:
        return ()
    networks: Mapping[str, answers.Network] = settings.networks or {"": settings}
    found = [n.ip_address for n in networks.values()] + [n.ipv6_address for n in networks.values()]
    return tuple(dict.fromkeys(address for address in found if address))


def _epoch_s(text: str) -> float:
    """Go's time as JSON to epoch seconds; its zero value and nothing at all are 0.0."""
    return parse_rfc3339(text) if text else 0.0
