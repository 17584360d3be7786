"""ConfigMaps, Secrets, tokens and a claim that pods of the simulated cluster get: how they change, and rules."""

from __future__ import annotations

import base64
import contextlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.k8s.podobjects.config_objects import ConfigObjects
from ipc.link.messages.pod_worker import SyncPod
from tests.sim.cluster.network import SimNetwork
from tests.sim.cluster.server import SimServer
from tests.sim.trace import Trace
from tests.support.servers.kube_api.failures import JsonObject

CONFIG: Final = "config"
FIXED: Final = "fixed"
"""An immutable ConfigMap: read once, and watched no longer."""
SECRET: Final = "secret"
SECRET_TEXT: Final = "nobody may say"
"""Begin of every value of the Secret. 14 characters, of which 12 are 16 of base64 whatever follows."""
CLAIM: Final = "claim"
OWN_VOLUME: Final = "own"
FOREIGN_VOLUME: Final = "foreign"
"""A volume of another claim. A claim may name it, as one that was made by hand, or of before a restore."""
_CLAIM_UIDS: Final = {OWN_VOLUME: "claim-uid", FOREIGN_VOLUME: "another-uid"}
TOKEN_LIFETIME_S: Final = 3600
_SECRET_FORMS: Final = (SECRET_TEXT, base64.b64encode(SECRET_TEXT[:12].encode()).decode())
_LOGGERS: Final = ("ipc", "supervisor", "workers")


class PodValues:
    """Outlives agents, as the server does."""

    def __init__(self, server: SimServer, network: SimNetwork, trace: Trace, directory: Path) -> None:
        """``directory``: where volumes lie."""
        self._directory = directory
        self._server = server
        self._network = network
        self._trace = trace
        self._made = 0

    def begin(self) -> None:
        """Make all of them."""
        self._put("configmaps", "ConfigMap", FIXED, immutable=True, data={"edit": "never"})
        for name, uid in _CLAIM_UIDS.items():
            claim = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": CLAIM, "uid": uid}
            spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "claimRef": claim}
            path = {"path": f"{self._directory}/{name}", "type": "DirectoryOrCreate"}
            self._put("persistentvolumes", "PersistentVolume", name, namespace="", spec={**spec, "hostPath": path})
        self.bind_claim(OWN_VOLUME)
        self.change_config()
        self.change_secret()

    def change_config(self) -> None:
        self._made += 1
        self._put("configmaps", "ConfigMap", CONFIG, data={"edit": str(self._made)})

    def change_secret(self) -> None:
        self._made += 1
        text = base64.b64encode(f"{SECRET_TEXT} {self._made}".encode()).decode()
        self._put("secrets", "Secret", SECRET, type="Opaque", data={"password": text})

    def mend_claim(self) -> None:
        """Have the claim name its own volume, if it does not."""
        if self._server.store.get("persistentvolumeclaims", "default", CLAIM)["spec"]["volumeName"] != OWN_VOLUME:
            self.bind_claim(OWN_VOLUME)

    def bind_claim(self, volume: str) -> None:
        """Have the claim name that volume; it is bound to its own one only."""
        spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": volume}
        uid = _CLAIM_UIDS[OWN_VOLUME]
        status = {"phase": "Bound"}
        self._put("persistentvolumeclaims", "PersistentVolumeClaim", CLAIM, uid=uid, spec=spec, status=status)

    def _put(
        self, plural: str, kind: str, name: str, *, namespace: str = "default", uid: str = "", **content: object
    ) -> None:
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {}) | ({"uid": uid} if uid else {})
        self._server.put(plural, {"kind": kind, "apiVersion": "v1", "metadata": metadata, **content})

    @staticmethod
    def refer(container: JsonObject) -> None:
        """Give a container all of them, as variables."""
        maps = [{"configMapRef": {"name": name}} for name in (CONFIG, FIXED)]
        container["envFrom"] = [*maps, {"secretRef": {"name": SECRET}}]

    @staticmethod
    def volumes() -> list[JsonObject]:
        """A volume with a token, and one of the claim."""
        token = {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_LIFETIME_S}}
        return [
            {"name": "access", "projected": {"sources": [token]}},
            {"name": "data", "persistentVolumeClaim": {"claimName": CLAIM}},
        ]

    # --- rules ---

    def sync(self, sync: SyncPod) -> None:
        """No pod is given a volume of another claim."""
        values = sync.objects.cluster
        given = {} if values is None else values.claims
        if any(found.volume == FOREIGN_VOLUME for found in given.values()):
            self._trace.broke(f"{sync.uid[:8]} is given the volume of another claim")

    def expired(self, given: ConfigObjects | None) -> Iterator[str]:
        """Where the last sync of a pod has a token that the server takes no more, or none."""
        values = None if given is None else given.cluster
        for token in () if values is None else values.tokens:
            if not token.token:
                yield f"it has no token: {token.problem}"
            elif _end_of(token.token) <= self._server.now():
                yield "its token has expired"

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
        yield from self.expired(given)

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


def _end_of(token: str) -> float:
    """Seconds since the epoch, as the token itself says."""
    payload = token.split(".")[1]
    return float(msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"])


def _without_spec(found: JsonObject) -> JsonObject:
    return {name: value for name, value in found.items() if name != "spec"}


def _difference(name: str, given: object, there: JsonObject) -> Iterator[str]:
    data = None if given is None else msgspec.json.decode(msgspec.json.encode(given)).get("data")
    if data != there["data"]:
        yield f"its last sync had another {name} than the server"
