"""Costs of Podman's own settings: ``python -m tests.bench.podman_settings [--variants a,b]``.

Each variant is a private ``podman system service`` with a storage, a database and a /dev/shm (where Podman's locks lie)
of its own, below ``--directory``. Raw libpod calls start PODS pods on it and remove them; baseline and variants take
turns for some rounds. CPU time is that of the service and of everything it started (conmon, the OCI runtime, network
helpers, clean-up processes), dead or alive; this process is their subreaper. On a machine with other work only the
ratios to the baseline of the same round and the CPU time count.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import functools
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import sleep
from typing import Any, Final

import msgspec
import tomli_w

from ipc.host.libpod import endpoints
from supervisor.config.containers_conf import merged_conf, named_profile, read_conf
from supervisor.config.seccomp_profiles import for_sandboxes, read_profile
from supervisor.config.settings import PodmanSettings, seconds
from supervisor.processes.podman_service import own_settings, write_conf
from tests.bench.raw_pods import BodyPatch, in_flight, make_pods, pods_of, remove_pod, start_pod
from tests.support.podman_service import IMAGE, image_archive, listens, wait_until, why_not
from tests.support.raw_libpod import Libpod, UnixConnection

INSTANCE: Final = "podman-settings"
PR_SET_CHILD_SUBREAPER: Final = 36
DEADLINE_S: Final = 60.0
_PRIVATE_SHM: Final = 'mount -t tmpfs tmpfs /dev/shm && mount --make-rshared / && exec "$@"'
_IN_PRIVATE_SHM: Final = (
    *("podman", "unshare", "unshare", "--mount", "--propagation", "slave"),
    *("sh", "-c", _PRIVATE_SHM, "sh"),
)
"""Another mount namespace, slave of Podman's own: Podman's locks are one file per user in /dev/shm, and a database that
is new frees all of them."""

Conf = Mapping[str, Mapping[str, Any]]
Patch = Mapping[str, Any]


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """Differences from the baseline, which has what our own service has, but for the late clean-up."""

    gives_up: str
    conf: Conf = {}
    """Tables of containers.conf."""
    storage_options: tuple[str, ...] = ()
    """Options of the storage driver."""
    env: Mapping[str, str] = {}
    prefix: tuple[str, ...] = ()
    """Command before ``podman system service``."""
    flags: tuple[str, ...] = ()
    pod: Patch = {}
    """Keys of the body of pods/create."""
    container: Patch = {}
    """And of containers/create."""
    prepare: Callable[[Path], Conf] | None = None
    """Makes files in the variant's directory; its containers.conf names them."""


def _conmon_without_exit_command(directory: Path) -> Conf:
    """A conmon that starts no `podman container cleanup` at the end of a container."""
    wrapper = directory / "conmon"
    wrapper.write_text(
        '#!/bin/bash\nargs=()\nwhile (($#)); do case "$1" in --exit-command | --exit-command-arg) shift 2 ;; '
        f'*) args+=("$1"); shift ;; esac; done\nexec {shutil.which("conmon")} "${{args[@]}}"\n'
    )
    wrapper.chmod(0o755)
    return {"engine": {"conmon_path": [str(wrapper)]}}


def _conmon_with_late_cleanup(delay_s: float) -> Callable[[Path], Conf]:
    def prepare(directory: Path) -> Conf:
        conf = write_conf(PodmanSettings(cleanup_delay_s=seconds(f"{delay_s:g}s")), directory, os.environ)
        return {"engine": {"conmon_path": tomllib.loads(conf.read_text())["engine"]["conmon_path"]}}

    return prepare


def _database_on_tmpfs(directory: Path) -> Conf:
    place = directory / "storage" / "libpod"
    if not place.is_symlink():
        place.parent.mkdir(exist_ok=True)
        target = _runtime_dir(directory) / "libpod"
        target.mkdir(exist_ok=True)
        place.symlink_to(target)
    return {}


def _lean_profile(directory: Path) -> Conf:
    """The default profile for the host's own architecture alone: infra containers', as the others name theirs."""
    file = directory / "sandbox-seccomp.json"
    file.write_bytes(for_sandboxes(read_profile(named_profile(os.environ))))
    return {"containers": {"seccomp_profile": str(file)}}


VARIANTS: Final[Mapping[str, Variant]] = {
    "baseline": Variant(gives_up="nothing"),
    "same": Variant(gives_up="nothing: the baseline a second time, for the noise"),
    "events-none": Variant(conf={"engine": {"events_logger": "none"}}, gives_up="the agent's stream of events"),
    "events-journald": Variant(conf={"engine": {"events_logger": "journald"}}, gives_up="hosts without a journal"),
    "log-none": Variant(container={"log_configuration": {"driver": "none"}}, gives_up="logs"),
    "log-passthrough": Variant(container={"log_configuration": {"driver": "passthrough"}}, gives_up="logs"),
    "volatile": Variant(
        storage_options=("overlay.mountopt=volatile",),
        gives_up="what a container has written, when the host dies",
    ),
    "volatile-spec": Variant(container={"volatile": True}, gives_up="containers over a reboot of the host"),
    "transient-store": Variant(flags=("--transient-store",), gives_up="containers over a reboot"),
    "db-tmpfs": Variant(prepare=_database_on_tmpfs, gives_up="restart counts and containers over a reboot"),
    "sqlite": Variant(conf={"engine": {"database_backend": "sqlite"}}, gives_up="nothing (4.8 and later)"),
    "no-cleanup": Variant(prepare=_conmon_without_exit_command, gives_up="networks and mounts are kept after an end"),
    "cleanup-1": Variant(prepare=_conmon_with_late_cleanup(1), gives_up="1 s until an end is cleaned up"),
    "cleanup-2": Variant(prepare=_conmon_with_late_cleanup(2), gives_up="2 s until an end is cleaned up"),
    "net-none": Variant(pod={"netns": {"nsmode": "none"}}, gives_up="the network"),
    "net-host": Variant(pod={"netns": {"nsmode": "host"}}, gives_up="the network of its own"),
    "net-pasta": Variant(pod={"netns": {"nsmode": "pasta"}}, gives_up="nothing; needs pasta"),
    "net-slirp": Variant(pod={"netns": {"nsmode": "slirp4netns"}}, gives_up="nothing; gone in Podman 6"),
    "no-hosts": Variant(
        conf={"containers": {"no_hosts": True}}, pod={"no_manage_hosts": True}, gives_up="Podman's /etc/hosts"
    ),
    "base-hosts-none": Variant(conf={"containers": {"base_hosts_file": "none"}}, gives_up="the host's /etc/hosts"),
    "no-hooks": Variant(conf={"engine": {"hooks_dir": []}}, gives_up="the host's OCI hooks"),
    "no-pivot": Variant(conf={"engine": {"no_pivot_root": True}}, gives_up="pivot_root: security"),
    "pids-0": Variant(conf={"containers": {"pids_limit": 0}}, gives_up="the limit of processes of a container"),
    "cgroups-disabled": Variant(container={"cgroups_mode": "disabled"}, gives_up="limits"),
    "runc": Variant(conf={"engine": {"runtime": "runc"}}, gives_up="crun"),
    "seccomp-sandbox": Variant(prepare=_lean_profile, gives_up="nothing: a sandbox runs one program of the host's"),
    "seccomp-off": Variant(container={"seccomp_profile_path": "unconfined"}, gives_up="security"),
    "gogc-200": Variant(env={"GOGC": "200"}, gives_up="memory of the service"),
    "gogc-400": Variant(env={"GOGC": "400"}, gives_up="memory of the service"),
    "gogc-800": Variant(env={"GOGC": "800"}, gives_up="memory of the service"),
    "gogc-off": Variant(env={"GOGC": "off", "GOMEMLIMIT": "192MiB"}, gives_up="192 MiB of memory"),
    "gomaxprocs-1": Variant(env={"GOMAXPROCS": "1"}, gives_up="work on two CPUs in the service"),
    "log-level-error": Variant(flags=("--log-level", "error"), gives_up="Podman's warnings"),
    "nice": Variant(prefix=("nice", "-n", "5"), gives_up="CPU time when others want it"),
    "additional-store": Variant(
        storage_options=(f"additionalimagestore={Path.home()}/.local/share/containers/storage",),
        gives_up="nothing: images that one store has for several",
    ),
    "cgroupfs": Variant(conf={"engine": {"cgroup_manager": "cgroupfs"}}, gives_up="systemd's scopes"),
    "cgroup-systemd": Variant(conf={"engine": {"cgroup_manager": "systemd"}}, gives_up="hosts without systemd"),
    "file-locks": Variant(conf={"engine": {"lock_type": "file"}}, gives_up="nothing"),
}


class Cost(msgspec.Struct, frozen=True):
    """One phase of one round."""

    seconds: float
    service_cpu_s: float
    all_cpu_s: float


class Round(msgspec.Struct, frozen=True):
    start: Cost
    remove: Cost
    pss_kib: int
    """Memory of the service, before the removal."""


class Service:
    """A running service of one variant. The image is in its storage."""

    def __init__(self, directory: Path, variant: Variant) -> None:
        self.socket = _runtime_dir(directory) / "podman.sock"
        self._pid = 0
        self._directory = directory
        self._variant = variant

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        command = [*_IN_PRIVATE_SHM, "setpriv", "--pdeathsig", "TERM", "env", *self._environment()]
        command += [*self._variant.prefix, "podman", *self._flags(), "system", "service", "-t", "0"]
        self.socket.unlink(missing_ok=True)
        with (self._directory / "service.log").open("ab") as log:
            child = subprocess.Popen(
                [*command, f"unix://{self.socket}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                wait_until(lambda: listens(self.socket) or child.poll() is not None, DEADLINE_S)
                assert child.poll() is None, (self._directory / "service.log").read_text()[-2000:]
                self._pid = [pid for pid in _tree(child.pid) if _cmdline(pid).startswith(b"podman\0")][-1]
                yield
            finally:
                for pid in _tree(child.pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGTERM)
                child.wait(DEADLINE_S)

    def _flags(self) -> list[str]:
        """All that is this service's own. Flags, because nothing replaces them: not the user's files, no database."""
        runtime = _runtime_dir(self._directory)
        options = [f"--storage-opt={option}" for option in self._variant.storage_options]
        places = {"root": self._directory / "storage", "runroot": runtime / "run", "tmpdir": runtime / "tmp"}
        return [
            *(f"--{name}={path}" for name, path in places.items()),
            "--storage-driver=overlay",
            *options,
            *self._variant.flags,
        ]

    def _environment(self) -> list[str]:
        _runtime_dir(self._directory).mkdir(parents=True, exist_ok=True)
        prepared = self._variant.prepare(self._directory) if self._variant.prepare else {}
        service_conf = merged_conf((read_conf(os.environ), own_settings(keyring=False)))
        file = self._directory / "containers.conf"
        file.write_text(tomli_w.dumps(functools.reduce(_merged, (prepared, self._variant.conf), service_conf)))
        variables = {"CONTAINERS_CONF": file, "DISABLE_HC_SYSTEMD": "true", **self._variant.env}
        return [f"{name}={value}" for name, value in variables.items()]

    def check_private(self) -> None:
        """Before anything is made: a service with the user's database but not the user's locks would do harm."""
        with contextlib.closing(Libpod(str(self.socket))) as libpod:
            store = libpod.ask(endpoints.INFO)["store"]
        assert Path(store["graphRoot"]).is_relative_to(self._directory), store

    def import_image(self, archive: Path) -> None:
        connection = UnixConnection(str(self.socket))
        path = f"/v4.0.0/libpod/images/import?reference={IMAGE}&changes=ENV%20PATH=/bin"
        connection.request("POST", path, archive.read_bytes(), {"Content-Type": "application/x-tar"})
        answer = connection.getresponse()
        assert answer.status < 400, answer.read()
        connection.close()

    def start(self, pods: int, at_a_time: int) -> Cost:
        made = make_pods(pods, "p", IMAGE)
        patch = _patched(self._variant)
        return self._timed([start_pod(pod, INSTANCE, self._directory, patch) for pod in made], at_a_time)

    def remove(self, at_a_time: int) -> Cost:
        return self._timed([remove_pod(id) for id in pods_of(str(self.socket), INSTANCE)], at_a_time)

    def _timed(self, jobs: Sequence[Callable[[Libpod], None]], at_a_time: int) -> Cost:
        service, everything = _cpu_s(self._pid), _tree_cpu_s(os.getpid())
        seconds = in_flight(jobs, at_a_time, str(self.socket))
        return Cost(seconds, _cpu_s(self._pid) - service, _settled_cpu_s() - everything)

    def memory_kib(self) -> int:
        lines = Path(f"/proc/{self._pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _merged(base: Conf, more: Conf) -> dict[str, Any]:
    return {**base, **{table: {**base.get(table, {}), **values} for table, values in more.items()}}


def _patched(variant: Variant) -> BodyPatch:
    patches = {endpoints.CREATE_POD: variant.pod, endpoints.CREATE_CONTAINER: variant.container}
    return lambda endpoint, body: {**body, **patches.get(endpoint, {})}


def _runtime_dir(directory: Path) -> Path:
    """On a tmpfs, as Podman's own."""
    return Path(os.environ["XDG_RUNTIME_DIR"]) / directory.parent.name / directory.name


# --- CPU time of a tree of processes ---


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, task.read_text().split())
    return found


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for child in _children(pid):
        yield from _tree(child)


def _cmdline(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _stat(pid: int) -> tuple[float, float]:
    """CPU seconds of a process, and of the children that it has reaped."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        user, system, child_user, child_system = map(int, fields[11:15])
        tick = os.sysconf("SC_CLK_TCK")
        return (user + system) / tick, (child_user + child_system) / tick
    return 0.0, 0.0


def _cpu_s(pid: int) -> float:
    return _stat(pid)[0]


def _tree_cpu_s(root: int) -> float:
    """CPU time of what ``root`` has started, itself left out."""
    _reap()
    return _stat(root)[1] + sum(sum(_stat(pid)) for pid in _tree(root) if pid != root)


def _settled_cpu_s() -> float:
    """CPU time once nothing of it runs any more: clean-up processes outlive the call that ended their container."""
    before = -1.0
    while (now := _tree_cpu_s(os.getpid())) - before > 0.02:
        before = now
        sleep(0.25)
    return now


def _reap() -> None:
    """Orphans that came to this process; the service is not one of them: subprocess waits for it."""
    for pid in _children(os.getpid()):
        if b"unshare" not in _cmdline(pid):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


# --- rounds ---


def run_round(service: Service, pods: int, at_a_time: int, removals: int) -> Round:
    with service.running():
        try:
            started = service.start(pods, at_a_time)
            memory = service.memory_kib()
        except BaseException:
            service.remove(removals)
            raise
        return Round(started, service.remove(removals), memory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variants", default=",".join(VARIANTS), help="comma separated; the baseline comes by itself")
    parser.add_argument("--pods", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--at-a-time", type=int, default=4)
    parser.add_argument("--removals", type=int, default=4, help="removals at a time")
    parser.add_argument("--directory", type=Path, default=Path.home(), help="on the disk to measure")
    wanted = parser.parse_args()
    if reason := why_not():
        raise SystemExit(reason)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    names = ["baseline", *(name for name in wanted.variants.split(",") if name not in ("", "baseline"))]
    directory = Path(tempfile.mkdtemp(prefix="ps-", dir=wanted.directory))
    try:
        measure(names, directory, wanted)
    finally:
        _remove_all(directory)


def measure(names: Sequence[str], directory: Path, wanted: argparse.Namespace) -> None:
    archive = image_archive(directory)
    services = {}
    costs: dict[str, list[Round]] = {}
    for name in names:
        (directory / name).mkdir()
        services[name] = Service(directory / name, VARIANTS[name])
        with _impossible(name, services, costs):
            with services[name].running():
                services[name].check_private()
                services[name].import_image(archive)
            run_round(services[name], 2, 1, 1)
            costs[name] = []
    for number in range(wanted.rounds):
        for name, service in tuple(services.items())[:: 1 if number % 2 else -1]:
            with _impossible(name, services, costs):
                costs[name].append(run_round(service, wanted.pods, wanted.at_a_time, wanted.removals))
    _print(costs, wanted.pods)


@contextlib.contextmanager
def _impossible(name: str, *tables: dict[str, Any]) -> Iterator[None]:
    """A variant that this Podman or host refuses is out, and the others go on."""
    try:
        yield
    except (AssertionError, OSError) as error:
        print(f"{name}: not possible here: {str(error).strip()[-300:]}", flush=True)
        for table in tables:
            table.pop(name, None)


def _print(costs: Mapping[str, Sequence[Round]], pods: int) -> None:
    if "baseline" not in costs:
        raise SystemExit("without a baseline there is nothing to compare with")
    rounds = len(costs["baseline"])
    print(f"{pods} pods, {rounds} rounds in turns, {os.cpu_count()} CPUs: medians (spread); /: to the baseline")
    for phase in ("start", "remove"):
        print(f"{phase:18} {'pods/s':22} {'/':6} {'CPU ms a pod, all':24} {'/':6} {'service':8} {'/':6} PSS MiB")
        for name, taken in costs.items():
            base: list[Cost] = [getattr(one, phase) for one in costs["baseline"]]
            ours: list[Cost] = [getattr(one, phase) for one in taken]
            print(
                f"{name:18}"
                f" {_spread([pods / cost.seconds for cost in ours]):22}"
                f" {_ratio([b.seconds / o.seconds for b, o in zip(base, ours, strict=True)]):6}"
                f" {_spread([cost.all_cpu_s * 1000 / pods for cost in ours]):24}"
                f" {_ratio([o.all_cpu_s / b.all_cpu_s for b, o in zip(base, ours, strict=True)]):6}"
                f" {statistics.median(cost.service_cpu_s * 1000 / pods for cost in ours):<8.1f}"
                f" {_ratio([o.service_cpu_s / b.service_cpu_s for b, o in zip(base, ours, strict=True)]):6}"
                f" {statistics.median(one.pss_kib for one in taken) / 1024:.0f}"
            )


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def _ratio(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f}"


def _remove_all(directory: Path) -> None:
    """Layers belong to the user's other ids."""
    for path in (directory, Path(os.environ["XDG_RUNTIME_DIR"]) / directory.name):
        subprocess.run(["podman", "unshare", "rm", "-rf", str(path)], check=False, timeout=DEADLINE_S)


if __name__ == "__main__":
    main()
