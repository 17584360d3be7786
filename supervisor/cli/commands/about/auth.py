"""`rootlet auth`: who the agent takes this user for."""

from __future__ import annotations

import grp
import os
import pwd

import click

from ipc.host.text.json_types import Json
from supervisor.cli.options import agent, agent_options, document_option
from supervisor.cli.printers.tables import TablePrinter


@click.group()
def auth() -> None:
    """Ask about access to the agent."""


@auth.command()
@document_option(metavar="FORMAT")
@agent_options
@click.pass_context
def whoami(ctx: click.Context, output: str) -> None:
    """Show the user for whom the agent answers: whoever may open its admin socket may do everything."""
    from supervisor.cli.printers.documents import DOCUMENTS

    with agent(ctx) as client:
        client.get("/version")
    user = _user()
    if output:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}
        click.echo(DOCUMENTS[output]({**review, "status": {"userInfo": user}}), nl=False)
        return
    rows = [("Username", user["username"]), ("UID", user["uid"]), ("Groups", f"[{' '.join(user['groups'])}]")]
    click.echo(TablePrinter(("ATTRIBUTE", "VALUE")).format(rows), nl=False)


def _user() -> Json:
    """This process's, by name where there is one."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return {"username": name, "uid": str(uid), "groups": [_group(gid) for gid in os.getgroups()]}


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
