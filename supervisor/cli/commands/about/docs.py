"""`rootlet docs`: the documentation that is installed with the program."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from supervisor.cli.installed_files import installed_file, installed_pages
from supervisor.cli.options import Failure
from supervisor.cli.suggestions import did_you_mean

NO_PAGE: Final = ": 'rootlet docs' has their names"


@click.command()
@click.argument("page", default="")
def docs(page: str) -> None:
    """Print a PAGE of the documentation, or say which there are, and where they lie.

    \b
    rootlet docs
    rootlet docs probes
    """
    directory = installed_file("docs")
    pages = installed_pages()
    if not page:
        click.echo("".join(f"{name:<24} {_title(path)}\n" for name, path in pages.items() if "decisions" not in name))
        click.echo(f"They lie in {directory}; manifests of a demo in {installed_file('demo')},")
        click.echo(f"whose image {installed_file('demo-image')} makes.")
    elif (path := pages.get(page.removesuffix(".md"))) is not None:
        click.echo_via_pager(path.read_text())
    else:
        raise Failure(f'there is no page "{page}"{did_you_mean(page, pages) or NO_PAGE}', prefix="error: ")


def _title(path: Path) -> str:
    with path.open() as text:
        return next((line.lstrip("# ").rstrip() for line in text if line.startswith("#")), "")
