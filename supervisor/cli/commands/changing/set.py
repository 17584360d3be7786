"""`rootlet set`: single fields of applied objects."""

from __future__ import annotations

import click

from supervisor.cli.changing.changes import changing_options
from supervisor.cli.changing.containers import (
    change_containers,
    check_containers_of_images,
    containers_option,
    env_patch,
    image_patch,
    resources_patch,
)


@click.group()
def set() -> None:  # a command is named as people type it
    """Change images, variables or resources of applied pods."""


@set.command()
@click.argument("words", nargs=-1, metavar="(pod NAME | pod/NAME)... CONTAINER=IMAGE...")
@changing_options
@click.pass_context
def image(ctx: click.Context, /, words: tuple[str, ...], **options: object) -> None:
    """Give containers other images; the container `*` is every one.

    \b
    rootlet set image pod/web app=docker.io/library/nginx:1.27
    """
    change_containers(ctx, words, options, "image updated", image_patch, check=check_containers_of_images)


@set.command()
@click.argument("words", nargs=-1, metavar="(pod NAME | pod/NAME)... KEY=VALUE... KEY-...")
@click.option("-e", "--env", "variables", multiple=True, metavar="KEY=VALUE", help="A variable, as an argument is one.")
@click.option("--list", "listed", is_flag=True, help="Show the variables, and change nothing.")
@click.option("--overwrite/--no-overwrite", default=True, help="Change values that are there already.")
@containers_option
@changing_options
@click.pass_context
def env(ctx: click.Context, /, words: tuple[str, ...], variables: tuple[str, ...], **options: object) -> None:
    """Set variables of containers. KEY- takes one away.

    \b
    rootlet set env pod/web MODE=fast DEBUG-
    rootlet set env pod/web --list
    """
    change_containers(ctx, (*words, *variables), options, "env updated", env_patch)


@set.command()
@click.argument("words", nargs=-1, metavar="(pod NAME | pod/NAME)...")
@click.option("--limits", default="", metavar="cpu=N,memory=N", help="The most that each container may use.")
@click.option("--requests", default="", metavar="cpu=N,memory=N", help="What each container needs.")
@containers_option
@changing_options
@click.pass_context
def resources(ctx: click.Context, /, words: tuple[str, ...], **options: object) -> None:
    """Change requests and limits of containers, in place where their resizePolicy allows it. 0 takes one away.

    \b
    rootlet set resources pod/web -c app --limits=cpu=500m,memory=256Mi
    """
    change_containers(ctx, words, options, "resource requirements updated", resources_patch)
