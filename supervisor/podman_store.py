"""The store of Podman's records of containers: on the disk, or in the runtime directory (`podman.store`).

Podman shows containers of the other store to nobody. So an agent that finds pods of its own there does not start: it
would run all of them a second time. Which store was used last is noted in a file; without it Podman is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ipc.host.atomic_file import UntrustedFile, read_bounded, write_atomically
from ipc.host.private_directories import make_private
from ipc.k8s.kubecontainer.label_key import INSTANCE
from supervisor.config.settings import Settings, SettingsError
from supervisor.processes.podman_service import OLDEST_TRANSIENT, podman_version, transient_problem

FILE: Final = "podman_store"
"""Name of the file below ``stateDir`` with that of the store that was used last."""
SETTING: Final = "podman.store"
STORES: Final = ("default", "transient")
SHOWN: Final = 5
"""Most pods that are named."""
MAX_BYTES: Final = 64


class _Left(NamedTuple):
    """Pods of this instance in a store."""

    titles: tuple[str, ...] = ()
    unknown: str = ""
    """Why nobody knows them."""


def check_store(settings: Settings, runtime_dir: Path, file: str) -> None:
    """Note the store of the settings as the one that is used from now on. To be called before Podman's service starts;
    ``file`` is that of the configuration. Raises SettingsError where it cannot be used, OSError."""
    if problem := transient_problem(settings, runtime_dir):
        raise SettingsError(file, SETTING, problem)
    note, wanted = settings.state_dir / FILE, settings.podman.store
    last = _last(note)
    if last == wanted:
        return
    other = last or next(store for store in STORES if store != wanted)
    if last or other == "default" or _can_be_transient(settings):
        left = _pods_in(settings, other)
        if left.unknown and not last and wanted == "default":
            return  # as if Podman did not answer at all: it is asked again, as nothing is noted
        if problem := left.unknown or _left_behind(settings, other, left.titles):
            raise SettingsError(file, SETTING, problem)
        make_private(settings.state_dir)
        write_atomically(note, wanted.encode())


def _last(path: Path) -> str:
    """Name of the store that was used last; empty where nobody has noted it, or the note is damaged."""
    try:
        text = read_bounded(path, MAX_BYTES).decode(errors="replace").strip()
    except (OSError, UntrustedFile):
        return ""
    return text if text in STORES else ""


def _can_be_transient(settings: Settings) -> bool:
    """Whether this Podman has such a store; one that does not answer has none."""
    return podman_version(settings.podman.path) >= OLDEST_TRANSIENT


def _pods_in(settings: Settings, store: str) -> _Left:
    from supervisor.cli.instance_pods import find_pods  # once in the life of a state directory, and after a change
    from supervisor.cli.options import Failure

    other = msgspec.structs.replace(settings.podman, store=store)
    try:
        found = find_pods(msgspec.structs.replace(settings, podman=other)).ours
    except Failure as error:
        return _Left(unknown=f"whether pods are left in the {store} store is not known: {error}")
    return _Left(tuple(pod.title for pod in found))


def _left_behind(settings: Settings, store: str, titles: Sequence[str]) -> str:
    """Why the other store cannot be left: pods in it; empty where there are none."""
    if not titles:
        return ""
    podman = " ".join(msgspec.structs.replace(settings.podman, store=store).command)
    named = ", ".join(titles[:SHOWN]) + (", ..." if len(titles) > SHOWN else "")
    label = f"label={INSTANCE}={settings.instance_name}"
    return (
        f"{len(titles)} pods of this instance are in the {store} store ({named}), where this agent would not see them: "
        f"set {SETTING} to {store}, or end them: {podman} pod rm --force $({podman} pod ps -q --filter {label})"
    )
