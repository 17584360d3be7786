"""Commands about the agent itself: `run`, `stop`, `version` and `config`."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from supervisor.cli.options import Failure, agent, agent_options, chosen_socket, duration_s
from supervisor.version import own_version

if TYPE_CHECKING:
    from ipc.wire.boot import LoadWorkerMain
    from supervisor.config.settings import Settings

EXIT_CONFIG: Final = 2

_config_argument: Final = click.Path(exists=False, dir_okay=False, path_type=Path)


@click.command()
@click.option("--config", "config_path", type=_config_argument, help="The configuration file; without, all defaults.")
@click.pass_obj
def run(load_worker_main: LoadWorkerMain, config_path: Path | None) -> int:
    """Run the agent in the foreground until SIGTERM or `rootlet stop`; containers keep running after it."""
    from ipc.host import logs
    from supervisor.agent import run_agent
    from supervisor.processes.inherited_descriptors import close_inherited
    from supervisor.processes.podman_service import BrokenContainersConf
    from supervisor.state.directory_owner import DirectoryTaken
    from supervisor.state.instance_lock import InstanceBusy

    settings = load_configuration(config_path)  # before: it may be read from one of them (/dev/fd)
    close_inherited()
    logs.set_up(settings.logging.verbosity, settings.logging.format, "master")
    try:
        return run_agent(settings, load_worker_main, config_path)
    except (InstanceBusy, DirectoryTaken, BrokenContainersConf, OSError) as error:
        raise Failure(str(error)) from error


def load_configuration(path: Path | None) -> Settings:
    """Of the file, or the defaults. Raises Failure with EXIT_CONFIG."""
    from supervisor.config.config_file import default_settings, load_settings
    from supervisor.config.settings import SettingsError

    try:
        return default_settings() if path is None else load_settings(path)
    except SettingsError as error:
        raise Failure(str(error), EXIT_CONFIG) from None


@click.group()
def config() -> None:
    """Work with configuration files."""


@config.command()
@click.argument("file", type=_config_argument)
def check(file: Path) -> None:
    """Say whether FILE is a valid configuration; what is wrong names its path, and the exit code is 2."""
    load_configuration(file)
    click.echo(f"{file}: valid")


@click.command()
@click.option("--pods", is_flag=True, help="Terminate every pod first; otherwise containers keep running.")
@click.option("--timeout", callback=duration_s, default="5m", show_default=True, help="How long to wait for its end.")
@agent_options
@click.pass_context
def stop(ctx: click.Context, pods: bool, timeout: float) -> None:
    """Stop the agent, and wait until it is gone."""
    with agent(ctx) as client:
        pid = int(client.get("/version")["pid"])
        with _process(pid) as process:
            result = client.stop(pods)
            if result.failed:
                raise Failure(result.message)
            if not _has_ended(process, timeout):
                raise Failure(f"the agent (pid {pid}) has not ended within {timeout:g} s")
    click.echo("agent stopped")


@contextlib.contextmanager
def _process(pid: int) -> Iterator[int | None]:
    """A pidfd, which names this very process even when its pid is given out again; None when it cannot be seen."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)


def _has_ended(process: int | None, timeout_s: float) -> bool:
    if process is None:
        return True
    poller = select.poll()
    poller.register(process, select.POLLIN)
    return bool(poller.poll(timeout_s * 1000))


@click.command()
@click.option("--client", "client_only", is_flag=True, help="Do not ask the agent.")
@click.option("-o", "--output", type=click.Choice(["", "json", "yaml"]), default="", help="json or yaml.")
@agent_options
@click.pass_context
def version(ctx: click.Context, client_only: bool, output: str) -> None:
    """Show the versions of this command and of the agent."""
    from supervisor.cli.printers.documents import as_json, as_yaml

    found: dict[str, Any] = {"clientVersion": f"v{own_version()}"}
    try:
        if not client_only:
            with agent(ctx) as client:
                found["agent"] = client.get("/version") | {"socket": str(chosen_socket(ctx))}
    finally:
        documents = {"json": as_json, "yaml": as_yaml}
        click.echo(documents[output](found) if output else _version_lines(found), nl=False)


def _version_lines(found: dict[str, Any]) -> str:
    lines = [f"Client Version: {found['clientVersion']}"]
    about = found.get("agent")
    if about:
        health = "healthy" if about["runtimeHealthy"] else f"unhealthy: {about['runtimeMessage']}"
        lines += [
            f"Agent Version: {about['gitVersion']}",
            f"Instance: {about['instance']} (pid {about['pid']}, {about['socket']})",
            f"Node: {about['nodeName']}",
            f"Podman API Version: {about['runtimeVersion'] or 'unknown'} ({health})",
        ]
    return "".join(f"{line}\n" for line in lines)
