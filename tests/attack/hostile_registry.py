"""A registry on loopback that lies: what it does to whoever pulls is told by the repository's name."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple

from tests.support.registry import HOST, forget_images

MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG: Final = "application/vnd.docker.container.image.v1+json"
LAYER: Final = "application/vnd.docker.image.rootfs.diff.tar.gzip"
CHUNK: Final = b"x" * 65536
PAUSE_S: Final = 0.1
"""Between chunks of what has no end: it must not fill the disk of whoever is slow to give up."""
MANY: Final = 5000
STOP_S: Final = 10.0
LOUD: Final = ("\x1b]0;owned\x07\u202e" + "very loud " * 100_000).encode() + b"\xff\xfe"

HOSTILE_CONFIG: Final[Mapping[str, Any]] = {
    "Env": ["PATH=/bin", *(f"HOSTILE_{number}={'x' * 100}" for number in range(1000)), "=", "no-equals-sign"],
    "Labels": {
        "rootlet.dev/attempt": "9" * 5000,
        "rootlet.dev/instance": "\x1b[2J\u202e",
        "io.kubernetes.container.preStopHandler": '{"exec":{"command":["touch","/hooked"]}}',
        "io.kubernetes.container.terminationMessagePath": "/etc/passwd",
    },
    "WorkingDir": "/../../../../tmp",
    "StopSignal": "SIGNOTHING",
    "Volumes": {f"/volume-{number}": {} for number in range(20)},
    "ExposedPorts": {"99999/tcp": {}, "x/y": {}},
    "Healthcheck": {"Test": ["CMD-SHELL", "exit 1"], "Interval": 1_000_000_000, "Retries": 1},
    "OnBuild": ["RUN false"] * 100,
}


class Image(NamedTuple):
    """Content of the registry for an image, by digest, and its manifest."""

    manifest: bytes
    blobs: Mapping[str, bytes]


class HostileRegistry:
    """A registry whose images are ``<address>/<what it does>:<tag>``."""

    def __init__(self) -> None:
        self.closing = threading.Event()
        self.asked: list[str] = []
        self._server = _Server((HOST, 0), self)
        self.address = f"{HOST}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def image(self, what: str) -> str:
        return f"{self.address}/{what}:latest"

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(STOP_S)
        forget_images(self.address)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, at: tuple[str, int], registry: HostileRegistry) -> None:
        super().__init__(at, _Handler)
        self.registry = registry

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients go while they are answered: that is what they should do."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self.server.registry.asked.append(self.path)
        parts = self.path.partition("?")[0].split("/")
        if self.path == "/v2/":
            return self.answer(200, b"{}")
        behave = BEHAVIOURS.get(parts[2] if len(parts) > 2 else "", _missing)
        return behave(self, parts[-1])

    do_HEAD = do_GET

    def answer(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def go_on_for_ever(self, kind: str, size: int) -> None:
        """A body that claims to be so large, and comes for as long as anybody reads."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        while self.command != "HEAD" and not self.server.registry.closing.wait(PAUSE_S):
            self.wfile.write(CHUNK)

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


Behave = Callable[[_Handler, str], None]


def _missing(handler: _Handler, _last: str) -> None:
    handler.answer(404, b'{"errors":[{"code":"NAME_UNKNOWN"}]}')


def _redirects(handler: _Handler, last: str) -> None:
    handler.answer(302, b"", Location=f"{handler.path}x")


def _auth_loop(handler: _Handler, last: str) -> None:
    at = handler.server.registry.address
    if last == "token":
        return handler.answer(200, b'{"token":"always-the-same","expires_in":1}')
    realm = f'Bearer realm="http://{at}/v2/auth-loop/token",service="x",scope="repository:auth-loop:pull"'
    return handler.answer(401, b'{"errors":[{"code":"UNAUTHORIZED"}]}', WWW_Authenticate=realm)


def _loud(handler: _Handler, _last: str) -> None:
    handler.answer(500, LOUD, "text/html")


def _silent(handler: _Handler, _last: str) -> None:
    handler.server.registry.closing.wait()


def _endless_manifest(handler: _Handler, _last: str) -> None:
    handler.go_on_for_ever(MANIFEST, 1 << 40)


def _serving(image: Callable[[], Image], missing: Behave = _missing) -> Behave:
    """An image as it is; blobs that it does not have are answered so."""
    made: list[Image] = []
    lock = threading.Lock()

    def behave(handler: _Handler, last: str) -> None:
        with lock:
            if not made:
                made.append(image())
        [it] = made
        if "/manifests/" in handler.path:
            return handler.answer(200, it.manifest, MANIFEST, Docker_Content_Digest=digest(it.manifest))
        if last in it.blobs:
            return handler.answer(200, it.blobs[last], "application/octet-stream")
        return missing(handler, last)

    return behave


def _endless_blob(handler: _Handler, _last: str) -> None:
    handler.go_on_for_ever("application/octet-stream", 1 << 40)


def _other_blob(handler: _Handler, _last: str) -> None:
    handler.answer(200, b"not what was asked for" * 1000, "application/octet-stream")


# --- images --------------------------------------------------------------------------------------------------------


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def made_of(layers: list[bytes], config: Mapping[str, Any], *, keep: bool = True) -> Image:
    """An image of gzipped layers; without ``keep`` the registry does not have them."""
    described = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": dict(config),
            "rootfs": {"type": "layers", "diff_ids": [digest(gzip.decompress(layer)) for layer in layers]},
        }
    ).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, "size": len(described), "digest": digest(described)},
        "layers": [{"mediaType": LAYER, "size": len(layer), "digest": digest(layer)} for layer in layers],
    }
    blobs = {digest(described): described} | ({digest(layer): layer for layer in layers} if keep else {})
    return Image(json.dumps(manifest).encode(), blobs)


def layer(*more: tarfile.TarInfo) -> bytes:
    """busybox with the applets that the manifests need, and these entries."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as tar:
        tar.add(os.path.realpath(str(shutil.which("busybox"))), "bin/busybox")
        for applet in ("sh", "sleep", "true", "cat", "ls"):
            tar.addfile(_link(f"bin/{applet}", "busybox", tarfile.SYMTYPE))
        for entry in more:
            tar.addfile(entry, io.BytesIO(b"x" * entry.size))
    return packed.getvalue()


def _link(name: str, target: str, kind: bytes) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


def _file(name: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = 4
    return entry


def _escapes() -> Image:
    """Paths and links that lead out of the image's root."""
    return made_of(
        [layer(_file("../../../../../tmp/rootlet-attack-escaped"), _link("out", "/../../..", tarfile.SYMTYPE),
               _file("out/tmp/rootlet-attack-escaped"))],
        {"Env": ["PATH=/bin"]},
    )  # fmt: skip


def _many_layers() -> Image:
    one = gzip.compress(b"\0" * 1024)
    return made_of([one] * MANY, {"Env": ["PATH=/bin"]}, keep=False)


BEHAVIOURS: Final[Mapping[str, Behave]] = {
    "redirects": _redirects,
    "auth-loop": _auth_loop,
    "loud": _loud,
    "silent": _silent,
    "endless-manifest": _endless_manifest,
    "endless-layer": _serving(lambda: made_of([layer()], {}, keep=False), _endless_blob),
    "wrong-digest": _serving(lambda: made_of([layer()], {}, keep=False), _other_blob),
    "many-layers": _serving(_many_layers),
    "hostile-config": _serving(lambda: made_of([layer()], HOSTILE_CONFIG)),
    "escapes": _serving(_escapes),
    "no-json": lambda handler, last: handler.answer(200, b"\xff" * 100_000, MANIFEST),
    "deep-json": lambda handler, last: handler.answer(200, b"[" * 100_000, MANIFEST),
}
