"""`rootlet uninstall`: removes all that this instance has made."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from supervisor.cli.configuration import config_option, load_configuration
from supervisor.cli.options import Failure
from supervisor.client.errors import AgentUnreachable
from supervisor.client.http import AgentClient

if TYPE_CHECKING:
    from supervisor.config.settings import Settings

PROGRAM_S: Final = 300.0
"""Deadline of a program that removes something, in seconds."""
UNIT: Final = "rootlet.service"
OWNER_FILE: Final = ".rootlet-instance"
"""Mark of a directory that an agent has made (`supervisor.state.directory_owner`)."""
INSTANCE_LABEL: Final = "rootlet.dev/instance"
"""Label of pods and containers (`workers.kubecontainer.labels`)."""


class Made(msgspec.Struct, frozen=True):
    """Everything that is there of an instance."""

    pods: tuple[str, ...]
    """Ids of Podman's pods."""
    paths: tuple[Path, ...]
    unit: Path | None = None


@click.command()
@config_option
@click.option("--all", "everything", is_flag=True, help="Remove the configuration file and the manifests, too.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def uninstall(config_path: Path | None, everything: bool, yes: bool) -> None:
    """End the agent and its pods, and remove all that this instance has made; ask before.

    Pods and containers, state, logs, sockets, and systemd's unit of the user go. The configuration file and the
    manifests are yours and stay, but for --all; Podman's images and the volumes of claims stay, too. The program itself
    is removed by what has installed it.
    """
    settings = load_configuration(config_path)
    yours = [config_path, settings.static_pod_path] if everything else []
    made = find_made(settings, [path for path in yours if path is not None])
    if not (made.pods or made.paths or made.unit):
        click.echo(f"there is nothing of the instance {settings.instance_name}")
        return
    for line in _shown(made):
        click.echo(line)
    if not yes and not click.confirm("Remove all of this?", err=True):
        raise Failure("nothing was removed", prefix="error: ")
    remove(settings, made)
    click.echo("removed; the program itself goes by what has installed it, such as: pipx uninstall rootlet")


def find_made(settings: Settings, yours: Sequence[Path]) -> Made:
    """Pods by their label, directories by their mark. Raises Failure when Podman does not answer."""
    label = f"label={INSTANCE_LABEL}={settings.instance_name}"
    pods = _run(settings.podman.path, "pod", "ps", "--quiet", "--no-trunc", "--filter", label).split()
    marked = [
        path for path in (settings.state_dir, settings.pod_logs_dir, settings.memory_dir) if _is_ours(path, settings)
    ]
    sockets = sorted(settings.admin_socket.parent.glob(f"{settings.admin_socket.stem}.*"))
    unit = Path(os.path.expanduser("~")) / ".config" / "systemd" / "user" / UNIT
    found = [path for path in yours if os.path.lexists(path)]
    return Made(tuple(pods), (*marked, *sockets, *found), unit if unit.exists() else None)


def _is_ours(directory: Path, settings: Settings) -> bool:
    try:
        return (directory / OWNER_FILE).read_text().strip() == settings.instance_name
    except OSError:
        return False


def _shown(made: Made) -> list[str]:
    pods = [f"{len(made.pods)} pods with their containers"] if made.pods else []
    return [*pods, *map(str, made.paths), *([str(made.unit)] if made.unit else [])]


def remove(settings: Settings, made: Made) -> None:
    """The agent first, so that nothing comes back. Raises Failure at what cannot be removed; the rest stays."""
    if made.unit is not None:
        _systemctl("disable", "--now", UNIT)
    _stop_agent(settings)
    if left := [pod for pod in made.pods if pod in find_made(settings, ()).pods]:
        _run(settings.podman.path, "pod", "rm", "--force", "--time", "10", *left)
    for path in made.paths:
        if os.path.lexists(path):
            # Files of containers belong to ids that only Podman's user namespace has; rm is at home at any depth.
            _run(settings.podman.path, "unshare", "rm", "-rf", "--", str(path))
            _remove_empty(path.parent)
    if made.unit is not None:
        made.unit.unlink(missing_ok=True)
        _systemctl("daemon-reload")


def _stop_agent(settings: Settings) -> None:
    """With its pods, in order; where one runs."""
    from supervisor.cli.commands.operating.stop import stop_agent

    with contextlib.suppress(AgentUnreachable):
        stop_agent(AgentClient(settings.admin_socket), pods=True, timeout_s=PROGRAM_S)


def _remove_empty(directory: Path) -> None:
    """A directory called rootlet that has nothing more in it."""
    if directory.name == "rootlet":
        with contextlib.suppress(OSError):
            directory.rmdir()


def _systemctl(*words: str) -> None:
    """Where there is no systemd of the user, nothing of it is to be undone."""
    with contextlib.suppress(Failure):
        _run("systemctl", "--user", *words)


def _run(*argv: str) -> str:
    """Raises Failure."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PROGRAM_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"{' '.join(argv[:3])}: {error}") from None
    if done.returncode:
        raise Failure(f"{' '.join(argv[:3])}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout
