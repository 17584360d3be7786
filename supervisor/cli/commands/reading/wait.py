"""`rootlet wait`: until pods exist no more, or are in a condition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from supervisor.cli.options import (
    FOREVER_S,
    POD_ALIASES,
    Failure,
    agent,
    agent_options,
    all_namespaces_option,
    duration_s,
    namespace_option,
    selector_option,
    split_pod_name,
)
from supervisor.client.http import PodKey, pod_key, pods_path
from supervisor.client.reflector import Reflector

Json = Mapping[str, Any]
Goal = Callable[[Json | None], bool]
"""Whether a pod, None when it is gone, is as it is waited for."""


def is_gone(pod: Json | None) -> bool:
    """``--for=delete``."""
    return pod is None


def parse_goal(text: str) -> Goal:
    """``delete``, ``condition=Ready`` or ``condition=Ready=False``. Raises click.BadParameter."""
    if text.lower() == "delete":
        return is_gone
    kind, _, rest = text.partition("=")
    name, _, value = rest.partition("=")
    if kind != "condition" or not name:
        raise click.BadParameter(f'unrecognized condition: "{text}"', param_hint="--for")
    return lambda pod: pod is not None and condition_is(pod, name, value or "True")


def condition_is(pod: Json, name: str, value: str) -> bool:
    """Names and values are compared without regard to case (wait.go, ConditionalWait)."""
    conditions = pod.get("status", {}).get("conditions", ())
    found = next((c for c in conditions if c["type"].casefold() == name.casefold()), None)
    return found is not None and found["status"].casefold() == value.casefold()


@click.command()
@click.argument("names", nargs=-1, metavar="[pod/NAME]...")
@click.option("--for", "goal", required=True, metavar="GOAL", help="delete, condition=NAME or condition=NAME=VALUE.")
@click.option("--all", "everything", is_flag=True, help="Every pod of the namespace.")
@click.option("--timeout", callback=duration_s, default="30s", show_default=True, help="How long; 0 looks once.")
@namespace_option
@all_namespaces_option
@selector_option
@agent_options
@click.pass_context
def wait(
    ctx: click.Context,
    names: tuple[str, ...],
    goal: str,
    everything: bool,
    timeout: float,
    namespace: str,
    all_namespaces: bool,
    selector: str,
) -> None:
    """Wait until pods are in a condition, or gone.

    \b
    rootlet wait --for=condition=Ready pod/web pod/db --timeout=60s
    rootlet wait --for=delete pod/web
    rootlet wait --for=condition=Ready --all
    """
    if names and names[0] in POD_ALIASES:
        names = names[1:]
    if bool(names) == bool(everything or selector):
        raise click.UsageError("name the pods, or give --all or a selector")
    reached = parse_goal(goal)
    with agent(ctx) as client:
        path = pods_path(None if all_namespaces else namespace)
        pods = Reflector(client, path, {"labelSelector": selector or None})
        pods.list()
        named = [(namespace, split_pod_name(name)) for name in names]
        wanted = named or [pod_key(pod) for pod in pods.objects.values()]
        if not wanted and reached is not is_gone:
            raise Failure("no matching resources found", prefix="error: ")
        wait_for(pods, wanted, reached, FOREVER_S if timeout < 0 else timeout)


def wait_for(pods: Reflector, wanted: Iterable[PodKey], reached: Goal, timeout_s: float) -> None:
    """Say of each pod when it is as wanted. Raises Failure for those that are not in time.

    A pod that does not exist has reached its end, silently, and will never be anything else.
    """
    existing = _by_key(pods)
    left = [key for key in wanted if key in existing]
    missing = [] if reached is is_gone else [key for key in wanted if key not in existing]
    problems = [f'Error from server (NotFound): pods "{name}" not found' for _, name in missing]

    def all_reached() -> bool:
        nonlocal left
        left = _report_reached(left, _by_key(pods), reached)
        return not left

    pods.wait_until(all_reached, timeout_s)
    problems += [f"error: timed out waiting for the condition on pods/{name}" for _, name in left]
    if problems:
        raise Failure("\n".join(problems), prefix="")


def _report_reached(left: list[PodKey], pods: Mapping[PodKey, Json], reached: Goal) -> list[PodKey]:
    """Print those that are as wanted now; the others."""
    done = [key for key in left if reached(pods.get(key))]
    click.echo("".join(f"pod/{name} condition met\n" for _, name in done), nl=False)
    return [key for key in left if key not in done]


def _by_key(pods: Reflector) -> dict[PodKey, Json]:
    return {pod_key(pod): pod for pod in pods.objects.values()}
