"""The facts about this host that pods depend on. Blocks: for a command, or a thread."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pwd
import resource
import shutil
import socket
import stat
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ipc.host.clock import monotonic
from ipc.host.file_systems import file_system_at
from ipc.host.network_addresses import addresses_of
from ipc.host.regular_files import read_regular_file
from ipc.host.text.json_types import JsonObject
from ipc.host.text.userinfo import without_userinfo
from ipc.k8s.podresources.devices import Devices
from ipc.k8s.podresources.node_resources import NodeResources
from supervisor.admission import cgroups
from supervisor.admission.node_devices import read_devices
from supervisor.admission.node_resources import existing_part, node_resources, read_machine
from supervisor.config.containers_conf import BrokenContainersConf, cgroup_manager, read_conf
from supervisor.config.settings import Settings
from supervisor.doctor import podman_database
from supervisor.doctor.before_podman_6 import UpgradeFacts, upgrade_facts
from supervisor.doctor.fresh_storage import asking_environment
from supervisor.doctor.pod_network import PodNetworkFacts, read_pod_network
from supervisor.processes.podman_service import is_own_service, port_forwarder_problem, transient_problem
from supervisor.sources.directory import list_manifests

PODMAN_DEADLINE_S: Final = 30.0
"""Deadline of one question to Podman, in seconds: it starts helpers to answer."""
MAX_FAILED_LISTS: Final = 4
CONNECT_DEADLINE_S: Final = 1.0
DEFAULT_NUM_LOCKS: Final = 2048
"""containers.conf(5), num_locks."""
SYSCTLS: Final = ("kernel/keys/maxkeys", "fs/inotify/max_user_instances", "user/max_user_namespaces")
TRACING_MODULES: Final = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
"""Modules of the extra ``rootlet[otel]``."""
PROGRAMS: Final = ("crun", "runc", "nsenter", "slirp4netns", "pasta", "newuidmap", "newgidmap")


class PodmanFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of Podman about itself; ``error`` when it says nothing."""

    error: str = ""
    version: str = ""
    rootless: bool = True
    mapped_ids: int = 0
    """User ids of a container that exist on the host."""
    storage_driver: str = ""
    native_overlay: bool = True
    locks: int = 0
    """In use: containers, pods and volumes."""
    images: frozenset[str] = frozenset()
    """Every name that is there."""
    free_pages: int = 0
    """Number of free pages of its database, if it is one that has such."""
    network_program: str = ""
    """The program that it makes networks by when nothing else is said; empty before version 5, which does not tell."""
    upgrade: UpgradeFacts = UpgradeFacts()
    flush_s: float | None = None
    """Seconds of a flush of its storage's disk; None: not known."""


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers as the host has them; one that cannot be read is None."""

    podman: PodmanFacts | None = None
    """None: not asked."""
    user: str = ""
    num_locks: int = DEFAULT_NUM_LOCKS
    sysctls: Mapping[str, int | None] = {}
    controllers: frozenset[str] = frozenset()
    """cgroup v2 controllers that this user may give to containers."""
    unified_cgroups: bool = True
    max_tasks: int | None = None
    """The smallest pids.max on the way up from this process."""
    max_processes: int | None = None
    systemd: bool = False
    lingers: bool = True
    memory_dir_type: str = "tmpfs"
    """File system of ``memoryDir``."""
    devices: Devices = {}
    missing_runtimes: tuple[str, ...] = ()
    """OCI runtimes of the configuration that this user cannot run."""
    free_bytes: Mapping[str, int] = {}
    """By setting: what is left where it points."""
    disk_bytes: Mapping[str, int] = {}
    """By setting: size of the file system where it points."""
    programs: frozenset[str] = frozenset()
    missing_modules: tuple[str, ...] = ()
    """Python modules that a setting needs and that are not installed."""
    listening: frozenset[tuple[str, int]] = frozenset()
    """(protocol, port) that somebody holds on this host."""
    node: NodeResources = NodeResources()
    """Resources that pods may have together."""
    skipped_manifests: tuple[str, ...] = ()
    """Files of the manifest directory that are not read, by their names."""
    own_service: bool = True
    """Podman's service would be a child of ours."""
    kubeconfig_problems: Mapping[str, str] = {}
    """Setting -> why the file that it names cannot be read."""
    open_kubeconfigs: tuple[str, ...] = ()
    """Settings whose files others than this user can read."""
    host_ips: tuple[str, ...] = ()
    """Addresses of this host."""
    pod_network: PodNetworkFacts | None = None
    """None: not asked."""
    store_problem: str = ""
    """Why ``podman.store`` cannot be as it is set."""
    forwarder_problem: str = ""
    """Why ``podman.portForwarder`` cannot be as it is set."""
    agent_runs: bool = False
    """Somebody answers on the admin socket."""


def gather(settings: Settings, environ: Mapping[str, str]) -> HostFacts:
    """Facts that are known without asking anybody; a fact that cannot be read is left at its default."""
    user = _user_name(os.getuid())
    controllers = cgroups.delegated_controllers()
    kubeconfigs = _kubeconfigs(settings)
    traces = settings.tracing.sampling_rate_per_million > 0
    disk = shutil.disk_usage(existing_part(settings.state_dir))
    return HostFacts(
        user=user,
        num_locks=_num_locks(environ, settings.podman.path),
        sysctls={name: _number(Path("/proc/sys") / name) for name in SYSCTLS},
        skipped_manifests=tuple(sorted(list_manifests(settings.static_pod_path).skipped)),
        own_service=is_own_service(settings, settings.admin_socket.parent.parent),
        controllers=controllers or frozenset(),
        unified_cgroups=controllers is not None,
        max_tasks=_max_tasks(),
        max_processes=_limit(resource.RLIMIT_NPROC),
        systemd=Path("/run/systemd/system").is_dir(),
        lingers=(Path("/var/lib/systemd/linger") / user).exists(),
        memory_dir_type=file_system_at(existing_part(settings.memory_dir)),
        devices=read_devices(settings),
        missing_runtimes=tuple(path for path in settings.runtimes.values() if not os.access(path, os.X_OK)),
        kubeconfig_problems={name: problem for name, path in kubeconfigs.items() if (problem := _unreadable(path))},
        open_kubeconfigs=tuple(name for name, path in kubeconfigs.items() if _is_open(path)),
        host_ips=addresses_of(os.getpid()) if kubeconfigs else (),
        free_bytes={"stateDir": disk.free},
        disk_bytes={"stateDir": disk.total},
        programs=frozenset(program for program in PROGRAMS if shutil.which(program, path=_search_path(environ))),
        missing_modules=tuple(name for name in TRACING_MODULES if not _is_installed(name)) if traces else (),
    )


def with_answers(facts: HostFacts, settings: Settings) -> HostFacts:
    """And what Podman says of itself, and what pods would find here: room, ports that are held, an agent that runs."""
    runtime_dir = settings.admin_socket.parent.parent
    problem = transient_problem(settings, runtime_dir)
    if problem:
        settings = msgspec.structs.replace(settings, podman=msgspec.structs.replace(settings.podman, store="default"))
    return msgspec.structs.replace(
        facts,
        podman=_ask_podman(settings.podman.command),
        store_problem=problem,
        forwarder_problem=_forwarder_problem(settings, runtime_dir),
        pod_network=_pod_network(settings),
        listening=_listening(),
        node=node_resources(read_machine(settings, cgroup_manager(os.environ)), settings),
        agent_runs=_answers(settings.admin_socket),
    )


# --- the cluster --------------------------------------------------------------------------------------------------


def _kubeconfigs(settings: Settings) -> Mapping[str, str]:
    """Files that have to be there: with a bootstrap token the other one is written later."""
    cluster = settings.cluster
    if cluster.bootstrap_kubeconfig and not (cluster.kubeconfig and Path(cluster.kubeconfig).exists()):
        return {"bootstrapKubeconfig": cluster.bootstrap_kubeconfig}
    return {"kubeconfig": cluster.kubeconfig} if cluster.kubeconfig else {}


def _unreadable(path: str) -> str:
    try:
        read_regular_file(path, 1)
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""


def _is_open(path: str) -> bool:
    try:
        return bool(stat.S_IMODE(os.stat(path).st_mode) & 0o077)
    except OSError:
        return False


# --- the kernel --------------------------------------------------------------------------------------------------


def _user_name(uid: int) -> str:
    """A container may run as a user whom nobody has named."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _is_installed(module: str) -> bool:
    """Without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False  # nor is its package


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _limit(which: int) -> int | None:
    """The hard one, which we and our children can reach."""
    hard = resource.getrlimit(which)[1]
    return None if hard == resource.RLIM_INFINITY else hard


def _max_tasks() -> int | None:
    own, found = cgroups.own_cgroup(), []
    while own is not None and own.is_relative_to(cgroups.ROOT):
        limit = _number(own / "pids.max")
        found += [limit] if limit is not None else []
        own = own.parent if own != cgroups.ROOT else None
    return min(found, default=None)


def _listening() -> frozenset[tuple[str, int]]:
    """Listening ports of all processes. psutil looks through the descriptors of all processes for that."""
    import psutil  # here, for `rootlet doctor` alone: the agent looks at its host too, and keeps what it imports

    found: set[tuple[str, int]] = set()
    with contextlib.suppress(OSError, psutil.Error):
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr:
                found.add(("TCP", connection.laddr.port))
        for connection in psutil.net_connections("udp"):
            if connection.laddr:
                found.add(("UDP", connection.laddr.port))
    return frozenset(found)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(CONNECT_DEADLINE_S)
        return client.connect_ex(str(path)) == 0


def _search_path(environ: Mapping[str, str]) -> str:
    """Administrators' programs are not on every user's PATH."""
    return f"{environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


# --- Podman ------------------------------------------------------------------------------------------------------


def _forwarder_problem(settings: Settings, runtime_dir: Path) -> str:
    """Without a word of a file that cannot be read, of which Podman complains."""
    try:
        return port_forwarder_problem(settings, runtime_dir, os.environ)
    except (BrokenContainersConf, OSError):
        return ""


def _num_locks(environ: Mapping[str, str], program: str) -> int:
    try:
        engine = read_conf(environ, program)["engine"]
    except (BrokenContainersConf, OSError):
        return DEFAULT_NUM_LOCKS
    number = engine.get("num_locks", DEFAULT_NUM_LOCKS)
    return number if isinstance(number, int) else DEFAULT_NUM_LOCKS


def _ask_podman(podman: tuple[str, ...]) -> PodmanFacts:
    try:
        with asking_environment() as environ:
            info = _json(environ, *podman, "info", "--format", "json")
            images = _images(environ, podman)
            others = sum(len(_run(environ, (*podman, kind, "ls", "-q")).splitlines()) for kind in ("pod", "volume"))
        graph_root = Path(info["store"]["graphRoot"])
        facts = _facts(info, images, others, podman_database.free_pages(graph_root / podman_database.FILE) or 0)
        upgrade = upgrade_facts(graph_root, os.environ)
        return msgspec.structs.replace(facts, upgrade=upgrade, flush_s=flush_s(graph_root))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return PodmanFacts(error=_words(error))
    except (LookupError, TypeError):
        return PodmanFacts(error=f"{podman[0]} does not describe itself as Podman does")


def _pod_network(settings: Settings) -> PodNetworkFacts | None:
    """None also when Podman does not list its networks: what it has is told by `_ask_podman`."""
    podman = settings.podman.command
    try:
        with asking_environment() as environ:
            return read_pod_network(settings, lambda: _json(environ, *podman, "network", "ls", "--format", "json"))
    except (OSError, ValueError, LookupError, AttributeError, TypeError, subprocess.SubprocessError):
        return None


def _facts(info: JsonObject, images: list[JsonObject], others: int, free_pages: int) -> PodmanFacts:
    host, store = info["host"], info["store"]
    return PodmanFacts(
        version=info["version"]["Version"],
        rootless=host["security"]["rootless"],
        mapped_ids=sum(mapping["size"] for mapping in host["idMappings"]["uidmap"] or ()),
        storage_driver=store["graphDriverName"],
        native_overlay=store.get("graphStatus", {}).get("Native Overlay Diff", "true") == "true",
        locks=store["containerStore"]["number"] + others,
        images=frozenset(name for image in images for name in image.get("Names") or ()),
        free_pages=free_pages,
        network_program=host.get("rootlessNetworkCmd", ""),
    )


def _images(environ: Mapping[str, str], podman: tuple[str, ...]) -> Any:
    """Podman's images. The list fails while somebody removes one of them: Podman is asked a few times."""
    for _ in range(MAX_FAILED_LISTS):
        try:
            return _json(environ, *podman, "images", "--format", "json")
        except ValueError:
            continue
    return _json(environ, *podman, "images", "--format", "json")


def _json(environ: Mapping[str, str], *argv: str) -> Any:
    return json.loads(_run(environ, argv))


def _run(environ: Mapping[str, str], argv: Sequence[str]) -> str:
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=PODMAN_DEADLINE_S, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no words"]
        raise ValueError(f"{' '.join(argv[:2])}: exit code {done.returncode}: {without_userinfo(last[0])}")
    return done.stdout


def _words(error: Exception) -> str:
    if isinstance(error, subprocess.TimeoutExpired):
        return f"{error.cmd[0]} has not answered within {error.timeout:g} s"
    if isinstance(error, OSError):
        return f"cannot run Podman: {error.strerror or error}"
    return str(error)


FLUSHES: Final = 9
BYTES: Final = b"\0" * 4096


def flush_s(directory: Path) -> float | None:
    """Median seconds of a flush there: a start of a pod waits for many of them. None where no file can be made."""
    try:
        with tempfile.TemporaryFile(dir=directory, prefix=".rootlet-doctor-") as file:
            return statistics.median(_flushes(file.fileno()))
    except OSError:
        return None


def _flushes(descriptor: int) -> Iterator[float]:
    """Seconds of each. Raises OSError."""
    for _ in range(FLUSHES):
        os.write(descriptor, BYTES)
        began = monotonic()
        os.fdatasync(descriptor)
        yield monotonic() - began
