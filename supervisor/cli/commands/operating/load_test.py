"""`rootlet load-test`."""

from __future__ import annotations

import os
import secrets
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from supervisor.cli.installed_files import installed_file
from supervisor.cli.options import Failure, agent, agent_options, duration_s
from supervisor.load_test.generate import MAX_CONTAINERS, MAX_PODS, NAMESPACE, RUN_LABEL, Load

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar as Bar

DEFAULT_IMAGE: Final = "localhost/rootlet-demo:latest"
TENTHS: Final = 10


@click.command(name="load-test")
@click.option("--pods", type=click.IntRange(1, MAX_PODS), required=True, help="How many pods.")
@click.option("--containers", type=click.IntRange(1, MAX_CONTAINERS), default=1, help="How many containers in each.")
@click.option("--image", default=DEFAULT_IMAGE, show_default=True, help="An image with /bin/sh and sleep.")
@click.option("--json", "as_json_wanted", is_flag=True, help="Print one JSON object.")
@click.option(
    "--timeout", callback=duration_s, default="10m", show_default=True, help="How long all may take to be Ready."
)
@click.option(
    "--trace",
    "trace_file",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Also restart each pod once, and write what every process did for each pod there, for https://ui.perfetto.dev.",
)
@click.option(
    "--report",
    "report_file",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Also write the figures there as one HTML page with plots.",
)
@click.option("--floor", is_flag=True, help="First start the same pods by bare calls of Podman, to compare with.")
@agent_options
@click.pass_context
def load_test(
    ctx: click.Context,
    pods: int,
    containers: int,
    image: str,
    as_json_wanted: bool,
    timeout: float,
    trace_file: Path | None,
    report_file: Path | None,
    floor: bool,
) -> int:
    """Start many pods on the running agent, in a namespace of their own, measure, and take them away again.

    The exit code is 1 unless all of them became Ready and are gone afterwards.
    """
    from supervisor.load_test.html_report import as_html
    from supervisor.load_test.measure import WITHOUT_IMAGE
    from supervisor.load_test.report import as_json, as_text
    from supervisor.load_test.run import Run

    for file in (trace_file, report_file):
        if file is not None and not file.parent.is_dir():
            raise Failure(f"{file}: there is no directory {file.parent}")
    name = secrets.token_hex(3)
    load = Load(run=name, pods=pods, containers=containers, image=image, namespace=NAMESPACE)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with agent(ctx) as client, ProgressBar() as progress:
        run = Run(client, load, progress, traced=trace_file is not None, floored=floor)
        if refusal := run.refusal():
            raise Failure(refusal)
        try:
            report = run.execute(timeout)
        except BaseException:
            if not run.cleaned:
                click.echo(
                    f"rootlet: pods may be left: rootlet get pods -n {NAMESPACE} -l {RUN_LABEL}={name}", err=True
                )
            raise
    if trace_file is not None:
        trace_file.write_bytes(run.trace)
    if report_file is not None:
        report_file.write_text(as_html(report))
    click.echo((as_json if as_json_wanted else as_text)(report), nl=False)
    if image == DEFAULT_IMAGE and any(reason in each for each in report.problems for reason in WITHOUT_IMAGE):
        click.echo(f"rootlet: {installed_file('demo-image')} makes this image; or name another with --image", err=True)
    return 0 if report.passed else 1


class ProgressBar:
    """On stderr: a bar on a terminal, elsewhere a line for each tenth of a phase."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._phase = ""
        self._tenths = 0
        self._bar: Bar[int] | None = None

    def show(self, phase: str, done: int, total: int) -> None:
        """One bar per phase."""
        if not self._is_terminal:
            self._tell(phase, done, total)
            return
        if self._bar is None or phase != self._phase:
            self._end()
            self._phase = phase
            self._bar = click.progressbar(
                length=total, label=f"{phase:>6}", show_pos=True, show_percent=False, file=sys.stderr
            )
            self._bar.render_progress()
        self._bar.update(done - self._bar.pos)

    def _tell(self, phase: str, done: int, total: int) -> None:
        tenths = TENTHS * done // total
        if (phase, tenths) != (self._phase, self._tenths):
            self._phase, self._tenths = phase, tenths
            click.echo(f"{phase}: {done} of {total}", err=True)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.render_finish()
