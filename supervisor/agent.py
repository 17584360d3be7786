"""The agent's birth and end: what is there before the first fork, and what goes after the last child."""

from __future__ import annotations

import faulthandler
import logging
import os
import resource
import socket
from pathlib import Path

import uvloop

from ipc.host.clock import SystemClock
from ipc.host.log import setup, verbosity
from ipc.host.process import spare_memory
from ipc.host.process.core_dumps import forbid_core_dumps
from ipc.host.process.prctl import set_process_name
from ipc.link.shm.board import Board
from ipc.link.shm.metric_cells import METERS
from ipc.link.shm.mutation_slots import MutationSlots
from ipc.link.shm.trace import TRACER
from ipc.link.wire.boot import LoadWorkerMain, Role
from supervisor.config.resolution.server_section import listening_addresses
from supervisor.config.settings import Settings
from supervisor.control.configuration import Configuration
from supervisor.podman_store import check_store
from supervisor.pods.board_rows import SPARE_ROWS
from supervisor.processes import listeners
from supervisor.processes.child_specs import exec_spawn, service_spec
from supervisor.processes.podman_service import check_port_forwarder, choose_service
from supervisor.processes.worker_pool import SLOTS
from supervisor.processes.zygote import start_zygote
from supervisor.state import directory_owner, instance_lock, label_key_file

log = logging.getLogger(__name__)


def run_agent(settings: Settings, load: LoadWorkerMain, config_path: Path | None) -> int:
    """The agent's whole life; its exit code. Must be called before any thread or event loop exists.

    Raises:
        SettingsError: the configuration reserves more than the host has, or its Podman lacks what it asks for.
        instance_lock.InstanceBusy: another agent of this instance runs.
        directory_owner.DirectoryTaken: a directory is that of another instance.
        containers_conf.BrokenContainersConf: the user's settings for Podman cannot be read.
        OSError: a directory or socket cannot be made.
    """
    os.umask(0o077)
    setup.set_up(settings.logging.target, "master")
    verbosity.apply(settings.logging.levels)
    lock = instance_lock.acquire(settings.admin_socket.with_suffix(".lock"))
    claim_directories(settings)
    label_key = label_key_file.load_or_make(settings.state_dir / label_key_file.NAME, SystemClock().now().wall)
    runtime_dir, file = settings.admin_socket.parent.parent, str(config_path or "the default settings")
    check_port_forwarder(settings, runtime_dir, os.environ, file)
    check_store(settings, runtime_dir, file)
    service = choose_service(settings, runtime_dir, os.environ)
    ports = listening_addresses(settings.server).values()
    listening = {
        Role.API_SERVER: (
            listeners.listen(settings.admin_socket),
            *(listeners.listen_tcp(address, port) for address, port in ports),
        ),
        Role.DIALER: (listeners.listen(settings.dialer_socket, socket.SOCK_SEQPACKET),),
    }
    sockets = (settings.admin_socket, settings.dialer_socket)
    board = Board.create(worker_slots=SLOTS, pod_rows=settings.max_pods + SPARE_ROWS)
    board.record_verbosity(settings.logging.levels)
    mutation_slots = MutationSlots.create(slots=settings.podman.max_concurrent_mutations, members=SLOTS)
    spare_memory.fix_limits()
    _raise_process_limit()
    podman = service_spec(service)  # takes longest to be there
    first = exec_spawn(podman) if podman is not None else None
    zygote, zygote_pid = start_zygote(board, load, sockets, mutation_slots, first)
    mutation_slots.close()
    set_process_name("rootlet-master")
    faulthandler.enable()  # systemd's watchdog aborts a master that hangs: where, its log says
    forbid_core_dumps()
    TRACER.attach(board.trace, SLOTS, "master")
    METERS.attach(board.metrics, SLOTS)
    configuration = Configuration(settings, config_path)
    try:
        # After the fork, while the zygote imports what children run: so neither has what only the other one needs.
        from supervisor.master import Master

        return uvloop.run(Master(configuration, board, zygote, zygote_pid, listening, service, label_key).run())
    finally:
        zygote.close()
        os.waitpid(zygote_pid, 0)
        for path in sockets:
            path.unlink(missing_ok=True)
        os.close(lock)


def _raise_process_limit() -> None:
    """As many processes as the user may have, whatever the soft limit: so Podman has it for containers, which would
    leave the agent none (`workers.proc.process_limit`)."""
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))


def claim_directories(settings: Settings) -> None:
    """Raises DirectoryTaken. A disk that takes no mark keeps nobody from looking after pods that run."""
    for directory in (settings.state_dir, settings.pod_logs_dir, settings.memory_dir):
        try:
            directory_owner.claim(directory, settings.instance_name)
        except OSError as error:
            log.warning("cannot mark %s as that of this instance: %s", directory, error.strerror or error)
