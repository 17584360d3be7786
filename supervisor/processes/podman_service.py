"""Choice of a libpod API socket: the user's own, or that of a `podman system service` that is our child.

Our own child is preferable (no idle exit, no kernel keyring per container, short-lived exec sessions) but a user who
already runs podman.socket has one service, not two. Its settings are the user's containers.conf with ours on top,
written to one file, because `CONTAINERS_CONF` replaces every other file and the additive variable is missing
before Podman 4.5.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from ipc.host.atomic_file import PRIVATE_FILE_MODE, PRIVATE_PROGRAM_MODE, write_atomically
from ipc.host.private_directories import make_private
from ipc.host.state_file import has_content
from ipc.k8s.network.network_programs import version_numbers
from supervisor.admission.cgroups import delegated_controllers
from supervisor.config.containers_conf import (
    SYSTEMD,
    manager_of,
    merged_conf,
    named_profile,
    read_conf,
    states_process_limit,
)
from supervisor.config.port_forwarder import find_pesto, forwarder_problem, forwarder_table
from supervisor.config.seccomp_profiles import SANDBOX_PROFILE, default_profile, for_sandboxes, read_profile
from supervisor.config.settings import PodmanSettings, Settings, SettingsError
from supervisor.processes import late_cleanup

EXIT_COMMAND_DELAY_S = 10
"""How long an ended exec session keeps its conmon; Podman's own default is 300."""

CONF_FILE = "containers.conf"
"""Settings of our own service, below the state directory."""
CONMON_FILE = "conmon"
"""Likewise: the program that it runs as conmon, where cleaning up is put off."""

OLDEST_TRANSIENT = (5, 0)
"""First version of Podman whose transient store is used."""
VERSION_S = 20.0
"""How long Podman may take to say its version, in seconds."""

START_S = 10.0
"""How long our own service may take from its start to its first answer, in seconds."""


class PodmanService(msgspec.Struct, frozen=True):
    socket: Path
    argv: tuple[str, ...] = ()
    """The command of our own child; empty when the socket is the user's."""
    env: dict[str, str] = {}
    seccomp_profile: str = ""
    """Podman's default profile, which containers have to name: that of the service is the sandboxes'."""
    limits_processes: bool = False
    """Whether containers leave some of the user's processes to the agent (`workers.proc.process_limit`). Another's
    service may have fewer of them than the agent: with a higher limit than its own no container starts."""

    def is_hung(self, age_s: float) -> bool:
        """Whether a service that answers no ping is ours to end: our child, and not one that has just begun.

        ``age_s`` is that of its process, in seconds; 0.0 when there is none. A user's own service is never touched.
        """
        return bool(self.argv) and age_s > START_S


def is_own_service(settings: Settings, runtime_dir: Path) -> bool:
    """Whether the service is to be a child of ours."""
    if settings.container_runtime_endpoint or settings.podman.service != "auto":
        return not settings.container_runtime_endpoint and settings.podman.service == "own"
    return not _users_socket(runtime_dir).is_socket()


def transient_problem(settings: Settings, runtime_dir: Path) -> str:
    """Why Podman's records of containers cannot lie in memory (`podman.store`); empty where they can, or are not to."""
    if not settings.podman.is_transient:
        return ""
    if not is_own_service(settings, runtime_dir):
        return "transient is for the agent's own service, and this is the user's: set podman.service to own"
    version = podman_version(settings.podman.path)
    if version and version < OLDEST_TRANSIENT:
        return f"transient needs Podman 5.0 or newer, and this is {'.'.join(map(str, version))}"
    return ""


def port_forwarder_problem(settings: Settings, runtime_dir: Path, environ: Mapping[str, str]) -> str:
    """Why host ports of bridges cannot be forwarded as `podman.portForwarder` says; empty where they can, or Podman's
    own is left. Raises OSError, BrokenContainersConf: a containers.conf cannot be read."""
    forwarder = settings.podman.port_forwarder
    if not forwarder:
        return ""
    if not is_own_service(settings, runtime_dir):
        return f"{forwarder} is for the agent's own service, and this is the user's: set podman.service to own"
    pesto = find_pesto(read_conf(environ, settings.podman.path), environ)
    return forwarder_problem(forwarder, podman_version(settings.podman.path), pesto)


def check_port_forwarder(settings: Settings, runtime_dir: Path, environ: Mapping[str, str], file: str) -> None:
    """``file`` is that of the configuration. Raises SettingsError, and as `port_forwarder_problem`."""
    if problem := port_forwarder_problem(settings, runtime_dir, environ):
        raise SettingsError(file, "podman.portForwarder", problem)


def podman_version(program: str) -> tuple[int, ...]:
    """Version of that program; empty where it does not say: whoever needs Podman next says why."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=VERSION_S, check=False)
    except (OSError, subprocess.SubprocessError, ValueError):
        return ()
    return version_numbers(done.stdout.rpartition(" ")[2].strip())


def _users_socket(runtime_dir: Path) -> Path:
    return runtime_dir / "podman" / "podman.sock"


def choose_service(settings: Settings, runtime_dir: Path, environ: Mapping[str, str]) -> PodmanService:
    """An explicit endpoint, else by ``podman.service``: the user's socket, our own, or (auto) the user's if it exists.

    Raises:
        OSError: a containers.conf cannot be read, or the merged one not written.
        BrokenContainersConf: one of the user's own files is no TOML.
    """
    if settings.container_runtime_endpoint:
        return PodmanService(Path(settings.container_runtime_endpoint.removeprefix("unix://")))
    if not is_own_service(settings, runtime_dir):
        return PodmanService(_users_socket(runtime_dir))
    own = settings.admin_socket.with_suffix(".podman.sock")
    conf = write_conf(settings.podman, settings.state_dir, environ, settings.runtimes.values())
    argv = (*settings.podman.command, "system", "service", "--time", "0", f"unix://{own}")
    environment = {"CONTAINERS_CONF": str(conf), "DISABLE_HC_SYSTEMD": "true"}
    program = settings.podman.path
    has_limit = states_process_limit(environ, program)
    return PodmanService(own, argv, environment, named_profile(environ, program), limits_processes=not has_limit)


def write_conf(
    podman: PodmanSettings, directory: Path, environ: Mapping[str, str], runtimes: Iterable[str] = ()
) -> Path:
    """containers.conf of our own service, in ``directory``, and what it names there; ``runtimes``: paths of the OCI
    runtimes that containers may have. Raises as `choose_service`."""
    own = (own_settings(podman.keyring), forwarder_table(podman.port_forwarder))
    conf = merged_conf((read_conf(environ, podman.path), *own))
    if named := {path: [path] for path in runtimes}:
        # By their paths: what a container remembers is found by a user's podman, too, which does not read this file.
        conf["engine"]["runtimes"] = {**conf["engine"].get("runtimes", {}), **named}
    if not _can_limit_processes(conf):
        conf["containers"]["pids_limit"] = 0  # none
    paths = conf["engine"].get("conmon_path", [])
    conmon = late_cleanup.find_conmon(paths)
    if podman.cleanup_delay_s and conmon:
        program = directory / CONMON_FILE
        _write_if_other(program, late_cleanup.script(conmon, podman.cleanup_delay_s), PRIVATE_PROGRAM_MODE)
        conf["engine"]["conmon_path"] = late_cleanup.paths_with(program, paths)
    lean = for_sandboxes(read_profile(default_profile(conf)))
    if lean:
        _write_if_other(directory / SANDBOX_PROFILE, lean)
        conf["containers"]["seccomp_profile"] = str(directory / SANDBOX_PROFILE)
    file = directory / CONF_FILE
    _write_if_other(file, tomli_w.dumps(conf).encode())
    return file


def _write_if_other(file: Path, data: bytes, mode: int = PRIVATE_FILE_MODE) -> None:
    """Nothing is written when the file is right: an agent may be started again on a full disk. Raises OSError."""
    if not has_content(file, data):
        make_private(file.parent)
        write_atomically(file, data, mode=mode)


def own_settings(keyring: bool) -> dict[str, Any]:
    """Tables of containers.conf that go on top of the user's. A ``log_tag`` is journald's alone: with it no container
    starts whose log is a file (conmon: k8s-file doesn't support --log-tag)."""
    return {"containers": {"keyring": keyring, "log_tag": ""}, "engine": {"exit_command_delay": EXIT_COMMAND_DELAY_S}}


def _can_limit_processes(conf: Mapping[str, Any]) -> bool:
    """Whether Podman's limit of a container's processes may stand. Where systemd makes cgroups and has no controller
    for it, Podman asks for it all the same, and crun starts no container; with cgroupfs Podman asks for none."""
    return manager_of(conf) != SYSTEMD or "pids" in (delegated_controllers() or ())
