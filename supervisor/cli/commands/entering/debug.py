"""`rootlet debug`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from supervisor.cli.options import Failure, agent, agent_options, chosen_socket, namespace_option, split_pod_name


@click.command()
@click.argument("pod", metavar="POD")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND [ARGUMENT]...]")
@click.option("--image", default="", metavar="IMAGE", help="Image of the container to look with.")
@click.option("--target", default="", metavar="CONTAINER", help="See the processes of this container.")
@click.option("-c", "--container", default="", metavar="NAME", help="Name of the new container.")
@click.option("--copy-to", default="", metavar="POD", help="Leave the pod alone, and look at a copy of this name.")
@click.option("--replace", is_flag=True, help="With --copy-to: delete the pod itself.")
@click.option("--set-image", multiple=True, metavar="NAME=IMAGE", help="With --copy-to: images of its containers.")
@click.option(
    "--share-processes/--no-share-processes",
    default=True,
    show_default=True,
    help="With --copy-to: containers see each other's processes.",
)
@click.option("--keep-labels", is_flag=True, help="With --copy-to: the copy has the pod's labels.")
@click.option("--keep-annotations", is_flag=True, help="With --copy-to: the copy has the pod's annotations.")
@click.option("--keep-liveness", is_flag=True, help="With --copy-to: the copy has the liveness probes.")
@click.option("--keep-readiness", is_flag=True, help="With --copy-to: the copy has the readiness probes.")
@click.option("--keep-startup", is_flag=True, help="With --copy-to: the copy has the startup probes.")
@click.option("--keep-init-containers/--no-keep-init-containers", default=True, help="With --copy-to: and these.")
@click.option("--env", "variables", multiple=True, metavar="KEY=VALUE", help="A variable of the new container.")
@click.option("--image-pull-policy", default="", metavar="POLICY", help="Always, IfNotPresent or Never.")
@click.option("--arguments-only", is_flag=True, help="What follows -- are arguments of the image's own command.")
@click.option("--attach", is_flag=True, help="Wait until the container runs, and join its streams.")
@click.option("-i", "--stdin", is_flag=True, help="Keep its input open; this joins its streams, too.")
@click.option("-t", "--tty", is_flag=True, help="Its streams are a terminal.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what the container prints.")
@namespace_option
@agent_options
@click.pass_context
def debug(ctx: click.Context, /, pod: str, command: Sequence[str], namespace: str, **options: object) -> int:
    """Look at a pod with a container of another image: within it, or within a copy.

    Within the pod it is an ephemeral container, which stays listed until the pod ends.

    \b
    rootlet debug web -it --image=docker.io/library/busybox --target=app
    rootlet debug web -it --image=docker.io/library/busybox --copy-to=web-debug
    """
    from supervisor.cli.streams.debugging import Debugging, begin_debugging, join

    wanted = Debugging.of(split_pod_name(pod), namespace, command, options)
    if not wanted.image and not (wanted.copy_to and (wanted.set_image or wanted.container)):
        raise Failure("you must specify --image", prefix="error: ")
    with agent(ctx) as client:
        name, container = begin_debugging(client, wanted)
        if not (wanted.attach or wanted.stdin):
            return 0
        return join(client, chosen_socket(ctx), wanted, name, container)
