"""`rootlet doctor`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click
import msgspec

from supervisor.cli.configuration import config_option, config_words, load_configuration
from supervisor.cli.options import document_option

_MARKS: Final = {"ok": "ok     ", "warning": "WARNING", "failed": "FAILED "}


@click.command()
@config_option
@document_option()
def doctor(config_path: Path | None, output: str) -> int:
    """Say what on this host or in the manifests would break, before it does. The exit code is 1 if anything would.

    The agent need not run; nothing is changed.
    """
    from ipc.host.clock import SystemClock
    from supervisor.cli.printers.documents import DOCUMENTS
    from supervisor.doctor.checks import check_host
    from supervisor.doctor.findings import Level, ok
    from supervisor.doctor.host import gather, with_answers
    from supervisor.doctor.manifests import check_manifests, read_manifests

    settings = load_configuration(config_path)
    facts = with_answers(gather(settings, os.environ), settings)
    pods, errors = read_manifests(settings, SystemClock())
    findings = [
        ok("configuration", config_words(config_path)),
        *check_host(facts, settings),
        *check_manifests(pods, errors, facts, settings),
    ]
    if output:
        click.echo(DOCUMENTS[output]({"findings": msgspec.to_builtins(findings)}), nl=False)
    else:
        for finding in findings:
            click.echo(f"{_MARKS[finding.level]}  {finding}")
    return 1 if any(finding.level is Level.FAILED for finding in findings) else 0
