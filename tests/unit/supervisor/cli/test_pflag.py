"""Spellings of flags."""

from __future__ import annotations

import click
import pytest

from supervisor.cli.pflag import normalized


@click.command()
@click.argument("words", nargs=-1)
@click.option("-o", "--output")
@click.option("-w", "--watch", is_flag=True)
@click.option("--wait/--no-wait", default=True)
@click.option("-v", "--verbose", count=True)
def looking() -> None:
    pass


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("words", nargs=-1)
@click.option("-i", "--stdin", is_flag=True)
def running() -> None:
    pass


@click.group()
@click.option("-n", "--namespace")
def several() -> None:
    pass


several.add_command(looking, "looking")


@pytest.mark.parametrize(
    ("given", "understood"),
    [
        ("-o=name", "-oname"),
        ("-oname --output=x", "-oname --output=x"),
        ("-o --watch=false", "-o --watch=false"),
        ("--watch=true -w=T", "--watch -w"),
        ("--watch=false pod", "pod"),
        ("--wait=false", "--no-wait"),
        ("--wait=true", "--wait"),
        ("--watch=maybe", "--watch=maybe"),
        ("-- -o=name", "-- -o=name"),
        ("--other=x -x=y", "--other=x -x=y"),
    ],
)
def test_spellings(given: str, understood: str) -> None:
    assert normalized(looking, given.split()) == understood.split()


def test_what_belongs_to_somebody_else_stays() -> None:
    assert normalized(running, ["-i=true", "web", "-i=true"]) == ["-i", "web", "-i=true"]


def test_commands_within_commands() -> None:
    assert normalized(several, ["-n=test", "looking", "-o=name", "--watch=false"]) == ["-ntest", "looking", "-oname"]
