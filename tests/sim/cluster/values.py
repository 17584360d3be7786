"""ConfigMaps and Secrets that pods of the simulated cluster get: how they change, and rules about them."""

from __future__ import annotations

import base64
import contextlib
import logging
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from ipc.kubecontainer.config_objects import ConfigObjects
from tests.servers.kube_api.failures import JsonObject
from tests.sim.cluster.network import SimNetwork
from tests.sim.cluster.server import SimServer
from tests.sim.trace import Trace

CONFIG: Final = "config"
FIXED: Final = "fixed"
"""An immutable ConfigMap: read once, and watched no longer."""
SECRET: Final = "secret"
SECRET_TEXT: Final = "nobody may say"
"""Begin of every value of the Secret. 14 characters, of which 12 are 16 of base64 whatever follows."""
_SECRET_FORMS: Final = (SECRET_TEXT, base64.b64encode(SECRET_TEXT[:12].encode()).decode())
_LOGGERS: Final = ("ipc", "supervisor", "workers")


class PodValues:
    """Outlives agents, as the server does."""

    def __init__(self, server: SimServer, network: SimNetwork, trace: Trace) -> None:
        self._server = server
        self._network = network
        self._trace = trace
        self._made = 0

    def begin(self) -> None:
        """Make all of them."""
        self._put("configmaps", "ConfigMap", FIXED, immutable=True, data={"edit": "never"})
        self.change_config()
        self.change_secret()

    def change_config(self) -> None:
        self._made += 1
        self._put("configmaps", "ConfigMap", CONFIG, data={"edit": str(self._made)})

    def change_secret(self) -> None:
        self._made += 1
        text = base64.b64encode(f"{SECRET_TEXT} {self._made}".encode()).decode()
        self._put("secrets", "Secret", SECRET, type="Opaque", data={"password": text})

    def _put(self, plural: str, kind: str, name: str, **content: object) -> None:
        metadata = {"name": name, "namespace": "default"}
        self._server.put(plural, {"kind": kind, "apiVersion": "v1", "metadata": metadata, **content})

    @staticmethod
    def refer(container: JsonObject) -> None:
        """Give a container all of them, as variables."""
        maps = [{"configMapRef": {"name": name}} for name in (CONFIG, FIXED)]
        container["envFrom"] = [*maps, {"secretRef": {"name": SECRET}}]

    # --- rules ---

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """No line of the log has the Secret."""
        listener = _Listener(self._trace)
        loggers = {log: log.level for log in map(logging.getLogger, _LOGGERS)}
        for log in loggers:
            log.addHandler(listener)
            log.setLevel(logging.INFO)
        try:
            yield
        finally:
            for log, level in loggers.items():
                log.removeHandler(listener)
                log.setLevel(level)

    def wrong_pod(self, given: ConfigObjects | None) -> Iterator[str]:
        """Where the last sync of a pod that runs had something else than the newest content."""
        maps: Mapping[str, object] = {} if given is None else given.config_maps
        for name in (CONFIG, FIXED):
            yield from _difference(name, maps.get(name), self._server.store.get("configmaps", "default", name))
        found = None if given is None else given.secrets.get(SECRET)
        yield from _difference(SECRET, found, self._server.store.get("secrets", "default", SECRET))

    def wrong(self) -> Iterator[str]:
        """Rules that hold whenever nothing is under way."""
        if self._network.watches_of(FIXED):
            yield f"{FIXED} is immutable, and it is watched"
        for plural in ("events", "pods", "nodes"):
            said = msgspec.json.encode([_without_spec(found) for found in self._server.store.all(plural)]).decode()
            if _tells(said):
                yield f"{plural} on the server have the Secret"


class _Listener(logging.Handler):
    def __init__(self, trace: Trace) -> None:
        super().__init__(logging.INFO)
        self._trace = trace

    def emit(self, record: logging.LogRecord) -> None:
        if _tells(record.getMessage()):
            self._trace.broke(f"{record.name} has logged the Secret")


def _tells(text: str) -> bool:
    return any(form in text for form in _SECRET_FORMS)


def _without_spec(found: JsonObject) -> JsonObject:
    return {name: value for name, value in found.items() if name != "spec"}


def _difference(name: str, given: object, there: JsonObject) -> Iterator[str]:
    data = None if given is None else msgspec.json.decode(msgspec.json.encode(given)).get("data")
    if data != there["data"]:
        yield f"its last sync had another {name} than the server"
