"""Attacks by the API server of the cluster that a node has joined, beside a canary of that node."""

from __future__ import annotations

import base64
import functools
import os
import tempfile
from pathlib import Path
from typing import Any, Final

from ipc.host.clock import wall
from tests.attack.attack import Attack, all_of
from tests.attack.ground import Ground
from tests.attack.run import carry_out
from tests.e2e.cluster import NODE, Cluster, running_cluster
from tests.e2e.cluster_claims import bind, pending
from tests.e2e.manifests import config_map, container, pod
from tests.support.servers.kube_api.lies import HUGE, LIES, Endpoint, Liar, Lie
from tests.support.servers.kube_api.server import KubeApiServer

RELIST_S: Final = 180.0
"""How long a node may take to have read its lists again: as upstream, it waits for longer after each failure."""
ALL_LIES_S: Final = 240.0
PATIENT: Final = tuple(lie for lie in LIES if lie.name in ("null", "numbers for names", "no UTF-8", "page", "cut"))
"""Lies where a node waits for long before it asks again."""
FEWER: Final[dict[Endpoint, tuple[Lie, ...]]] = {
    ("create", "events"): PATIENT[:2],
    ("patch", "events"): PATIENT[:2],
    ("get", "persistentvolumeclaims"): PATIENT,
    ("get", "persistentvolumes"): PATIENT[:2],
    ("list", "pods"): (),
    ("list", "services"): (),
    ("list", "nodes"): (),
    ("list", "runtimeclasses"): (),
    ("list", "configmaps"): (),
    ("list", "secrets"): (),
    ("get", "nodes"): (*LIES, HUGE),
}
LIED_TO: Final[frozenset[Endpoint]] = frozenset(
    {
        ("get", "nodes"),
        ("patch", "nodes/status"),
        ("update", "leases"),
        ("create", "pods"),
        ("delete", "pods"),
        ("patch", "pods/status"),
        ("create", "events"),
        ("create", "serviceaccounts/token"),
        ("get", "persistentvolumeclaims"),
        ("watch", "nodes"),
        ("watch", "pods"),
        ("watch", "configmaps"),
        ("watch", "secrets"),
        ("watch", "services"),
    }
)
"""Everything that a node asks for in its life."""
CLAIM: Final = "data"
STATIC: Final = ("static-a", "static-b", "static-c")
BOUND: Final = ("bound-a", "bound-b", "bound-c")
PASSWORD: Final = base64.b64encode(b"hunter2-hunter2").decode()
UNEXPECTED: Final = "unexpected error"


def _needy(name: str) -> dict[str, Any]:
    """A pod that refers to something of each kind."""
    password = {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}}
    main = container(env=[password], volumeMounts=[{"name": "d", "mountPath": "/d"}])
    return pod(name, main, volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": CLAIM}}])


def _objects(cluster: Cluster, directory: Path) -> None:
    """Everything that the bound pods refer to."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": {"password": PASSWORD}}
    cluster.create(config_map("kube-root-ca.crt", **{"ca.crt": "PEM"}), secret)
    (directory / CLAIM).mkdir(exist_ok=True)
    pending(cluster, CLAIM)
    bind(cluster, CLAIM, hostPath={"path": str(directory / CLAIM), "type": ""})


def _told(cluster: Cluster) -> set[Endpoint]:
    """Endpoints that have told all their lies."""

    def told(server: KubeApiServer) -> set[Endpoint]:
        liar = server.faults.liar
        return {one for one, number in liar.told.items() if number >= len(liar.lies_of(one))}

    return cluster.do(told)


def _lie(cluster: Cluster) -> None:
    def begin(server: KubeApiServer) -> None:
        server.faults.liar = Liar(LIES, FEWER)

    cluster.do(begin)


def _lies(cluster: Cluster, ground: Ground) -> None:
    """Every endpoint tells every lie once. Pods that were bound meanwhile run then, and everything is told."""
    _objects(cluster, ground.directory)
    ground.write(*(pod(name) for name in STATIC))
    ground.until(lambda: all(_round(cluster, name) == "" for name in STATIC), "there are mirrors")
    _lie(cluster)
    for name in BOUND:
        cluster.schedule(_needy(name), automount=True)
    ground.write(*(pod(name, labels={"round": "1"}) for name in STATIC))
    ground.until(lambda: _told(cluster) >= LIED_TO, f"all lies: {LIED_TO - _told(cluster)}", ALL_LIES_S)
    cluster.do(lambda server: server.faults.relent())
    lease = cluster.lease_version()
    ground.until(lambda: set(BOUND) <= cluster.ready(), "the pods of the cluster are ready")
    ground.until(lambda: all(_round(cluster, name) == "1" for name in STATIC), "the mirrors are the newest")
    ground.until(lambda: cluster.lease_version() > lease, "the lease is renewed")
    ground.until(lambda: bool(cluster.events(BOUND[0])), "events are told")


def _lists(cluster: Cluster, ground: Ground) -> None:
    """Watches begin anew with a list, in which lies stand beside the pods. They stay, and others come."""

    def begin(server: KubeApiServer) -> None:
        server.api.watch_list = False
        server.faults.liar = Liar(in_lists=True)
        server.faults.expire()

    cluster.do(begin)
    ground.until(lambda: _has_told(cluster, ("list", "pods")), "the pods are listed anew", RELIST_S)
    cluster.schedule(pod("beside-lies"))
    ground.until(lambda: cluster.is_ready("beside-lies"), "a pod is ready beside lies", RELIST_S)
    assert set(BOUND) <= cluster.ready()
    cluster.do(lambda server: server.faults.relent())


def _end(cluster: Cluster, ground: Ground) -> None:
    names = (*BOUND, "beside-lies")
    for name in names:
        cluster.delete(name)
    ground.until(lambda: not {*names} & cluster.pods().keys(), "the pods are gone", RELIST_S)
    log = ground.agent.log_text()
    assert UNEXPECTED not in log, [line for line in log.splitlines() if UNEXPECTED in line]
    assert "hunter2" not in log


def _has_told(cluster: Cluster, endpoint: Endpoint) -> bool:
    return cluster.do(lambda server: server.faults.liar.told[endpoint] > 0)


def _round(cluster: Cluster, name: str) -> str | None:
    """The label of a static pod's mirror; None without a mirror."""
    mirror = cluster.pods().get(f"{name}-{NODE}")
    return None if mirror is None else str(mirror["metadata"].get("labels", {}).get("round", ""))


def _node_of_a_liar(_ground: Ground) -> None:
    """A node of its own, with a canary of its own."""
    with running_cluster() as cluster, tempfile.TemporaryDirectory(prefix="rl-attack-", dir="/tmp") as directory:
        node = Ground(f"test-{os.getpid()}-{int(wall())}", Path(directory))
        try:
            cluster.join(node.agent, node.directory, nodeStatusReportFrequency="1s")
            node.start()
            strikes = all_of(*(functools.partial(strike, cluster) for strike in (_lies, _lists, _end)))
            outcome = carry_out(Attack("lies", "", "", strikes), node)
        finally:
            node.close()
    print(outcome)
    assert not outcome.faults, outcome


ATTACKS: Final = (
    Attack(
        "hostile-cluster",
        "The API server of a node's cluster answers null, wrong types and bytes that are no text to everything.",
        "be told late of pods",
        _node_of_a_liar,
        is_quick=False,
    ),
)
