"""The API server of the simulation: the fake server's rules and store, on the simulated clock, without a socket."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from ipc.host.clock import Clock
from tests.sim.cluster.rules import ServerRules
from tests.support.servers.kube_api.api import ADMIN, Api
from tests.support.servers.kube_api.authority import shared_authority
from tests.support.servers.kube_api.failures import JsonObject, Refusal
from tests.support.servers.kube_api.requests import Request, User
from tests.support.servers.kube_api.resources import BY_PLURAL
from tests.support.servers.kube_api.routes import route_of
from tests.support.servers.kube_api.watching import Watch

NODE: Final = "sim"
USER: Final = User(f"system:node:{NODE}", ("system:nodes", "system:authenticated"))
"""The user who asks: without TLS the client shows nobody a credential."""
MAX_SKEW_S: Final = 300.0
"""Between the clocks of server and node."""
LEASES: Final = "kube-node-lease"


class SimServer:
    """Outlives agents."""

    def __init__(self, rng: random.Random, clock: Clock, rules: ServerRules) -> None:
        self.skew_s = rng.choice((0.0, rng.uniform(-MAX_SKEW_S, MAX_SKEW_S)))
        """How far its clock is ahead."""
        self.rules = rules
        self._clock = clock
        self._made = 0
        self.api = Api(shared_authority(), self._now, self._new_uid)
        self.api.store.listen(self._changed)
        self._seen = self.store.revision
        self._watches: dict[Watch, None] = {}

    @property
    def store(self) -> Any:
        return self.api.store

    def kubeconfig(self, directory: Path) -> str:
        """Path of the node's file."""
        path = directory / "kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": "http://api.test:80"}}],
            "users": [{"name": "n", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "n"}}],
            "current-context": "x",
        }
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config))
        return str(path)

    def answer(self, request: Request, rules: ServerRules) -> tuple[int, JsonObject] | Watch:
        """``rules``: of who asks. Raises Refusal."""
        request.user = USER.name
        route = route_of(request)
        assert route is not None, request.path
        rules.arrives(request, self.store)
        try:
            found = self.api.answer(request, route, USER)
        except Refusal as refusal:
            rules.answered(request, refusal.code)
            raise
        if isinstance(found, Watch):
            self._watches[found] = None
        else:
            rules.answered(request, found[0])
        return found

    # --- what happens to it ---

    def expire(self) -> None:
        """The history is forgotten, and open watches end with 410."""
        self.store.compact()
        for watch in tuple(self._watches):
            watch.expire()
        self._watches.clear()

    def restore(self, revision: int) -> None:
        """An older backup takes the store's place."""
        self.store.restore(revision)
        self._seen = revision
        self.rules.restored(self.store.all("pods"))

    def lease_revision(self) -> int:
        """Revision of the node's lease; 0 without one."""
        with contextlib.suppress(Refusal):
            return int(self.store.get("leases", LEASES, NODE)["metadata"]["resourceVersion"])
        return 0

    # --- what people do ---

    def schedule(self, pod: JsonObject) -> None:
        self.api.schedule(pod, NODE)

    def delete(self, name: str, grace_s: int | None = None) -> None:
        self.api.delete_pod(name, "default", grace_s)

    def edit(self, name: str, change: Callable[[JsonObject], None]) -> None:
        """Raises Refusal."""
        pod = self.store.get("pods", "default", name)
        change(pod)
        self.api.writes.update(BY_PLURAL["pods"], "default", name, "", pod, ADMIN)

    def put(self, plural: str, found: JsonObject) -> None:
        """An object is made, or replaced."""
        metadata = found["metadata"]
        if self.store.has(plural, metadata.get("namespace", ""), metadata["name"]):
            self.store.update(found)
        else:
            self.store.create(found)

    def pods(self) -> dict[str, JsonObject]:
        """Pods of the node, by UID."""
        return {pod["metadata"]["uid"]: pod for pod in self.store.all("pods") if pod["spec"].get("nodeName") == NODE}

    def now(self) -> float:
        """Seconds since the epoch, by the server's clock."""
        return self._clock.now().wall + self.skew_s

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.now(), UTC)

    def _new_uid(self) -> str:
        self._made += 1
        return f"{self._made:08x}-kube"

    def _changed(self) -> None:
        for change in list(self.store.since(self._seen)):
            self._seen = change.revision
            if change.key[0] == "pods":
                self.rules.changed(change)
