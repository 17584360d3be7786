"""A real registry on loopback for tests: Debian's ``docker-registry`` as a child of the test session, without TLS.

Images are made here, byte by byte: every one has a layer that no storage has seen, so that a pull has to fetch it.
`Proxy` stands between the registry and whoever pulls, and can be slow or hang up.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import hashlib
import http.client
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.podman_service import wait_until

PROGRAM: Final = "docker-registry"
HOST: Final = "127.0.0.1"
USER: Final = "tester"
PASSWORD: Final = "correct horse"
HTPASSWD: Final = "tester:$2b$05$hSn5eO3OACtwqrwbdf3xEOFVfB9Qb4Pd89L/ouERE6R.qJohM5kLS\n"
"""`htpasswd -nbBC 5 tester 'correct horse'`: of a password that is no secret."""
START_DEADLINE_S: Final = 20.0
STOP_DEADLINE_S: Final = 10.0
REQUEST_DEADLINE_S: Final = 20.0
COMMAND_DEADLINE_S: Final = 60.0
LIST_TRIES: Final = 5
CHUNK_BYTES: Final = 16 * 1024

_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG: Final = "application/vnd.docker.container.image.v1+json"
_LAYER: Final = "application/vnd.docker.image.rootfs.diff.tar.gzip"
_REQUEST: Final = re.compile(r'"GET (/v2/\S+) HTTP/1.1"')


def why_not() -> str:
    """Why there can be no registry here; empty when there can."""
    if shutil.which(PROGRAM) is None:
        return f"needs {PROGRAM} on PATH (Debian's package of that name)"
    if shutil.which("busybox") is None:
        return "needs a static busybox for its images"
    return ""


class Registry:
    """One registry process. Its images are ``<address>/<name>:<tag>``."""

    def __init__(self, directory: Path, *, login: bool = False) -> None:
        self._directory = directory
        self._layers: dict[str, str] = {}
        """Digest of the newest by image name."""
        self._log = directory / "registry.log"
        self.address = f"{HOST}:{_free_port()}"
        self._headers = {"Authorization": _basic(USER, PASSWORD)} if login else {}
        (directory / "registry.yaml").write_text(yaml.safe_dump(self._configuration(login)))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", PROGRAM, "serve", str(directory / "registry.yaml")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until(self._answers, START_DEADLINE_S)

    def push(self, name: str, tag: str, *, layer_bytes: int = 0) -> str:
        """Make an image with busybox in it, and so many more bytes that do not compress; its digest."""
        layer = _layer(f"{self.address}/{name}:{tag}", layer_bytes)
        tar = gzip.decompress(layer)
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Env": ["PATH=/bin"]},
                "rootfs": {"type": "layers", "diff_ids": [_digest(tar)]},
            }
        ).encode()
        self._layers[name] = _digest(layer)
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": {"mediaType": _CONFIG, "size": len(config), "digest": self._put_blob(name, config)},
            "layers": [{"mediaType": _LAYER, "size": len(layer), "digest": self._put_blob(name, layer)}],
        }
        body = json.dumps(manifest).encode()
        self._request("PUT", f"/v2/{name}/manifests/{tag}", body, {"Content-Type": _MANIFEST}, 201)
        return _digest(body)

    def manifests_asked(self, name: str) -> int:
        """How often somebody wanted to know an image: once per pull."""
        return sum(asked.startswith(f"/v2/{name}/manifests/") for asked in self._asked())

    def layers_asked(self, name: str) -> int:
        """How often somebody began to fetch the layer of an image."""
        digest = self._layers[name]
        return sum(asked == f"/v2/{name}/blobs/{digest}" for asked in self._asked())

    def _asked(self) -> list[str]:
        return _REQUEST.findall(self._log.read_text(errors="replace"))

    def close(self) -> None:
        """End the process and remove what was pulled from here."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(STOP_DEADLINE_S)
        forget_images(self.address)

    def _configuration(self, login: bool) -> dict[str, Any]:
        passwords = self._directory / "htpasswd"
        passwords.write_text(HTPASSWD)
        return {
            "version": "0.1",
            "log": {"level": "error", "accesslog": {"disabled": False}},
            "storage": {"filesystem": {"rootdirectory": str(self._directory / "blobs")}},
            "http": {"addr": self.address, "relativeurls": True},
            **({"auth": {"htpasswd": {"realm": "tests", "path": str(passwords)}}} if login else {}),
        }

    def _answers(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()
        with socket.socket() as client:
            return client.connect_ex(_split(self.address)) == 0

    def _put_blob(self, name: str, blob: bytes) -> str:
        digest = _digest(blob)
        begun = self._request("POST", f"/v2/{name}/blobs/uploads/", b"", {}, 202)
        self._request("PUT", f"{begun['Location']}&digest={digest}", blob, {}, 201)
        return digest

    def _request(self, method: str, path: str, body: bytes, headers: dict[str, str], wanted: int) -> dict[str, str]:
        with contextlib.closing(http.client.HTTPConnection(self.address, timeout=REQUEST_DEADLINE_S)) as connection:
            connection.request(method, path, body, {**self._headers, **headers})
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status == wanted, f"{method} {path}: {answer.status} {text!r}"
            return dict(answer.getheaders())


class Proxy:
    """Passes bytes on to a registry, in a thread of its own; its images are ``<address>/<name>:<tag>``.

    ``bytes_per_s`` is the pace of each connection, 0 for none. A connection that has passed ``cut_after_bytes`` (0:
    never) is broken off.
    """

    def __init__(self, target: str) -> None:
        self.bytes_per_s = 0
        self.cut_after_bytes = 0
        self.passed_bytes = 0
        """From the registry, over all connections."""
        self.open_connections = 0
        self._target = _split(target)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()
        assert self._ready.wait(START_DEADLINE_S)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(STOP_DEADLINE_S)
        forget_images(self.address)

    async def _run(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, HOST, 0)
        self.address = f"{HOST}:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._ended.wait()
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open_connections += 1
        up_reader, up_writer = await asyncio.open_connection(*self._target)
        ways = {asyncio.create_task(_pass(reader, up_writer)), asyncio.create_task(self._answer(up_reader, writer))}
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.open_connections -= 1
            for way in ways:
                way.cancel()
            for end in (writer, up_writer):
                end.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passed = 0
        # `drain` then waits for every byte: the registry hangs up behind an answer, and abort drops what waits here.
        writer.transport.set_write_buffer_limits(high=0)
        with contextlib.suppress(OSError):
            while chunk := await reader.read(CHUNK_BYTES):
                writer.write(chunk)
                await writer.drain()
                passed += len(chunk)
                self.passed_bytes += len(chunk)
                if self.cut_after_bytes and passed >= self.cut_after_bytes:
                    return
                if self.bytes_per_s:
                    await asyncio.sleep(len(chunk) / self.bytes_per_s)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()


def registries_conf(directory: Path, *addresses: str) -> dict[str, str]:
    """Environment for a Podman that is to speak plain HTTP with these; the user's own files stay as they are."""
    path = directory / "registries.conf"
    path.write_text("".join(f'[[registry]]\nlocation = "{address}"\ninsecure = true\n\n' for address in addresses))
    return {"CONTAINERS_REGISTRIES_CONF": str(path)}


def logins(directory: Path, passwords: Mapping[str, str]) -> dict[str, str]:
    """Environment for a Podman whose user has done `podman login` at these addresses."""
    path = directory / "auth.json"
    tokens = {at: base64.b64encode(f"{USER}:{password}".encode()).decode() for at, password in passwords.items()}
    path.write_text(json.dumps({"auths": {at: {"auth": token} for at, token in tokens.items()}}))
    return {"REGISTRY_AUTH_FILE": str(path)}


def forget_images(address: str) -> None:
    """Remove every image that was pulled from there out of the user's storage."""
    listed = _images()
    ids = {line.split()[1] for line in listed.splitlines() if line.startswith(f"{address}/")}
    if ids:
        _podman("rmi", "--force", *sorted(ids))


@contextlib.contextmanager
def registry(directory: Path, *, login: bool = False) -> Iterator[Registry]:
    made = Registry(directory, login=login)
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def proxy(target: Registry) -> Iterator[Proxy]:
    made = Proxy(target.address)
    try:
        yield made
    finally:
        made.close()


def _layer(label: str, more_bytes: int) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as tar:
        tar.add(os.path.realpath(str(shutil.which("busybox"))), "bin/busybox")
        for applet in ("sh", "sleep", "true", "cat"):
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        content = label.encode() + os.urandom(more_bytes)
        entry = tarfile.TarInfo("label")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def _free_port() -> int:
    """Free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def _images() -> str:
    """Name and id of every image. Podman refuses the list when another test removes an image while it reads."""
    for _ in range(LIST_TRIES - 1):
        with contextlib.suppress(AssertionError):
            return _podman("images", "--format", "{{.Repository}}:{{.Tag}} {{.Id}}")
    return _podman("images", "--format", "{{.Repository}}:{{.Tag}} {{.Id}}")


def _podman(*arguments: str) -> str:
    done = subprocess.run(
        ["podman", *arguments], capture_output=True, text=True, check=False, timeout=COMMAND_DEADLINE_S
    )
    assert done.returncode == 0, f"podman {arguments[0]}: {done.stderr}"
    return done.stdout
