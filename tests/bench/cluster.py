"""Costs of being a node of a cluster: the way of a pod from the server to its start, and what an idle node takes.

    python -m tests.bench.cluster --pods 110 --idle 30

The server is the tests' own, in this process, so its part of the times and of the CPU's load is in them. The *first
action* for a pod is the begin of its first SyncPod in its worker, as a trace of the agent's own processes has it. Times
count from the watch event, which is when the server begins to write it, and from before the server takes the binding.
With ``--tokens`` pods have what a cluster gives every pod: a token, of which each asks the server, and a ConfigMap.
A trace needs the API server, which takes its part of the CPU.
The node's first request about a pod comes later: statuses wait for their turn within ``kubeAPIQPS``.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import psutil

from ipc.host.clock import monotonic
from ipc.link.shm.trace import Span, Trace
from supervisor.client.http import AgentClient
from tests.bench.default_periods import set_default_periods
from tests.bench.memory import PREFIX, Taken, taken_by
from tests.bench.own_storage import own_storage
from tests.bench.sleepers import load, sleepers
from tests.e2e.agent import Agent
from tests.e2e.cluster import Cluster, running_cluster
from tests.e2e.manifests import config_map
from tests.support.podman_service import IMAGE
from tests.support.servers.kube_api.requests import Request

READY_DEADLINE_S: Final = 300.0
SETTLE_S: Final = 10.0
"""After the start, before an idle node is looked at."""
SINGLE_PODS: Final = 20
"""Pods that are bound one after another to a node that does nothing else."""
PROGRAM: Final = ("/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done")


class Bound(NamedTuple):
    """A pod that was bound."""

    name: str
    at: float
    """Monotonic seconds, before the server took it."""


def bind(cluster: Cluster, manifests: Mapping[str, Any], *, tokens: bool) -> dict[str, Bound]:
    """Bind pods at once; by UID."""
    bound = {}
    for name, manifest in manifests.items():
        at = monotonic()
        uid = cluster.schedule(manifest, automount=tokens)["metadata"]["uid"]
        bound[uid] = Bound(name, at)
    return bound


def first_requests_s(cluster: Cluster, bound: Mapping[str, Bound]) -> list[float]:
    """From each pod's binding to the first request about it, sorted."""
    return sorted(max(cluster.patches(each.name)[0].at - each.at, 0.0) for each in bound.values())


def quantile(values: Sequence[float], part: float) -> float:
    return values[min(int(len(values) * part), len(values) - 1)]


def milliseconds(label: str, values: Sequence[float]) -> str:
    found = ", ".join(f"p{part * 100:g} {1000 * quantile(values, part):.1f} ms" for part in (0.5, 0.99))
    return f"{label}: {found} ({len(values)} pods)"


def peak_qps(requests: Sequence[Request]) -> int:
    """Most requests within one second, watches not counted."""
    return max(Counter(int(request.at) for request in requests if not request.is_watch).values(), default=0)


def peaks(requests: Sequence[Request]) -> str:
    """Events have a rate limit of their own (eventRecordQPS). Each limit is a bucket, which may be full."""
    events = [request for request in requests if "/events" in request.path]
    others = [request for request in requests if "/events" not in request.path]
    return f"{peak_qps(others)}, and {peak_qps(events)} of events"


class Stage(NamedTuple):
    """A span that begins when a pod has come so far."""

    words: str
    process: str
    span: str
    """Begin of the span's name."""


STAGES: Final = (
    Stage("its event is read", "node", "the server tells of it"),
    Stage("it goes up to the master", "node", "goes up"),
    Stage("the master takes it", "master", "handles PodUpdate"),
    Stage("its worker is told", "master", "its worker has it"),
    Stage("first action: its sync begins", "pods", "sync: sync"),
    Stage("the sync has come to the sandbox", "pods", "creating sandbox"),
    Stage("first mutating request: Podman is asked for the sandbox", "pods", "Podman: create pod"),
)


def way(since: Mapping[str, float], spans: Sequence[Span]) -> Iterator[str]:
    """How long after a moment each pod came to each stage; moments by UID."""
    for stage in STAGES:
        first: dict[str, float] = {}
        for span in spans:
            if span.pod in since and span.process.startswith(stage.process) and span.name.startswith(stage.span):
                first[span.pod] = min(span.begin, first.get(span.pod, span.begin))
        if first:
            yield milliseconds(f"    {stage.words}", sorted(at - since[uid] for uid, at in first.items()))


def start_pods(cluster: Cluster, agent: Agent, pods: int, *, tokens: bool) -> Iterator[str]:
    """Pods one at a time, then all at once."""
    single: list[float] = []
    for name, manifest in sleepers("one", SINGLE_PODS, PROGRAM, IMAGE).items():
        bound = bind(cluster, {name: manifest}, tokens=tokens)
        agent.until(functools.partial(cluster.is_ready, name), "the pod is ready", READY_DEADLINE_S)
        single += first_requests_s(cluster, bound)
    yield milliseconds("one at a time, binding to first request", sorted(single))
    client = AgentClient(agent.socket)
    client.start_trace()
    began, before = cluster.time(), _cpu_s(agent)
    bound = bind(cluster, sleepers("all", pods, PROGRAM, IMAGE), tokens=tokens)

    def are_ready() -> bool:
        client.get("/version")  # the API server leaves when it is idle, and a trace ends with it
        return cluster.ready() >= {each.name for each in bound.values()}

    agent.until(are_ready, "all pods are ready", READY_DEADLINE_S, 2.0)
    yield f"{pods} at once: all ready after {cluster.time() - began:.1f} s"
    yield milliseconds("  binding to first request", first_requests_s(cluster, bound))
    trace = msgspec.json.decode(client.take_trace(), type=Trace)
    told = cluster.first_told()
    yield "  from the watch event until"
    yield from way({uid: told[uid] for uid in bound}, trace.spans)
    yield "  from the binding until"
    yield from way({uid: each.at for uid, each in bound.items()}, trace.spans)
    yield f"  CPU, ms: {_spent(agent, before)}"
    patches = sorted(len(cluster.patches(each.name)) for each in bound.values())
    yield f"  status patches of a pod: p50 {quantile(patches, 0.5)}, most {patches[-1]}"
    yield f"  most requests in a second: {peaks(cluster.requests(lambda request: request.at >= began))}"


def processes(agent: Agent) -> list[psutil.Process]:
    master = psutil.Process(agent.process.pid)
    return [master, *(p for p in master.children(recursive=True) if p.name().startswith(PREFIX))]


def idle(agent: Agent, seconds: float) -> str:
    """CPU and memory of an agent that nobody asks for anything."""
    time.sleep(SETTLE_S)  # what was begun with the start ends meanwhile, or is part of being idle
    before = _cpu_s(agent)
    time.sleep(seconds)  # the time that is measured
    after = _cpu_s(agent)
    percent = 100 * sum(after[pid] - spent for pid, spent in before.items() if pid in after) / seconds
    taken = {process.name(): taken_by(process.pid) for process in processes(agent)}
    each = ", ".join(f"{name.removeprefix(PREFIX)} {of.pss:.1f}" for name, of in taken.items())
    return f"{percent:.2f} % of a CPU, {_sum(list(taken.values()))}\n  PSS: {each}"


def _cpu_s(agent: Agent) -> dict[int, float]:
    """By process: those that are there on demand may leave meanwhile."""
    return {process.pid: sum(process.cpu_times()[:2]) for process in processes(agent)}


def _spent(agent: Agent, before: Mapping[int, float]) -> str:
    """Milliseconds of CPU by process. New processes count whole."""
    names = {process.pid: process.name().removeprefix(PREFIX) for process in processes(agent)}
    spent = {names[pid]: 1000 * (after - before.get(pid, 0.0)) for pid, after in _cpu_s(agent).items() if pid in names}
    return ", ".join(f"{name} {ms:.0f}" for name, ms in spent.items())


def _sum(taken: Sequence[Taken]) -> str:
    return f"{sum(t.pss for t in taken):.1f} MiB PSS, {sum(t.anonymous for t in taken):.1f} MiB anonymous"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cluster", description=__doc__)
    parser.add_argument("--pods", type=int, default=110)
    parser.add_argument("--idle", type=float, default=30.0, help="seconds that an idle node is looked at, 0: not")
    parser.add_argument("--tokens", action="store_true", help="with a token and a ConfigMap in every pod")
    options = parser.parse_args()
    with own_storage() as run_name, contextlib.ExitStack() as stack:
        print(load(), flush=True)
        if options.idle:
            alone = Agent(f"{run_name}-alone")
            stack.callback(alone.close)
            set_default_periods(alone, {"idleTimeout": "8s"})
            alone.start()
            print(f"idle without a cluster: {idle(alone, options.idle)}", flush=True)
            alone.stop()
        cluster = stack.enter_context(running_cluster())
        node = Agent(f"{run_name}-node")
        stack.callback(node.close)
        set_default_periods(node, {"idleTimeout": "8s"})
        cluster.create(config_map("kube-root-ca.crt", **{"ca.crt": "PEM"}))
        cluster.join(node, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        node.start()
        if options.idle:
            print(f"idle in a cluster: {idle(node, options.idle)}", flush=True)
        for line in start_pods(cluster, node, options.pods, tokens=options.tokens):
            print(line, flush=True)


if __name__ == "__main__":
    main()
