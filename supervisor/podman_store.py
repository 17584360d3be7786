"""The store of Podman's records of containers: on the disk, or in the runtime directory (`podman.store`).

Podman shows containers of the other store to nobody. So an agent that finds pods of its own there does not start: it
would run all of them a second time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from ipc.host.atomic_file import UntrustedFile, read_bounded, write_atomically
from ipc.host.private_directories import make_private
from ipc.kubecontainer.label_key import INSTANCE
from supervisor.config.settings import Settings, SettingsError
from supervisor.processes.podman_service import transient_problem

FILE: Final = "podman_store"
"""Name of the store that was used last, below ``stateDir``; without it the default one was."""
SETTING: Final = "podman.store"
DEFAULT: Final = "default"
SHOWN: Final = 5
"""Most pods that are named."""
MAX_BYTES: Final = 64


def check_store(settings: Settings, runtime_dir: Path, file: str) -> None:
    """Note the store of the settings as the one that is used from now on. To be called before Podman's service starts;
    ``file`` is that of the configuration. Raises SettingsError where it cannot be used, OSError."""
    if problem := transient_problem(settings, runtime_dir):
        raise SettingsError(file, SETTING, problem)
    last, wanted = _last(settings.state_dir / FILE), settings.podman.store
    if last == wanted:
        return
    if problem := _left_behind(settings, last):
        raise SettingsError(file, SETTING, problem)
    make_private(settings.state_dir)
    write_atomically(settings.state_dir / FILE, wanted.encode())


def _last(path: Path) -> str:
    """Name of the store that was used last."""
    try:
        text = read_bounded(path, MAX_BYTES).decode(errors="replace").strip()
    except (OSError, UntrustedFile):
        return DEFAULT
    return text if text in ("default", "transient") else DEFAULT


def _left_behind(settings: Settings, store: str) -> str:
    """Why the other store cannot be left: pods in it; empty where there are none."""
    from supervisor.cli.instance_pods import find_pods  # once, after a change of the setting
    from supervisor.cli.options import Failure

    other = msgspec.structs.replace(settings.podman, store=store)
    podman = " ".join(other.command)
    try:
        pods = find_pods(msgspec.structs.replace(settings, podman=other)).ours
    except Failure as error:
        return f"whether pods are left in the {store} store is not known: {error}"
    if not pods:
        return ""
    named = ", ".join(pod.title for pod in pods[:SHOWN]) + (", ..." if len(pods) > SHOWN else "")
    label = f"label={INSTANCE}={settings.instance_name}"
    return (
        f"{len(pods)} pods of this instance are in the {store} store ({named}), where this agent would not see them: "
        f"set {SETTING} to {store}, or end them: {podman} pod rm --force $({podman} pod ps -q --filter {label})"
    )
