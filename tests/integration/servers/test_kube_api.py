"""The fake API server: lists and watches, preconditions, what nodes may not, certificates and tokens, faults."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.servers.kube_api.failures import Refusal
from tests.support.servers.kube_api.requests import User
from tests.support.servers.kube_api.server import KubeApiServer
from tests.support.servers.kube_api.signing import CLIENT

NODE: Final = User("system:node:n1", ("system:nodes",))
PODS: Final = "/api/v1/namespaces/default/pods"
MAPS: Final = "/api/v1/namespaces/default/configmaps"
DEADLINE_S: Final = 30.0


class Client:
    """Asks as one user."""

    def __init__(self, server: KubeApiServer, http: aiohttp.ClientSession) -> None:
        self._server = server
        self._http = http

    async def ask(self, verb: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        async with self._http.request(verb, self._server.url + path, json=body, **options) as response:
            return response.status, await response.json()

    async def patch(self, path: str, body: Any, kind: str = "strategic-merge") -> tuple[int, Any]:
        headers = {"content-type": f"application/{kind}-patch+json"}
        return await self.ask("PATCH", path, body, headers=headers)

    async def events(self, path: str, **query: str) -> AsyncIterator[Any]:
        query = {"watch": "true", "timeoutSeconds": "5"} | query
        async with self._http.get(self._server.url + path, params=query) as response:
            assert response.status == 200
            async for text in response.content:
                yield json.loads(text)


@pytest.fixture
async def server() -> AsyncIterator[KubeApiServer]:
    async with KubeApiServer(tls=False) as found, asyncio.timeout(DEADLINE_S):
        yield found


@pytest.fixture
async def admin(server: KubeApiServer) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession() as http:
        yield Client(server, http)


@pytest.fixture
async def node(server: KubeApiServer) -> AsyncIterator[Client]:
    token = server.tokens.add(NODE)
    async with aiohttp.ClientSession(headers={"authorization": f"Bearer {token}"}) as http:
        yield Client(server, http)


def config_map(name: str, **more: Any) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "labels": {"of": name}}} | more


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x"}]} | spec}


async def test_list_goes_on_where_it_ended(server: KubeApiServer, admin: Client) -> None:
    for name in ("a", "b", "c"):
        server.store.create(config_map(name))
    _, first = await admin.ask("GET", f"{MAPS}?limit=2")
    assert first["metadata"]["remainingItemCount"] == 1
    assert [item["metadata"]["name"] for item in first["items"]] == ["a", "b"]
    server.store.create(config_map("d"))
    _, rest = await admin.ask("GET", MAPS, params={"limit": "2", "continue": first["metadata"]["continue"]})
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]
    assert rest["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}
    server.faults.expire()
    code, gone = await admin.ask("GET", MAPS, params={"limit": "2", "continue": first["metadata"]["continue"]})
    assert (code, gone["reason"]) == (410, "Expired")


async def test_list_of_the_future(server: KubeApiServer, admin: Client) -> None:
    code, answer = await admin.ask("GET", f"{MAPS}?resourceVersion=999999")
    current = server.store.revision
    assert (code, answer["message"]) == (504, f"Timeout: Too large resource version: 999999, current: {current}")
    assert answer["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_watch_of_a_selection(server: KubeApiServer, admin: Client) -> None:
    server.store.create(config_map("a"))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    events = admin.events(MAPS, labelSelector="of=a", **query)
    assert (await anext(events))["object"]["metadata"]["name"] == "a"
    bookmark = await anext(events)
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    server.store.create(config_map("b"))
    found = server.store.get("configmaps", "default", "a")
    found["metadata"]["labels"] = {"of": "b"}
    server.store.update(found)
    left = await anext(events)
    assert (left["type"], left["object"]["metadata"]["labels"]) == ("DELETED", {"of": "a"})
    assert left["object"]["metadata"]["resourceVersion"] == str(server.store.revision)
    server.store.delete("configmaps", "default", "b")
    server.bookmark()
    told = await anext(events)
    assert (told["type"], told["object"]["metadata"]["resourceVersion"]) == ("BOOKMARK", str(server.store.revision))


async def test_watch_resumes_or_is_too_old(server: KubeApiServer, admin: Client) -> None:
    old = str(server.store.revision)
    server.store.create(config_map("a"))
    assert (await anext(admin.events(MAPS, resourceVersion=old)))["type"] == "ADDED"
    server.faults.expire()
    error = await anext(admin.events(MAPS, resourceVersion=old))
    assert (error["type"], error["object"]["code"]) == ("ERROR", 410)
    current = str(server.store.revision)
    events = [event async for event in admin.events(MAPS, resourceVersion=current, timeoutSeconds="1")]
    assert events == []


async def test_server_without_watch_lists(server: KubeApiServer, admin: Client) -> None:
    server.api.watch_list = False
    query = {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    code, answer = await admin.ask("GET", MAPS, params=query)
    assert (code, answer["reason"]) == (422, "Invalid")


async def test_preconditions(server: KubeApiServer, admin: Client) -> None:
    made = server.store.create(config_map("a"))
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}}
    code, answer = await admin.ask("DELETE", f"{MAPS}/a", options)
    assert (code, answer["details"]) == (409, {"name": "a", "kind": "ConfigMap"})
    assert "the UID in the precondition (other) does not match the UID in record" in answer["message"]
    code, _ = await admin.ask("DELETE", f"{MAPS}/a", options | {"preconditions": {"uid": made["metadata"]["uid"]}})
    assert code == 200
    server.schedule(pod("web"))
    code, answer = await admin.patch(f"{PODS}/web/status", {"metadata": {"uid": "other"}, "status": {}})
    assert (code, answer["details"]["causes"][0]["field"]) == (422, "metadata.uid")


async def test_pod_goes_in_its_time(server: KubeApiServer, admin: Client) -> None:
    server.schedule(pod("web", terminationGracePeriodSeconds=7))
    code, first = await admin.ask("DELETE", f"{PODS}/web")
    assert (code, first["metadata"]["deletionGracePeriodSeconds"], first["metadata"]["generation"]) == (200, 7, 2)
    _, again = await admin.ask("DELETE", f"{PODS}/web?gracePeriodSeconds=20")
    assert again["metadata"]["deletionTimestamp"] == first["metadata"]["deletionTimestamp"]
    _, sooner = await admin.ask("DELETE", f"{PODS}/web?gracePeriodSeconds=3")
    assert sooner["metadata"]["deletionGracePeriodSeconds"] == 3
    _, gone = await admin.ask("DELETE", f"{PODS}/web?gracePeriodSeconds=0")
    assert gone["metadata"]["deletionGracePeriodSeconds"] == 0
    assert not server.store.has("pods", "default", "web")


NODE_OF_ITS_OWN: Final = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}, "spec": {}}
CSI: Final = "/apis/storage.k8s.io/v1/csinodes"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
REFUSED: Final = {
    ("GET", "/api/v1/nodes"): "only its own Node object",
    ("GET", "/api/v1/nodes/n2"): "only its own Node object",
    ("GET", "/api/v1/pods"): "can only list/watch pods with spec.nodeName field selector",
    ("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2"): "can only list/watch pods with spec.nodeName",
    ("GET", f"{MAPS}"): "No Object name found",
    ("GET", f"{MAPS}/other"): "no relationship found between node 'n1' and this object",
    ("GET", "/api/v1/secrets"): "can only read namespaced object of this type",
    ("GET", LEASES): "can only get, create, update, patch, or delete a node lease",
    ("GET", f"{LEASES}/n2"): "can only access node lease with the same name as the requesting node",
    ("GET", f"{CSI}/n2"): "can only access CSINode with the same name as the requesting node",
    ("DELETE", "/api/v1/nodes/n1"): "cannot delete resource",
    ("GET", "/api/v1/namespaces"): "cannot list resource",
    ("POST", f"{PODS}/web/binding"): "cannot create resource",
}


@pytest.mark.parametrize(("verb", "path"), REFUSED)
async def test_node_may_not(server: KubeApiServer, node: Client, verb: str, path: str) -> None:
    server.store.create(NODE_OF_ITS_OWN)
    server.schedule(pod("web"))
    server.store.create(config_map("other"))
    code, answer = await node.ask(verb, path)
    assert code == 403
    assert REFUSED[verb, path] in answer["message"]


async def test_node_reads_what_its_pods_refer_to(server: KubeApiServer, node: Client) -> None:
    server.store.create(config_map("cm"))
    code, _ = await node.ask("GET", f"{MAPS}?fieldSelector=metadata.name%3Dcm")
    assert code == 403
    server.schedule(pod("web", volumes=[{"name": "v", "configMap": {"name": "cm"}}]))
    code, found = await node.ask("GET", f"{MAPS}?fieldSelector=metadata.name%3Dcm")
    assert (code, len(found["items"])) == (200, 1)


async def test_node_restriction(server: KubeApiServer, node: Client) -> None:
    code, answer = await node.ask("POST", PODS, pod("web") | {"kind": "Pod", "apiVersion": "v1"})
    assert (code, 'node "n1" can only create mirror pods' in answer["message"]) == (403, True)
    labelled = NODE_OF_ITS_OWN | {"metadata": {"name": "n1", "labels": {"node-role.kubernetes.io/master": ""}}}
    code, answer = await node.ask("POST", "/api/v1/nodes", labelled)
    assert (code, "is not allowed to set the following labels" in answer["message"]) == (403, True)
    assert (await node.ask("POST", "/api/v1/nodes", NODE_OF_ITS_OWN))[0] == 201
    code, answer = await node.patch("/api/v1/nodes/n1", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})
    assert (code, answer["message"]) == (403, 'nodes "n1" is forbidden: node "n1" is not allowed to modify taints')
    other = server.schedule(pod("elsewhere"), "n2")
    assert other["spec"]["nodeName"] == "n2"
    code, answer = await node.patch(f"{PODS}/elsewhere/status", {"status": {"phase": "Running"}})
    assert (code, "with spec.nodeName set to itself" in answer["message"]) == (403, True)


async def test_token_of_a_pod(server: KubeApiServer, node: Client, admin: Client) -> None:
    made = server.schedule(pod("web"))
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "web", "uid": made["metadata"]["uid"]}
    request = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}
    code, answer = await node.ask("POST", path, request | {"spec": {"expirationSeconds": 600}})
    assert (code, "node requested token not bound to a pod" in answer["message"]) == (403, True)
    spec = {"audiences": ["vault"], "expirationSeconds": 600, "boundObjectRef": bound}
    code, answer = await node.ask("POST", path, request | {"spec": spec})
    assert code == 201
    review = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1"}
    spec = {"token": answer["status"]["token"], "audiences": ["vault"]}
    _, reviewed = await admin.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review | {"spec": spec})
    assert reviewed["status"]["user"]["username"] == "system:serviceaccount:default:default"
    assert reviewed["status"]["audiences"] == ["vault"]


async def test_certificate_by_bootstrap_token(tmp_path: Path) -> None:
    async with KubeApiServer() as server, asyncio.timeout(DEADLINE_S):
        server.tokens.add_bootstrap("abcdef.0123456789abcdef")
        trust = ssl.create_default_context(cadata=server.authority.pem.decode())
        key = ec.generate_private_key(ec.SECP256R1())
        headers = {"authorization": "Bearer abcdef.0123456789abcdef"}
        connector = aiohttp.TCPConnector(ssl=trust)
        async with aiohttp.ClientSession(headers=headers, connector=connector) as http:
            path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
            client = Client(server, http)
            code, made = await client.ask("POST", path, signing_request(key))
            assert (code, made["spec"]["username"], made["status"]) == (201, "system:bootstrap:abcdef", {})
            name = made["metadata"]["name"]
            _, found = await client.ask("GET", f"{path}/{name}")
        file = tmp_path / "client.pem"
        file.write_bytes(base64.b64decode(found["status"]["certificate"]) + private_pem(key))
        trust.load_cert_chain(file)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as http:
            code, _ = await Client(server, http).ask("POST", "/api/v1/nodes", NODE_OF_ITS_OWN)
        assert (code, server.requests[-1].user) == (201, "system:node:n1")


def signing_request(key: ec.EllipticCurvePrivateKey) -> dict[str, Any]:
    names = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
        x509.NameAttribute(NameOID.COMMON_NAME, "system:node:n1"),
    ]
    csr = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names)).sign(key, hashes.SHA256())
    text = base64.b64encode(csr.public_bytes(serialization.Encoding.PEM)).decode()
    spec = {"request": text, "signerName": CLIENT, "usages": ["digital signature", "client auth"]}
    kinds = {"kind": "CertificateSigningRequest", "apiVersion": "certificates.k8s.io/v1"}
    return kinds | {"metadata": {"generateName": "csr-"}, "spec": spec}


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


async def test_faults(server: KubeApiServer, admin: Client) -> None:
    server.store.create(config_map("a"))
    server.faults.answer(503, "GET", "configmaps/a$", headers={"Retry-After": "1"})
    code, answer = await admin.ask("GET", f"{MAPS}/a")
    assert (code, answer["reason"]) == (503, "ServiceUnavailable")
    server.faults.drop("GET", "configmaps", times=2)  # a client may repeat a GET once
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await admin.ask("GET", f"{MAPS}/a")
    server.faults.drop_answer("POST", "configmaps")
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await admin.ask("POST", MAPS, config_map("b"))
    assert server.store.has("configmaps", "default", "b")


async def test_partition(server: KubeApiServer, admin: Client) -> None:
    events = admin.events(MAPS, resourceVersion=str(server.store.revision))
    first = asyncio.ensure_future(anext(events))
    await server.asked(lambda request: request.is_watch)
    server.faults.partition()
    server.store.create(config_map("a"))
    asked = asyncio.ensure_future(admin.ask("GET", f"{MAPS}/a"))
    done, _ = await asyncio.wait({first, asked}, timeout=0.05)
    assert done == set()
    server.faults.heal()
    watch, _ = await asyncio.gather(first, asked, return_exceptions=True)
    assert isinstance(watch, aiohttp.ClientError)
    assert server.requests[1].code == 0  # never answered; this client asks a second time of itself
    assert (await admin.ask("GET", f"{MAPS}/a"))[0] == 200


async def test_restore_of_an_older_backup(server: KubeApiServer, admin: Client) -> None:
    old = server.store.revision
    server.store.create(config_map("a"))
    newer = server.store.revision
    server.faults.restore(old)
    assert server.store.revision == old
    with pytest.raises(Refusal):
        server.store.get("configmaps", "default", "a")
    assert (await admin.ask("GET", MAPS, params={"resourceVersion": str(newer)}))[0] == 504


async def test_killed_and_started_again(server: KubeApiServer, admin: Client) -> None:
    url = server.url
    await server.stop()
    with pytest.raises(aiohttp.ClientConnectorError):
        await admin.ask("GET", "/version")
    await server.start()
    assert server.url == url
    assert (await admin.ask("GET", "/version"))[1]["gitVersion"] == "v1.36.2"


async def test_the_end_waits_for_no_client_that_owes_its_end_of_tls() -> None:
    async with asyncio.timeout(DEADLINE_S / 3), KubeApiServer() as server:
        with await connected_over_tls(server) as wire:
            await server.stop()
            await read_to_the_end(wire)


async def connected_over_tls(server: KubeApiServer) -> socket.socket:
    """The socket of a client that has shaken hands, and from then on answers nothing of TLS."""
    loop = asyncio.get_running_loop()
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing)
    wire = socket.socket()
    wire.setblocking(False)
    await loop.sock_connect(wire, server.address)
    while True:
        try:
            client.do_handshake()
        except ssl.SSLWantReadError:
            await loop.sock_sendall(wire, outgoing.read())
            incoming.write(await loop.sock_recv(wire, 65536))
        else:
            await loop.sock_sendall(wire, outgoing.read())
            await loop.sock_recv(wire, 65536)  # the server's tickets: it has shaken hands, too
            return wire


async def read_to_the_end(wire: socket.socket) -> None:
    """Reads until the other side has closed or reset the connection."""
    with suppress(ConnectionResetError):
        while await asyncio.get_running_loop().sock_recv(wire, 65536):
            pass


def test_kubeconfig(tmp_path: Path) -> None:
    async def written() -> Any:
        async with KubeApiServer() as server:
            return yaml.safe_load(server.kubeconfig(tmp_path).read_text())

    config = asyncio.run(written())
    assert config["users"][0]["name"] == "system:node:n1"
    assert b"BEGIN CERTIFICATE" in base64.b64decode(config["users"][0]["user"]["client-certificate-data"])


EVENTS: Final = "/api/v1/namespaces/default/events"
REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
TOKENS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
MICRO: Final = "2026-11-27T10:00:00.000000Z"
MINUTE: Final = "2026-11-27T10:00:00Z"


def lease(**spec: Any) -> dict[str, Any]:
    return {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "n1"}, "spec": spec}


def event(namespace: str = "default", **more: Any) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": namespace, "name": "web"}
    return {"kind": "Event", "apiVersion": "v1", "metadata": {"name": "web.1"}, "involvedObject": about} | more


def review(**spec: Any) -> dict[str, Any]:
    return {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec}


ASKS: Final = {"verb": "get", "resource": "nodes"}


@pytest.mark.parametrize(
    ("path", "body", "code", "says"),
    [
        (LEASES, lease(renewTime=MICRO, leaseDurationSeconds=40), 201, ""),
        (LEASES, lease(renewTime=MINUTE), 400, "cannot be handled as a Lease"),
        (LEASES, lease(renewTime="2026-11-27T10:00:00.123Z"), 400, "parsing time"),
        (LEASES, lease(leaseDurationSeconds="40"), 400, "cannot unmarshal string"),
        (LEASES, lease(leaseDurationSeconds=0), 422, "must be greater than 0"),
        (LEASES, lease(leaseTransitions=-1), 422, "must be greater than or equal to 0"),
        (EVENTS, event(count=1, firstTimestamp=MINUTE, lastTimestamp=MINUTE, eventTime=None), 201, ""),
        (EVENTS, event(count="1"), 400, "cannot unmarshal string"),
        (EVENTS, event(lastTimestamp=1764237600), 400, "cannot unmarshal number"),
        (EVENTS, event(lastTimestamp="yesterday"), 400, "parsing time"),
        (EVENTS, event("kube-system"), 422, "does not match event.namespace"),
        (EVENTS, event(eventTime=MICRO), 422, "reportingInstance: Required value"),
        (REVIEWS, review(user="ann", resourceAttributes=ASKS), 201, ""),
        (REVIEWS, review(resourceAttributes=ASKS), 422, "at least one of user or group"),
        (REVIEWS, review(user="ann"), 422, "exactly one of"),
        (REVIEWS, review(user="ann", resourceAttributes=ASKS, nonResourceAttributes={}), 422, "in combination"),
        (TOKENS, {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {}}, 400, "is required"),
    ],
)
async def test_bodies_are_decoded_and_validated(admin: Client, path: str, body: Any, code: int, says: str) -> None:
    told, answer = await admin.ask("POST", path, body)
    assert told == code, answer
    assert says in answer.get("message", "")


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ({"status": {"capacity": {"cpu": "2", "memory": "1Gi"}, "conditions": []}}, 200, ""),
        ({"status": {"capacity": {"memory": "1 GiB"}}}, 422, "quantities must match"),
        ({"status": {"allocatable": {"cpu": "-1"}}}, 422, "must be greater than or equal to 0"),
        ({"status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": "now"}]}}, 422, "parsing time"),
    ],
)
async def test_a_patch_leaves_what_the_server_can_decode(
    server: KubeApiServer, node: Client, body: Any, code: int, says: str
) -> None:
    server.store.create({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}, "spec": {}})
    told, answer = await node.patch("/api/v1/nodes/n1/status", body)
    assert told == code, answer
    assert says in answer.get("message", "")


async def test_a_node_keeps_what_was_given_to_it_once(server: KubeApiServer, node: Client) -> None:
    spec = {"podCIDRs": ["10.244.3.0/24"], "providerID": "x://1"}
    server.store.create({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}, "spec": spec})
    for changed in ({"podCIDRs": ["10.244.4.0/24"]}, {"providerID": "x://2"}):
        told, answer = await node.patch("/api/v1/nodes/n1", {"spec": changed}, "merge")
        assert told == 422, answer
    twice = [{"type": "InternalIP", "address": "192.0.2.7"}] * 2
    told, answer = await node.patch("/api/v1/nodes/n1/status", {"status": {"addresses": twice}}, "merge")
    assert told == 422
    assert "Duplicate value" in answer["message"]
