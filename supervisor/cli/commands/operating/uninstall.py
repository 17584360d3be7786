"""`rootlet uninstall`: removes all that this instance has made."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from supervisor.cli.configuration import config_option, load_configuration, own_socket
from supervisor.cli.options import Failure
from supervisor.client.errors import AgentUnreachable
from supervisor.client.http import AgentClient

if TYPE_CHECKING:
    from supervisor.cli.instance_pods import InstancePod
    from supervisor.config.settings import Settings

UNIT: Final = "rootlet.service"
OWNER_FILE: Final = ".rootlet-instance"
"""Mark of a directory that an agent has made (`supervisor.state.directory_owner`)."""
GRACE_S: Final = 10.0
"""Longest grace period of a pod whose agent does not run."""


class InstanceRemains(msgspec.Struct, frozen=True):
    """Everything that is there of an instance."""

    pods: tuple[InstancePod, ...]
    paths: tuple[Path, ...]
    unit: Path | None = None


@click.command()
@config_option
@click.option("--all", "everything", is_flag=True, help="Remove the configuration file and the manifests, too.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def uninstall(ctx: click.Context, config_path: Path | None, everything: bool, yes: bool) -> None:
    """End the agent and its pods, and remove all that this instance has made; ask before.

    Pods and containers, state, logs, sockets, and systemd's unit of the user go. The configuration file and the
    manifests are yours and stay, but for --all; Podman's images and the volumes of claims stay, too. The program itself
    is removed by what has installed it.
    """
    settings = load_configuration(config_path)
    own_socket(ctx, settings)
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


def find_made(settings: Settings, yours: Sequence[Path]) -> InstanceRemains:
    """Pods by their labels, directories by their mark. Raises Failure when Podman does not answer."""
    from supervisor.cli.instance_pods import find_pods

    marked = [
        path for path in (settings.state_dir, settings.pod_logs_dir, settings.memory_dir) if _is_ours(path, settings)
    ]
    sockets = sorted(settings.admin_socket.parent.glob(f"{settings.admin_socket.stem}.*"))
    unit = Path(os.path.expanduser("~")) / ".config" / "systemd" / "user" / UNIT
    found = [path for path in yours if os.path.lexists(path)]
    return InstanceRemains(find_pods(settings).ours, (*marked, *sockets, *found), unit if unit.exists() else None)


def _is_ours(directory: Path, settings: Settings) -> bool:
    try:
        return (directory / OWNER_FILE).read_text().strip() == settings.instance_name
    except OSError:
        return False


def _shown(made: InstanceRemains) -> list[str]:
    pods = [f"{len(made.pods)} pods with their containers"] if made.pods else []
    return [*pods, *map(str, made.paths), *([str(made.unit)] if made.unit else [])]


def remove(settings: Settings, made: InstanceRemains) -> None:
    """The agent first, so that nothing comes back. Raises Failure at what cannot be removed; the rest stays."""
    from supervisor.cli.instance_pods import find_pods, no_agent, remove_pods, run_program

    if made.unit is not None:
        _systemctl("disable", "--now", UNIT)
    _stop_agent(settings)
    with no_agent(settings):
        list(remove_pods(settings, find_pods(settings).ours, GRACE_S))
        for path in (*made.paths, settings.admin_socket.with_suffix(".lock")):
            if os.path.lexists(path):
                # Files of containers belong to ids that only Podman's user namespace has; rm is at home at any depth.
                run_program(*settings.podman.command, "unshare", "rm", "-rf", "--", str(path))
                _remove_empty(path.parent)
    if made.unit is not None:
        made.unit.unlink(missing_ok=True)
        _systemctl("daemon-reload")


def _stop_agent(settings: Settings) -> None:
    """With its pods, in order; where one runs."""
    from supervisor.cli.commands.operating.stop import stop_agent
    from supervisor.cli.instance_pods import PROGRAM_S

    with contextlib.suppress(AgentUnreachable):
        stop_agent(AgentClient(settings.admin_socket), pods=True, timeout_s=PROGRAM_S)


def _remove_empty(directory: Path) -> None:
    """A directory called rootlet that has nothing more in it."""
    if directory.name == "rootlet":
        with contextlib.suppress(OSError):
            directory.rmdir()


def _systemctl(*words: str) -> None:
    """Where there is no systemd of the user, nothing of it is to be undone."""
    from supervisor.cli.instance_pods import run_program

    with contextlib.suppress(Failure):
        run_program("systemctl", "--user", *words)
