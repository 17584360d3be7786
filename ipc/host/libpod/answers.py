"""Shapes of the libpod API's answers but those about images. Pure.

Only the fields that are used are named here; msgspec skips the rest while parsing, so that 200 containers become
checked structs in 0.3 ms, which is what a parser needs for the bare dictionaries. The shapes are those of API version
4.0.0, which servers from 4.3 to 5.8 answer when the path asks for it.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from ipc.host.libpod.go_json import GoObject


class PodMember(GoObject, frozen=True):
    """A container in a list of pods."""

    id: str
    status: str = ""


class ListPod(GoObject, frozen=True):
    """An entry of GET pods/json."""

    id: str
    name: str = ""
    infra_id: str = ""
    labels: dict[str, str] | None = None
    created: str = ""
    containers: tuple[PodMember, ...] | None = None


class ListContainer(GoObject, frozen=True):
    """An entry of GET containers/json."""

    id: str
    state: str
    names: tuple[str, ...] | None = None
    pod: str = ""
    pod_name: str = ""
    is_infra: bool = False
    pid: int = 0
    exited: bool = True
    exit_code: int = 0
    created: datetime | None = None
    started_at: int = 0
    exited_at: int = 0
    image: str = ""
    image_id: str = msgspec.field(default="", name="ImageID")
    labels: dict[str, str] | None = None


class ListedIdentity(GoObject, frozen=True):
    """Fields of a `ListContainer` that have to be right in any case: they say whose it is."""

    id: str
    pod: str = ""
    pod_name: str = ""
    is_infra: bool = False
    labels: dict[str, str] | None = None


class State(GoObject, frozen=True):
    """State of an inspected container."""

    status: str
    pid: int = 0
    conmon_pid: int = 0
    exit_code: int = 0
    oom_killed: bool = msgspec.field(default=False, name="OOMKilled")
    error: str = ""
    started_at: str = ""
    finished_at: str = ""


class ContainerConfig(GoObject, frozen=True):
    """Configuration of an inspected container."""

    labels: dict[str, str] | None = None
    stop_signal: int | str = 0
    """A number up to API version 4, a name from 5 on."""


class WorkingDirectory(GoObject, frozen=True):
    """Working directory in the configuration of an inspected container."""

    working_dir: str = ""


class InspectWorkingDirectory(GoObject, frozen=True):
    """GET containers/{id}/json, where its processes begin."""

    config: WorkingDirectory = WorkingDirectory()


class LogConfig(GoObject, frozen=True):
    """Log of an inspected container."""

    path: str = ""


class HostConfig(GoObject, frozen=True):
    """Host's part of an inspected container."""

    log_config: LogConfig | None = None


class Network(GoObject, frozen=True):
    """Addresses of a container on one network."""

    ip_address: str = msgspec.field(default="", name="IPAddress")
    ipv6_address: str = msgspec.field(default="", name="GlobalIPv6Address")


class NetworkSettings(Network, frozen=True):
    """Networks of an inspected container."""

    networks: dict[str, Network] | None = None


class GraphDriver(GoObject, frozen=True):
    """Layers of an inspected container."""

    data: dict[str, str] | None = None


class InspectContainer(GoObject, frozen=True):
    """GET containers/{id}/json."""

    id: str
    state: State
    name: str = ""
    pod: str = ""
    is_infra: bool = False
    created: str = ""
    image: str = ""
    image_name: str = ""
    image_digest: str = ""
    config: ContainerConfig | None = None
    host_config: HostConfig | None = None
    network_settings: NetworkSettings | None = None
    resolv_conf_path: str = ""
    hostname_path: str = ""
    oci_config_path: str = msgspec.field(default="", name="OCIConfigPath")
    graph_driver: GraphDriver | None = None


class InspectPodMember(GoObject, frozen=True):
    """A container of an inspected pod."""

    id: str
    state: str = ""


class InspectPod(GoObject, frozen=True):
    """GET pods/{id}/json."""

    id: str
    name: str = ""
    created: str = ""
    labels: dict[str, str] | None = None
    infra_id: str = msgspec.field(default="", name="InfraContainerID")
    containers: tuple[InspectPodMember, ...] | None = None


class Volume(GoObject, frozen=True):
    """GET volumes/{name}/json and POST volumes/create."""

    name: str
    driver: str = ""
    mountpoint: str = ""
    options: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class IdMap(msgspec.Struct, frozen=True):
    """A range of ids of Podman's user namespace."""

    container_id: int
    size: int


class IdMappings(msgspec.Struct, frozen=True):
    """Ids of Podman's user namespace."""

    uidmap: tuple[IdMap, ...] | None = None
    gidmap: tuple[IdMap, ...] | None = None


class StoreInfo(msgspec.Struct, frozen=True, rename="camel"):
    """Storage in an answer of GET info."""

    graph_root: str = ""
    graph_driver_name: str = ""


class Program(msgspec.Struct, frozen=True):
    """A program that Podman has found."""

    executable: str = ""


class Host(msgspec.Struct, frozen=True):
    """Host in an answer of GET info."""

    id_mappings: IdMappings = msgspec.field(default=IdMappings(), name="idMappings")
    rootless_network_cmd: str = msgspec.field(default="", name="rootlessNetworkCmd")
    slirp4netns: Program = Program()
    pasta: Program = Program()


class Info(msgspec.Struct, frozen=True):
    """GET info."""

    host: Host
    store: StoreInfo = StoreInfo()


class Created(GoObject, frozen=True):
    """POST pods/create, containers/create and containers/{id}/exec."""

    id: str


class RemovalReport(GoObject, frozen=True):
    """One target of a DELETE. ``Err`` is a Go error: null, or whatever its type shows as JSON, often just ``{}``."""

    id: str = ""
    err: msgspec.Raw = msgspec.Raw(b"null")
    removed: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict, name="RemovedCtrs")
    """Errors of a pod's members by id, from 4.5 on."""


class ExecSession(GoObject, frozen=True):
    """GET exec/{id}/json."""

    running: bool = False
    exit_code: int = 0
    pid: int = 0
    """In this host's numbers."""
    can_remove: bool = False
    """Whether it has ended; a command that neither runs nor has ended was not begun, or begins at this moment."""


class Actor(GoObject, frozen=True):
    """Subject of an event."""

    id: str = msgspec.field(default="", name="ID")
    attributes: dict[str, str] | None = None


class Event(msgspec.Struct, frozen=True):
    """A line of GET events."""

    action: str = msgspec.field(name="Action")
    actor: Actor = msgspec.field(name="Actor")
    time_ns: int = msgspec.field(default=0, name="timeNano")


class FreezeReport(msgspec.Struct, frozen=True):
    """POST pods/{id}/pause and unpause."""

    errors: tuple[str, ...] | None = msgspec.field(default=None, name="Errs")
