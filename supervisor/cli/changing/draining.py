"""The end of all pods of the node, in order, as the agent carries it out."""

from __future__ import annotations

import click

from ipc.host.text.json_types import Json
from supervisor.cli.options import Failure
from supervisor.cli.printers.containers import COMPLETED
from supervisor.client.http import AgentClient, pods_path
from supervisor.client.reflector import Reflector


def end_all_pods(client: AgentClient, timeout_s: float) -> None:
    """Drain the node, and tell of each pod that has ended. Raises Failure."""
    (node,) = client.get("/api/v1/nodes")["items"]
    name = node["metadata"]["name"]
    result = client.drain()
    if result.failed:
        raise Failure(result.message)
    click.echo(f"node/{name} cordoned")
    pods = Reflector(client, pods_path(None))
    pods.list()
    left = {uid for uid, pod in pods.objects.items() if not has_ended(pod)}

    def all_ended() -> bool:
        for uid in sorted(left):
            if has_ended(pod := pods.objects.get(uid)):
                left.discard(uid)
                click.echo(f"pod/{pod['metadata']['name']} evicted" if pod else "pod evicted")
        return not left

    if not pods.wait_until(all_ended, timeout_s):
        raise Failure(f"{len(left)} pods have not ended within {timeout_s:g} s: they go on ending")
    click.echo(f"node/{name} drained")


def has_ended(pod: Json | None) -> bool:
    """Nothing of it runs any more, or it is gone."""
    return pod is None or pod.get("status", {}).get("phase") in COMPLETED
