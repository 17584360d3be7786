"""Objects of a node's pods, read from a server: who is watched, what the master is told, tokens and their renewal."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from ipc.host.clock import Instant, SystemClock
from ipc.k8s.api.annotations import API_SOURCE, CONFIG_SOURCE
from ipc.k8s.api.decode import decode_server_pod
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.volume import HostPathVolumeSource
from ipc.k8s.kubeconfig.decode import decode_kubeconfig
from ipc.k8s.podobjects.cluster_values import NO_VALUES, ClusterValues
from ipc.k8s.podobjects.pod_claims import PodClaim
from ipc.link.messages.cluster import ObjectStated, ObjectWithdrawn, PodValuesStated
from ipc.link.wire.credential_provider import CredentialProvider, TokenAttributes
from tests.support.servers.kube_api.requests import Request
from tests.support.servers.kube_api.server import KubeApiServer
from tests.support.servers.kube_api.store import Store
from workers.cluster.objects import objects as objects_module
from workers.cluster.objects.objects import Message, Objects
from workers.kubeclient.client import ApiClient
from workers.kubeclient.rate_limit import RateLimit

DEADLINE_S: Final = 30.0
DAY_S: Final = 86_400.0


class MovableClock:
    """The host's clock, set forward."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def now(self) -> Instant:
        now = SystemClock().now()
        return Instant(mono=now.mono, wall=now.wall + self.ahead_s)


class Node:
    """Objects, and everything that the master was told."""

    def __init__(self, server: KubeApiServer, client: ApiClient) -> None:
        self.server = server
        self.clock = MovableClock()
        self.told: list[Message] = []
        self._news = asyncio.Event()
        self._client = client
        self.objects = Objects(client, self._tell, self.clock)
        self.running = [asyncio.ensure_future(self.objects.run())]

    def _tell(self, message: Message) -> None:
        self.told.append(message)
        self._news.set()

    def begin_with(self, *providers: CredentialProvider) -> None:
        """Another life, with these providers of logins; beside the first."""
        self.objects = Objects(self._client, self._tell, self.clock, providers=providers)
        self.running.append(asyncio.ensure_future(self.objects.run()))

    def schedule(self, name: str, **spec: Any) -> Pod:
        manifest = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x"}]} | spec}
        return decode_server_pod(self.server.schedule(manifest))

    async def until(self, test: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not test():
                self._news.clear()
                await self._news.wait()

    def stated(self) -> dict[str, Any]:
        """The newest content of every ConfigMap and Secret that is there."""
        found: dict[str, Any] = {}
        for message in self.told:
            if isinstance(message, ObjectStated):
                item = message.config_map or message.secret
                if item is not None:
                    found[item.metadata.name] = dict(item.data)
            elif isinstance(message, ObjectWithdrawn):
                found.pop(message.name, None)
        return found

    def values(self, uid: str) -> ClusterValues:
        told = [message for message in self.told if isinstance(message, PodValuesStated) and message.uid == uid]
        return (told[-1].values if told else None) or NO_VALUES

    def watches(self, path: str) -> list[Request]:
        return [found for found in self.server.requests if found.is_watch and path in found.path]


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with KubeApiServer() as server:
        server.store.create({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}, "spec": {}})
        path = server.kubeconfig(tmp_path)
        access = decode_kubeconfig(path.read_bytes(), str(tmp_path))
        client = ApiClient(access, SystemClock(), user_agent="test", limit=RateLimit(1000.0, 1000))
        made = Node(server, client)
        yield made
        for running in made.running:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
        client.close()


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data}


def env_from(*names: str) -> dict[str, Any]:
    sources = [{"configMapRef": {"name": name}} for name in names]
    return {"containers": [{"name": "c", "image": "x", "envFrom": sources}]}


async def test_pod_waits_for_its_objects_and_hears_of_changes(node: Node) -> None:
    store = node.server.store
    store.create(config_map("a", key="one"))
    store.create({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}, "data": {"key": "c2VjcmV0"}})
    volumes = [{"name": "v", "secret": {"secretName": "s"}}]
    pod = node.schedule("web", **env_from("a", "missing"), volumes=volumes)
    await node.objects.need(pod)
    assert node.stated() == {"a": {"key": "one"}, "s": {"key": b"secret"}}
    watch = node.watches("/configmaps")[0]
    assert watch.path == "/api/v1/namespaces/default/configmaps"
    assert watch.query["fieldSelector"].startswith("metadata.name=")
    store.create(config_map("missing", late="yes"))
    store.update(config_map("a", key="two"))
    await node.until(lambda: node.stated().get("a") == {"key": "two"} and "missing" in node.stated())
    store.delete("configmaps", "default", "a")
    await node.until(lambda: "a" not in node.stated())


async def test_one_watch_for_all_pods_until_the_last_has_gone(node: Node) -> None:
    node.server.store.create(config_map("a", key="one"))
    pods = [node.schedule(name, **env_from("a")) for name in ("one", "two")]
    for pod in pods:
        await node.objects.need(pod)
    assert len(node.watches("/configmaps")) == 1
    node.objects.forget(pods[0].metadata.uid)
    assert node.stated() == {"a": {"key": "one"}}
    node.objects.forget(pods[1].metadata.uid)
    assert node.stated() == {}


async def test_immutable_object_is_not_watched_any_longer(node: Node) -> None:
    node.server.store.create(config_map("fixed", key="one") | {"immutable": True})
    pod = node.schedule("web", **env_from("fixed"))
    await node.objects.need(pod)
    assert node.stated() == {"fixed": {"key": "one"}}
    watch = node.watches("/configmaps")[0]
    await node.server.ended(watch)
    assert node.stated() == {"fixed": {"key": "one"}}


async def test_server_that_does_not_answer_holds_no_pod_up_for_ever(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects_module, "PATIENCE_S", 0.2)
    node.server.store.create(config_map("a", key="one"))
    pod = node.schedule("web", **env_from("a"))
    node.server.faults.partition()
    await node.objects.need(pod)
    assert node.stated() == {}
    node.server.faults.heal()
    await node.until(lambda: node.stated() == {"a": {"key": "one"}})


async def test_variables_of_services_follow_them(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects_module, "SETTLING_S", 0.01)
    node.server.store.create(service("kubernetes", "10.0.0.1"))
    linked, alone = node.schedule("linked"), node.schedule("alone", enableServiceLinks=False)
    for pod in (linked, alone):
        await node.objects.need(pod)
    assert node.values(linked.metadata.uid).service_variables["KUBERNETES_SERVICE_HOST"] == "10.0.0.1"
    node.server.store.create(service("db", "10.0.0.2"))
    await node.until(lambda: "DB_SERVICE_HOST" in node.values(linked.metadata.uid).service_variables)
    assert "DB_SERVICE_HOST" not in node.values(alone.metadata.uid).service_variables
    assert node.watches("/services")[0].query["fieldSelector"] == "spec.clusterIP!=None"


def service(name: str, address: str) -> dict[str, Any]:
    spec = {"clusterIP": address, "ports": [{"port": 443, "name": "https", "protocol": "TCP"}]}
    return {"kind": "Service", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec}


def token_volume(**source: Any) -> list[dict[str, Any]]:
    return [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"} | source}]}}]


async def test_token_is_bound_to_the_pod_and_renewed(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    pod = node.schedule("web", volumes=token_volume(audience="vault", expirationSeconds=600))
    await node.objects.need(pod)
    uid = pod.metadata.uid
    (token,) = node.values(uid).tokens
    (request,) = [found for found in node.server.requests if found.path.endswith("/token")]
    assert request.path == "/api/v1/namespaces/default/serviceaccounts/default/token"
    assert request.json["spec"] == {
        "audiences": ["vault"],
        "expirationSeconds": 600,
        "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "web", "uid": uid},
    }
    user = node.server.tokens.user(token.token, "vault")
    assert user is not None
    assert user.name == "system:serviceaccount:default:default"
    assert token.token not in repr(node.told)


async def test_no_token_is_asked_for_a_pod_that_the_node_refuses(node: Node) -> None:
    refused, taken, over = (node.schedule(name, volumes=token_volume()) for name in ("refused", "taken", "over"))
    over = msgspec.structs.replace(over, status=msgspec.structs.replace(over.status, phase="Succeeded"))
    assert not node.objects.follow(refused, is_new=True)
    assert not node.objects.follow(taken, is_new=True)
    node.objects.decided(refused.metadata.uid, is_refused=True)
    node.objects.decided(taken.metadata.uid, is_refused=False)
    for each in (over, refused, taken):
        await node.objects.need(each)
    asked = [found.json["spec"]["boundObjectRef"]["uid"] for found in node.server.requests if "token" in found.path]
    assert asked == [taken.metadata.uid]


async def test_token_of_a_clock_that_is_ahead_is_asked_for_again(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that has slept: its clock stands behind the time of renewal when it looks again."""
    monkeypatch.setattr("workers.cluster.objects.tokens.LONGEST_SLEEP_S", 0.02)
    pod = node.schedule("web", volumes=token_volume(expirationSeconds=3600))
    await node.objects.need(pod)
    (first,) = node.values(pod.metadata.uid).tokens
    node.clock.ahead_s = 3000.0
    await node.until(lambda: node.values(pod.metadata.uid).tokens != (first,))
    node.clock.ahead_s = 0.0
    (second,) = node.values(pod.metadata.uid).tokens
    assert second.token
    assert second.token != first.token


async def test_pod_without_a_token_says_why_and_gets_it_later(node: Node) -> None:
    node.server.store.delete("serviceaccounts", "default", "default")
    pod = node.schedule("web", volumes=token_volume())
    await node.objects.need(pod)
    (token,) = node.values(pod.metadata.uid).tokens
    assert token.problem == 'failed to fetch token: serviceaccounts "default" not found'
    account = {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"}}
    node.server.store.create(account)
    await node.until(lambda: bool(node.values(pod.metadata.uid).tokens[0].token))
    node.objects.forget(pod.metadata.uid)
    assert node.values(pod.metadata.uid) == NO_VALUES


def claim(name: str, **status: Any) -> dict[str, Any]:
    metadata = {"name": name, "finalizers": ["kubernetes.io/pvc-protection"]}
    return {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": metadata, "spec": {}, "status": status}


def bind(store: Store, name: str, **source: Any) -> None:
    """As the cluster's controller does, with what it writes."""
    uid = store.get("persistentvolumeclaims", "default", name)["metadata"]["uid"]
    spec = source | {"persistentVolumeReclaimPolicy": "Delete", "claimRef": {"name": name, "uid": uid}}
    status = {"phase": "Bound", "lastPhaseTransitionTime": "2026-11-26T10:00:01Z"}
    volume = {"kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": f"pv-{name}"}}
    store.create(volume | {"spec": spec, "status": status})
    conditions = [{"type": "FileSystemResizePending", "status": "True", "lastProbeTime": None}]
    store.update(claim(name, phase="Bound", conditions=conditions) | {"spec": {"volumeName": f"pv-{name}"}})


def using(name: str) -> dict[str, Any]:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}


async def test_claim_is_told_when_it_is_bound(node: Node) -> None:
    store = node.server.store
    store.create(claim("data", phase="Pending"))
    pod, absent = node.schedule("web", **using("data")), node.schedule("absent", **using("nowhere"))
    for each in (pod, absent):
        await node.objects.need(each)

    def mounted(of: Pod = pod) -> PodClaim:
        return node.values(of.metadata.uid).claims["v"]

    assert mounted() == PodClaim(problem="error processing PVC default/data: PVC is not bound")
    words = 'failed to fetch PVC from API server: persistentvolumeclaims "nowhere" not found'
    assert mounted(absent) == PodClaim(problem=f"error processing PVC default/nowhere: {words}")
    bind(store, "data", hostPath={"path": "/srv", "type": ""})
    await node.until(lambda: not mounted().problem)
    assert mounted() == PodClaim(volume="pv-data", host_path=HostPathVolumeSource(path="/srv", type=""))
    assert not [message for message in node.told if isinstance(message, ObjectStated)], "no document of anybody"


async def test_volume_of_another_kind_is_told_in_words(node: Node) -> None:
    node.server.store.create(claim("data"))
    bind(node.server.store, "data", csi={"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1", "volumeAttributes": {}})
    pod = node.schedule("web", **using("data"))
    await node.objects.need(pod)
    assert "is of kind csi: a host without root mounts only" in node.values(pod.metadata.uid).claims["v"].problem


async def test_claim_of_an_ephemeral_volume_is_the_pods_own(node: Node) -> None:
    store = node.server.store
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": template}}
    pods = [_of_cluster(node.schedule(name, volumes=[volume])) for name in ("mine", "stolen")]
    for pod in pods:
        store.create(claim(f"{pod.metadata.name}-v"))
        bind(store, f"{pod.metadata.name}-v", local={"path": "/srv"})
    found = store.get("persistentvolumeclaims", "default", "mine-v")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "mine", "uid": pods[0].metadata.uid, "controller": True}
    found["metadata"]["ownerReferences"] = [owner]
    store.update(found)
    for pod in pods:
        await node.objects.need(pod)
    mine, stolen = (node.values(pod.metadata.uid).claims["v"] for pod in pods)
    assert mine == PodClaim(volume="pv-mine-v", local_path="/srv")
    assert stolen.problem.endswith("was not created for pod default/stolen (pod is not owner)")


def _of_cluster(pod: Pod) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, annotations={CONFIG_SOURCE: API_SOURCE})
    return msgspec.structs.replace(pod, metadata=metadata)


async def test_server_that_is_away_takes_no_volume_and_gives_none(node: Node) -> None:
    """A pod keeps what it was given; one that comes then waits, and gets its volume when the server says more. What is
    refused is known at once; a silence lasts for the request's deadline."""
    store = node.server.store
    store.create(claim("data"))
    bind(store, "data", local={"path": "/srv"})
    early, late = node.schedule("early", **using("data")), node.schedule("late", **using("data"))
    await node.objects.need(early)
    node.server.faults.answer(403, "GET", "/persistentvolumeclaims/data", times=1000)
    await node.objects.need(late)
    there = PodClaim(volume="pv-data", local_path="/srv")
    words = "error processing PVC default/data: failed to fetch PVC from API server: fault 403"
    assert node.values(late.metadata.uid).claims["v"] == PodClaim(problem=words)
    assert node.values(early.metadata.uid).claims["v"] == there
    node.server.faults.relent()
    await node.until(lambda: node.values(late.metadata.uid).claims["v"] == there)


async def test_claim_of_a_name_that_was_used_before_is_read_again(node: Node) -> None:
    """A pod that has ended and is not deleted yet protects no claim."""
    store = node.server.store
    store.create(claim("data"))
    bind(store, "data", local={"path": "/old"})
    await node.objects.need(node.schedule("first", **using("data")))
    store.delete("persistentvolumeclaims", "default", "data")
    store.delete("persistentvolumes", "", "pv-data")
    store.create(claim("data"))
    bind(store, "data", local={"path": "/new"})
    second = node.schedule("second", **using("data"))
    await node.objects.need(second)
    assert node.values(second.metadata.uid).claims["v"].local_path == "/new"


async def test_trust_anchors(node: Node) -> None:
    pem = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"
    kinds = {"kind": "ClusterTrustBundle", "apiVersion": "certificates.k8s.io/v1beta1"}
    node.server.store.create(kinds | {"metadata": {"name": "ca"}, "spec": {"trustBundle": pem}})
    sources = [{"clusterTrustBundle": {"name": "ca", "path": "ca.pem"}}]
    pod = node.schedule("web", volumes=[{"name": "t", "projected": {"sources": sources}}])
    await node.objects.need(pod)
    await node.until(lambda: bool(node.values(pod.metadata.uid).trust_anchors[0].pem))
    assert node.values(pod.metadata.uid).trust_anchors[0].pem == pem


async def test_runtime_classes_are_told(node: Node) -> None:
    found = {"kind": "RuntimeClass", "apiVersion": "node.k8s.io/v1", "metadata": {"name": "fast"}, "handler": "crun"}
    node.server.store.create(found)
    await node.until(lambda: any(isinstance(told, ObjectStated) and told.runtime_class for told in node.told))
    node.server.store.delete("runtimeclasses", "", "fast")
    await node.until(lambda: isinstance(node.told[-1], ObjectWithdrawn))


async def test_restored_backup_is_read_anew(node: Node) -> None:
    """A watch from a version that the restored server does not have yet says nothing for a long time."""
    store = node.server.store
    store.create(config_map("a", key="old"))
    store.create(config_map("fixed", key="old") | {"immutable": True})
    pod = node.schedule("web", **env_from("a", "fixed"))
    backup = store.revision
    store.update(config_map("a", key="new"))
    await node.objects.need(pod)
    assert node.stated() == {"a": {"key": "new"}, "fixed": {"key": "old"}}
    node.server.store.restore(backup)
    node.objects.begin_anew()
    await node.until(lambda: node.stated() == {"a": {"key": "old"}, "fixed": {"key": "old"}})


async def test_account_of_a_pod_is_told_where_a_provider_asks_for_it(node: Node, tmp_path: Path) -> None:
    tokens = TokenAttributes(audience="shop", requires_account=True, optional_annotations=("shop/team",))
    provider = CredentialProvider(
        name="shop",
        program="/shop",
        api_version="credentialprovider.kubelet.k8s.io/v1",
        match_images=("shop.example",),
        default_cache_s=0.0,
        tokens=tokens,
    )
    node.begin_with(provider)
    account = node.server.store.get("serviceaccounts", "default", "default")
    account["metadata"]["annotations"] = {"shop/team": "red", "other": "x"}
    uid = node.server.store.update(account)["metadata"]["uid"]
    mine = node.schedule("mine", containers=[{"name": "c", "image": "shop.example/a/b:1"}])
    other = node.schedule("other")
    for pod in (mine, other):
        await node.objects.need(pod)
    told = node.values(mine.metadata.uid).account
    assert told is not None
    assert (told.namespace, told.name, told.uid, told.annotations) == (
        "default",
        "default",
        uid,
        (("shop/team", "red"),),
    )
    ((audience, token),) = told.tokens
    user = node.server.tokens.user(token, audience)
    assert user is not None
    assert (audience, user.name) == ("shop", "system:serviceaccount:default:default")
    assert token not in repr(node.told)
    assert node.values(other.metadata.uid).account is None
    (request,) = [found for found in node.server.requests if found.path.endswith("/token")]
    assert request.json["spec"]["boundObjectRef"]["uid"] == mine.metadata.uid
    node.server.store.delete("serviceaccounts", "default", "default")
    late = node.schedule("late", containers=[{"name": "c", "image": "shop.example/a/b:1"}])
    await node.objects.need(late)
    told = node.values(late.metadata.uid).account
    assert told is not None
    assert told.problem == 'serviceaccounts "default" not found'
