"""The checks of a host: a table of pure functions, facts in, findings out.

Numbers per pod are those of the smallest one: a sandbox and one container. Where Podman was not asked, its checks say
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeGuard

from ipc.host.file_systems import MEMORY_FILE_SYSTEMS
from ipc.k8s.eviction.observations import amount_of
from ipc.k8s.eviction.signals import Signal
from ipc.k8s.network.network_programs import PASTA, SLIRP4NETNS, program_problem, version_numbers, wanted_program
from ipc.k8s.network.network_settings import BRIDGE
from ipc.k8s.nodestatus.node_ip import node_ip_on_host_problem, parse_node_ips
from ipc.k8s.podresources.pod_cgroups import root_name, systemd_basename
from supervisor.admission.node_devices import device_problems
from supervisor.config.settings import Settings
from supervisor.doctor.before_podman_6 import upgrade_findings
from supervisor.doctor.findings import Finding, failed, ok, warning
from supervisor.doctor.host import HostFacts, PodmanFacts
from supervisor.doctor.pod_network import check_pod_network
from supervisor.processes.podman_service import OLDEST_TRANSIENT
from supervisor.sources.directory import MANIFEST_SUFFIXES

OLDEST_PODMAN: Final = (4, 3)
FIRST_WITH_PASTA: Final = (5,)
"""From which on pods and bridges have their way out through pasta."""
CONTAINERS_PER_POD: Final = 2
"""With its infra container."""
LOCKS_PER_POD: Final = 3
"""Podman's: the pod, its infra container, its container."""
PROCESSES_PER_POD: Final = 6
"""Two containers' own, a conmon each, slirp4netns or pasta, and one that comes and goes."""
USEFUL_IDS: Final = 65_536
"""Count of user IDs that images are made for: nobody is 65534."""
LEAST_FREE_BYTES: Final = 1 << 30
MANY_FREE_PAGES: Final = 2000
"""Number of free pages of Podman's database with which a start takes a sixth more CPU time."""
LONG_FLUSH_S: Final = 0.001
"""Seconds of a flush of the disk from which on the transient store is advised."""
CONTROLLERS: Final = {
    "cpu": "CPU requests and limits have no effect",
    "memory": "memory limits have no effect, and nobody is killed for exceeding them",
    "pids": "the number of processes is not limited",
}

_NO_PAUSE_PROCESS: Final = "invalid internal status"
"""Podman's words when its pause process and all monitors were killed (`supervisor.processes.pause_process`)."""
OVERLAY: Final = (
    'the lines [storage] and driver = "overlay" in ~/.config/containers/storage.conf, before there is an image; '
    "where there are some, `podman system reset` first, which removes them"
)
_OTHER_LOCKS: Final = "numerical result out of range"
"""Podman's words when num_locks is another number than that of the locks in memory."""
RENUMBER: Final = (
    "while nothing runs, num_locks in containers.conf, then "
    "`rm /dev/shm/libpod_rootless_lock_$(id -u); podman system renumber`"
)
"""The old locks go first: with them there, Podman 5.8 refuses to renumber, as every other command."""

Check = Callable[[HostFacts, Settings], Iterator[Finding]]


def check_host(facts: HostFacts, settings: Settings) -> list[Finding]:
    """All checks, in the order of the table."""
    return [finding for check in CHECKS for finding in check(facts, settings)]


def _podman(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    podman = facts.podman
    if podman is None:
        return
    if podman.error:
        remedy = f"`{settings.podman.path} info` must work for {facts.user}"
        if _NO_PAUSE_PROCESS in podman.error and facts.own_service:
            remedy = "start the agent, whose own service mends that; `podman system migrate` stops all containers"
        elif _OTHER_LOCKS in podman.error:
            remedy = RENUMBER
        yield failed("podman", podman.error, remedy)
    elif version_numbers(podman.version) < OLDEST_PODMAN:
        yield failed("podman", f"version {podman.version} is older than 4.3")
    elif not podman.rootless:
        yield failed("podman", "it runs as root", "start the agent as an ordinary user")
    else:
        yield ok("podman", f"version {podman.version}, rootless")


def _user_ids(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    subject = "subuid"
    missing = {"newuidmap", "newgidmap"} - facts.programs
    if missing:
        yield failed(subject, f"there is no {' and no '.join(sorted(missing))}", "install uidmap")
    if facts.sysctls.get("user/max_user_namespaces") == 0:
        yield failed(subject, "user namespaces are switched off", "sysctl user.max_user_namespaces")
    if not _is_known(facts.podman):
        return
    remedy = f"usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {facts.user}; podman system migrate"
    if facts.podman.mapped_ids <= 1:
        yield failed(subject, "containers have root and nobody else", remedy)
    elif facts.podman.mapped_ids < USEFUL_IDS:
        yield warning(subject, f"containers have {facts.podman.mapped_ids} user ids, images expect 65536", remedy)
    else:
        yield ok(subject, f"containers have {facts.podman.mapped_ids} user ids")


def _storage(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    if not _is_known(facts.podman):
        return
    driver = facts.podman.storage_driver
    if driver == "vfs":
        yield warning("storage", "vfs copies the whole image for each container", OVERLAY)
    elif not facts.podman.native_overlay:
        yield warning("storage", f"{driver} goes through FUSE, which is slow", "Linux 5.13 has overlay without it")
    else:
        yield ok("storage", driver)


def _store(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    if facts.store_problem:
        yield failed("podman.store", facts.store_problem)
        return
    podman = facts.podman
    if not _is_known(podman) or podman.flush_s is None or settings.podman.is_transient or not facts.own_service:
        return
    if podman.flush_s > LONG_FLUSH_S and version_numbers(podman.version) >= OLDEST_TRANSIENT:
        what = (
            f"a flush of the storage's disk takes {podman.flush_s * 1000:.1f} ms, and a pod's life waits for about 125"
        )
        yield warning("podman.store", what, "set it to transient (docs/howto/transient-store.md)")


def _port_forwarder(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    if facts.forwarder_problem:
        yield failed("podman.portForwarder", facts.forwarder_problem)


def _disk(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    for setting, free in facts.free_bytes.items():
        if free < LEAST_FREE_BYTES:
            yield warning("disk", f"{free >> 20} MiB are left where {setting} lies")


def _eviction(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    """A disk that is nearly full before the first pod: then pods are to blame for nothing, and go all the same."""
    for threshold in settings.thresholds:
        for setting, size in facts.disk_bytes.items() if threshold.signal is Signal.NODEFS_AVAILABLE else ():
            wanted = math.ceil(threshold.value.of(amount_of(threshold.signal, size)).value)
            if (free := facts.free_bytes[setting]) < wanted:
                where = "evictionHard" if threshold.is_hard else "evictionSoft"
                what = f"{free >> 20} MiB are left where {setting} lies, less than {where}'s {wanted >> 20} MiB"
                yield warning("eviction", f"{what}: pods are refused and evicted", f"free space, or set {where}")


def _cgroups(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    if not facts.unified_cgroups:
        yield failed("cgroups", "cgroup v1: no limit of any kind works without root", "boot with cgroup v2")
        return
    missing = [name for name in CONTROLLERS if name not in facts.controllers]
    remedy = "Delegate=cpu memory pids in user@.service" if facts.systemd else "delegate them to this user's cgroup"
    for name in missing:
        yield warning("cgroups", f"controller {name} is not delegated: {CONTROLLERS[name]}", remedy)
    if not missing:
        yield ok("cgroups", f"v2 with {', '.join(sorted(facts.controllers))}")


def _slices(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    """Known once the host was asked."""
    subject = "cgroupsPerQOS"
    if facts.podman is None or not settings.cgroups_per_qos:
        return
    if (pod_cgroups := facts.node.pod_cgroups) is not None:
        yield ok(subject, f"pods lie in {systemd_basename(root_name(pod_cgroups))}, by their QoS classes")
    else:
        yield ok(subject, "off: systemd does not manage this user's cgroups, pods lie where Podman puts them")


def _locks(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    wanted = settings.max_pods * LOCKS_PER_POD
    used = facts.podman.locks if _is_known(facts.podman) else 0
    if facts.num_locks - used < LOCKS_PER_POD:
        yield failed(
            "locks", f"{used} of Podman's {facts.num_locks} locks are in use: there is none for a pod", RENUMBER
        )
    elif facts.num_locks < wanted:
        yield warning(
            "locks", f"maxPods {settings.max_pods} need {wanted} locks, Podman has {facts.num_locks}", RENUMBER
        )
    else:
        yield ok("locks", f"{facts.num_locks}, {used} in use")


def _database(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    if _is_known(facts.podman) and facts.podman.free_pages >= MANY_FREE_PAGES:
        what = f"{facts.podman.free_pages} pages of Podman's are free: it reads their list many times for each start"
        yield warning("database", what, "docs/performance.md says how bolt_state.db is made small again")


def _upgrade(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    if _is_known(facts.podman):
        yield from upgrade_findings(version_numbers(facts.podman.version), facts.podman.upgrade)


def _keyrings(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    """Our own service makes none, unless it is told to."""
    maximum = facts.sysctls.get("kernel/keys/maxkeys")
    wanted = settings.max_pods * CONTAINERS_PER_POD
    if maximum is None or maximum >= wanted or (facts.own_service and not settings.podman.keyring):
        return
    other = "set podman.keyring: false" if facts.own_service else "set podman.service: own, or keyring = false"
    remedy = f"{other}{'' if facts.own_service else ' in containers.conf'}, or raise sysctl kernel.keys.maxkeys"
    yield warning("keyrings", f"after about {maximum} containers with a keyring each none starts", remedy)


def _inotify(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    maximum = facts.sysctls.get("fs/inotify/max_user_instances")
    wanted = settings.max_pods * CONTAINERS_PER_POD
    if maximum is not None and maximum < wanted and "memory" in facts.controllers:
        what = f"conmon needs one of {maximum} inotify instances for each container to notice that it ran out of memory"
        yield warning("inotify", what, "sysctl fs.inotify.max_user_instances")


def _processes(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    wanted = settings.max_pods * PROCESSES_PER_POD
    for what, limit, remedy in (
        ("processes of this user (RLIMIT_NPROC)", facts.max_processes, "limits.conf(5)"),
        ("tasks of this session (pids.max)", facts.max_tasks, "TasksMax= of the user's slice"),
    ):
        if limit is not None and limit < wanted:
            yield warning("processes", f"maxPods {settings.max_pods} need some {wanted}, {limit} {what}", remedy)


def _programs(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    if not {"crun", "runc"} & facts.programs:
        yield failed("programs", "there is neither crun nor runc")
    yield from _network_program(facts, settings)
    if "nsenter" not in facts.programs:
        yield warning("programs", "without nsenter each exec probe costs two more processes for seconds", "util-linux")


def _network_program(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    """The one that Podman takes; either may do while its version is not known."""
    if facts.podman is None or not facts.podman.version:
        if not {SLIRP4NETNS, PASTA} & facts.programs:
            yield failed("programs", f"there is neither {SLIRP4NETNS} nor {PASTA}: pods have no network")
        return
    wanted = wanted_program(settings.pod_network.mode, facts.podman.version, facts.podman.network_program)
    if problem := program_problem(wanted, facts.podman.version):
        yield failed("podNetwork.mode", problem)
    elif wanted not in facts.programs:
        yield failed("programs", f"there is no {wanted}: pods have no network", f"install {wanted}")


def _linger(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    if facts.systemd and not facts.lingers:
        what = f"everything of {facts.user} ends with its last session, and nothing starts at boot"
        yield warning("linger", what, f"loginctl enable-linger {facts.user}")


def _memory_dir(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    if facts.memory_dir_type not in MEMORY_FILE_SYSTEMS:
        where = facts.memory_dir_type or "an unknown file system"
        what = f"it lies on {where}, which is not memory: no Secret is mounted"
        yield warning("memoryDir", what, "set memoryDir, or XDG_RUNTIME_DIR, to a tmpfs")


def _tracing(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    if facts.missing_modules:
        what = f"samplingRatePerMillion is set, but {facts.missing_modules[0]} is not installed: no trace is exported"
        yield warning("tracing", what, "install rootlet[otel]")


def _runtimes(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    for path in facts.missing_runtimes:
        yield warning("runtimes", f"{path} is no program: pods of its classes do not start", "install it")


def _devices(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    for problem in device_problems(facts.devices):
        yield warning("devices", f"{problem}: no pod is given it", "mend it: a running agent sees that")


def _cluster(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    """Faults that keep the host from being a node, and gaps that others of its cluster will notice."""
    cluster, subject = settings.cluster, "cluster"
    if not cluster.is_configured:
        return
    for name, problem in facts.kubeconfig_problems.items():
        yield failed(subject, f"{name}: {problem}", "`rootlet join` writes it")
    for name in facts.open_kubeconfigs:
        yield warning(subject, f"cluster.{name}: others can read the node's credentials", "chmod 600")
    for address in parse_node_ips(cluster.node_ip):
        if problem := node_ip_on_host_problem(address, facts.host_ips):
            yield failed(subject, problem, "set cluster.nodeIP to an address of this host")
    if not settings.server.port:
        what = "server.port is off: logs, exec, attach and port-forward of the cluster's users do not get here"
        yield warning(subject, what, "server: {port: 10250}, with an authentication")
    if settings.pod_network.mode != BRIDGE:
        what = "podNetwork.mode is no bridge: pods do not reach each other, nor do services reach them"
        yield warning(subject, what, "podNetwork: {mode: bridge}")
    elif cluster.network_scope == "Node":
        yield warning(subject, "pods of other nodes do not reach the pods of this one", "docs/cluster.md")
    if facts.pod_network is not None:
        by_pasta = facts.podman is not None and version_numbers(facts.podman.version) >= FIRST_WITH_PASTA
        yield from check_pod_network(facts.pod_network, settings, by_pasta=by_pasta)


def _skipped(facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    if facts.skipped_manifests:
        yield skipped_manifests(facts.skipped_manifests)


def skipped_manifests(names: Sequence[str]) -> Finding:
    """Files and directories of the manifest directory that are not read."""
    what = f"not read: {', '.join(names)}"
    advice = f"a manifest's name ends in {', '.join(MANIFEST_SUFFIXES)}; directories below are not looked into"
    return warning("manifests", what, advice)


def _is_known(podman: PodmanFacts | None) -> TypeGuard[PodmanFacts]:
    return podman is not None and not podman.error


CHECKS: Final[tuple[Check, ...]] = (
    _podman,
    _programs,
    _user_ids,
    _storage,
    _store,
    _port_forwarder,
    _disk,
    _eviction,
    _cgroups,
    _slices,
    _locks,
    _database,
    _upgrade,
    _keyrings,
    _inotify,
    _processes,
    _linger,
    _memory_dir,
    _tracing,
    _skipped,
    _devices,
    _runtimes,
    _cluster,
)
