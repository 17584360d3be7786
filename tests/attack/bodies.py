"""Attacks by what requests carry: text that is none, patches that grow, keys that are none, bodies that wait."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
from collections.abc import Iterator
from typing import Final

from tests.attack.attack import Attack
from tests.attack.clients import GET, ask, connected, post, status_of
from tests.attack.ground import Ground
from tests.e2e.manifests import STAY, container, pod
from tests.support.certificates import client_context

HALF: Final = "\\ud800"
"""Half of a surrogate pair, as JSON writes it."""
TIMES: Final = 20
"""How often each patch is sent: what one leaves behind adds up."""
COPIES: Final = 200
DOUBLINGS: Final = 60
BODY: Final = 1 << 20
EXPECT: Final = "Expect: 100-continue\r\n"
CONTINUE: Final = b"100 Continue"
TIMEOUT_S: Final = 15.0
PATCHED: Final = "patched"
MEDIA: Final = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


def _own(body: str) -> str:
    """A manifest as JSON with half a pair in place of HERE."""
    made = pod("surrogates", container(script=STAY))
    made["metadata"]["annotations"] = {"a": "HERE"}
    return body.replace("{pod}", json.dumps(made)).replace("HERE", HALF)


def _surrogates() -> Iterator[bytes]:
    """Requests."""
    for path in ("/rootlet/v1/apply", "/containers"):
        for body in ("{pod}", '{"apiVersion":"v1","kind":"PodList","items":[{pod}]}', f'{{"kind":"{HALF}"}}'):
            yield post(path, _own(body).encode())
    for kind in MEDIA:
        for body in (f'{{"metadata":{{"labels":{{"a":"{HALF}"}}}}}}', f'{{"{HALF}":1}}', f'[{{"op":"{HALF}"}}]'):
            yield _patch(kind, body.encode())
    yield _patch("json", f'[{{"op":"add","path":"/metadata/labels","value":{{"{HALF}":"a"}}}}]'.encode())


def _patch(kind: str, body: bytes) -> bytes:
    return post(f"/rootlet/v1/patch?kind=Pod&namespace=default&name={PATCHED}&type={kind}", body)


def _is_refused(ground: Ground, request: bytes) -> None:
    answer = ask(ground, request)
    assert status_of(answer) in (400, 422), answer[:300]


def _half_pairs(ground: Ground) -> None:
    """Each is refused with words, and nothing is applied."""
    with _applied(ground):
        for request in _surrogates():
            _is_refused(ground, request)
        assert "surrogates" not in ground.agent.pods()


@contextlib.contextmanager
def _applied(ground: Ground) -> Iterator[None]:
    """A pod that patches may change: no manifest's."""
    made = pod(PATCHED, container(script=STAY))
    assert status_of(ask(ground, post("/rootlet/v1/apply", json.dumps(made).encode()))) == 200
    ground.agent.until_ready([PATCHED])
    try:
        yield
    finally:
        done = ground.agent.cli("delete", "pod", PATCHED, "--wait=false")
    assert done.code == 0, done.err


def _copy(source: str, path: str) -> dict[str, str]:
    return {"op": "copy", "from": source, "path": path}


def _copies() -> Iterator[bytes]:
    """Patches that would make far more than they are: one value many times, and what doubles each time."""
    large = {"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * (BODY - 128 * COPIES)}}
    yield _patch(
        "json",
        json.dumps(
            [large, *(_copy("/metadata/annotations/a", f"/metadata/annotations/b{n}") for n in range(COPIES))]
        ).encode(),
    )
    nested = {"op": "add", "path": "/metadata/annotations", "value": {"a": {}}}
    doubled = [_copy("/metadata/annotations/a", f"/metadata/annotations/a/{n}") for n in range(DOUBLINGS)]
    yield _patch("json", json.dumps([nested, *doubled]).encode())
    small = {"op": "add", "path": "/spec/volumes", "value": [{}] * 1000}
    many = [_copy("/spec/volumes", f"/spec/volumes/{n}") for n in range(COPIES)]
    yield _patch("json", json.dumps([small, *many]).encode())


def _growing(ground: Ground) -> None:
    """Each is refused before it is built, however often it is sent."""
    with _applied(ground):
        before = ground.agent.pods()[PATCHED]["metadata"]
        for _ in range(TIMES):
            for request in _copies():
                _is_refused(ground, request)
        assert ground.agent.pods()[PATCHED]["metadata"] == before


def _keys(ground: Ground) -> None:
    """The client's error, whatever the key is."""
    agent = ground.agent
    agent.until_ready(["keys"])
    head = (
        b"GET /api/v1/namespaces/default/pods/keys/exec?command=id&stdout=true HTTP/1.1\r\nHost: x\r\n"
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    )
    for key in (b"!!!", b"AAAA", b"", b"\xc3\xa4\xff", b"A" * 5000, b"AAAAAAAAAAAAAAAAAAAAAA=", None):
        line = b"" if key is None else b"Sec-WebSocket-Key: " + key + b"\r\n"
        answer = ask(ground, head + line + b"\r\n")
        assert status_of(answer) == 400, answer[:300]


def _waiting(path: str, size: int, *, method: str = "POST") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n{EXPECT}\r\n".encode()


def _waits(ground: Ground) -> None:
    """Nobody whom the server does not know, and no request that is refused, is told to send its body."""
    for path, code in (("/containers", 404), ("/run/default/canary/main?cmd=id", 405), ("/nothing", 404)):
        _is_not_told(_answer(ground.read_only_port, None, _waiting(path, BODY)), code)
        _is_not_told(_answer(ground.port, client_context(), _waiting(path, BODY)), 401)
    for path, size, code in (
        ("/nothing", 10, 404),
        ("/rootlet/v1/apply", 1 << 40, 413),
        ("/rootlet/v1/patch?kind=nothing", 10, 400),
    ):
        _is_not_told(ask(ground, _waiting(path, size)), code)
    with connected(ground) as silent:  # told to go on, and says nothing
        silent.sendall(_waiting("/rootlet/v1/apply", 10))
        told = silent.recv(4096)
        assert CONTINUE in told, told
        assert status_of(ask(ground, GET + b"\r\n")) == 200


def _is_not_told(answer: bytes, code: int) -> None:
    """To go on."""
    assert (CONTINUE in answer, status_of(answer)) == (False, code), answer[:300]


def _answer(port: int, tls: ssl.SSLContext | None, request: bytes) -> bytes:
    """The beginning of all that comes."""
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(socket.create_connection(("127.0.0.1", port), TIMEOUT_S))
        if tls is not None:
            client = stack.enter_context(tls.wrap_socket(client))
        client.sendall(request)
        return client.recv(65536)


ATTACKS: Final = (
    Attack(
        "half-pairs",
        "Manifests and patches have halves of surrogate pairs in values, keys, kinds and operations.",
        "be answered 400 or 422",
        _half_pairs,
        is_quick=False,
    ),
    Attack(
        "patches-that-grow",
        "JSON patches copy a megabyte 200 times, an object into itself, and a list of a thousand into its members.",
        "be answered 400 or 422",
        _growing,
        is_quick=False,
    ),
    Attack(
        "client-keys",
        "WebSockets are asked for with keys that are no base64, too short, too long, or not there.",
        "be answered 400",
        _keys,
        (pod("keys", container(script=STAY)),),
        is_quick=False,
    ),
    Attack(
        "client-waits",
        "Clients that nobody knows, and requests that are refused, wait to be told to send their bodies.",
        "be answered 4xx, and never told to go on",
        _waits,
    ),
)
