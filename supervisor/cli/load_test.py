"""`rootlet load-test`."""

from __future__ import annotations

import secrets
import signal
from typing import TYPE_CHECKING, Final

import click

from supervisor.cli.options import DEFAULT_NAMESPACE, agent, agent_options, duration_s
from supervisor.load_test.generate import MAX_CONTAINERS, MAX_PODS, RUN_LABEL, Load

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

DEFAULT_IMAGE: Final = "localhost/rootlet-demo:latest"


@click.command(name="load-test")
@click.option("--pods", type=click.IntRange(1, MAX_PODS), required=True, help="How many pods.")
@click.option("--containers", type=click.IntRange(1, MAX_CONTAINERS), default=1, help="How many containers in each.")
@click.option("--image", default=DEFAULT_IMAGE, show_default=True, help="An image with /bin/sh and sleep.")
@click.option("--json", "as_json_wanted", is_flag=True, help="Print one JSON object.")
@click.option(
    "--timeout", callback=duration_s, default="10m", show_default=True, help="How long all may take to be Ready."
)
@agent_options
@click.pass_context
def load_test(ctx: click.Context, pods: int, containers: int, image: str, as_json_wanted: bool, timeout: float) -> int:
    """Start many pods on the running agent, measure, and take them away again.

    The exit code is 1 unless all of them became Ready and are gone afterwards.
    """
    from supervisor.load_test.report import as_json, as_text
    from supervisor.load_test.run import Run

    name = secrets.token_hex(3)
    load = Load(run=name, pods=pods, containers=containers, image=image, namespace=DEFAULT_NAMESPACE)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with agent(ctx) as client, ProgressBar() as progress:
        run = Run(client, load, progress)
        try:
            report = run.execute(timeout)
        except BaseException:
            if not run.cleaned:
                click.echo(f"rootlet: pods may be left: rootlet get pods -l {RUN_LABEL}={name}", err=True)
            raise
    click.echo((as_json if as_json_wanted else as_text)(report), nl=False)
    return 0 if report.passed else 1


class ProgressBar:
    """On stderr, when that is a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description:>6}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        console = Console(stderr=True)
        self._bar: Bar = Progress(*columns, console=console, disable=not console.is_terminal)
        self._tasks: dict[str, TaskID] = {}

    def show(self, phase: str, done: int, total: int) -> None:
        """One bar per phase."""
        if phase not in self._tasks:
            self._tasks[phase] = self._bar.add_task(phase, total=total)
        self._bar.update(self._tasks[phase], completed=done)

    def __enter__(self) -> ProgressBar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
